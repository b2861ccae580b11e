/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named subs of the process's first interpreter, with their first op (runtime_calls.h): each run of an op reads its
 * op_ppaddr. They are found in the packages that statements are in (PL_stashpad: builds with threads).
 */
#ifndef YRT_PERL_CALLS_H
#define YRT_PERL_CALLS_H

#include "perl_objects.h"
#include "runtime_calls.h"

struct error *perl_calls(
        const struct perl_reader *r, struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);

#endif
