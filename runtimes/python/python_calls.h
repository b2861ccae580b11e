/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a running Python, with their first bytecodes (runtime_calls.h). They are found from sys.modules: in
 * modules, classes, behind decorators (closures, __wrapped__, static and class methods, properties), and in the
 * constants of functions that define others. Functions that are only in other objects (a list of handlers whose module
 * has deleted them) are not found.
 *
 * A function is MODULE.QUALNAME, without "<locals>.". Up to 3.10, where code objects do not have qualified names, that
 * is made of the names of the classes and functions on the way.
 */
#ifndef YRT_PYTHON_CALLS_H
#define YRT_PYTHON_CALLS_H

#include "python_image.h"
#include "python_names.h"
#include "runtime_calls.h"

/* greenlets: of the process may be in calls at the same time. */
struct error *python_calls(const struct python_image *image, u64 bias, struct python_names *names, bool greenlets,
        const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);

extern const struct runtime_server python_servers[];

#endif
