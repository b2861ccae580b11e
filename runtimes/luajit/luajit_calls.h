/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of LuaJIT's VMs, with the header of their bytecode (runtime_calls.h): prototypes, found along the list of
 * all objects. The interpreter reads the header (BC_FUNCF, BC_FUNCV and their other forms) once for each call, also
 * where it then goes on in a trace. Calls that a trace makes itself, as most are that it has inlined, are not seen.
 *
 * A function is PATH:NAME, as its definition calls it, or PATH:LINE, if it has no name or a line is asked for.
 */
#ifndef YRT_LUAJIT_CALLS_H
#define YRT_LUAJIT_CALLS_H

#include "luajit_image.h"
#include "runtime_calls.h"

struct error *luajit_calls(const struct luajit_image *image, u64 bias, struct luajit_names *names,
        const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);
/* Of one of these: calls add() for each function whose code a trace begins in that calls it, or has it inlined. */
void luajit_calls_inlined(const struct luajit_image *image, u64 bias, struct luajit_names *names,
        const struct runtime_process *p, const struct runtime_callee *of, void (*add)(void *ctx, const char *into),
        void *ctx);

#endif
