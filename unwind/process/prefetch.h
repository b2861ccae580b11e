/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares the files of a program before it is started: the program, the interpreter that its `#!` names, and the
 * libraries that they are linked with. So their rows and runtimes are known at the first instruction. The same is done
 * for the first programs that its arguments name, as in `sh -c "python3 x.py"` or `timeout 9 java X`, if no other user
 * could have written them.
 */
#ifndef YRT_PREFETCH_H
#define YRT_PREFETCH_H

#include "error.h"
#include "module.h"

/* argv: as for execvp(). What can not be found or read is left for later; only running out of memory is an error. */
struct error *prefetch_prepare(struct modules *m, char *const *argv);

#endif
