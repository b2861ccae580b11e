/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the thread that died, for people: innermost first, a line each, the program's own frames marked. All of
 * these are there; of what libraries and runtimes do between them, only both ends.
 */
#ifndef YRT_REPORT_CRASH_STACK_H
#define YRT_REPORT_CRASH_STACK_H

#include <stdio.h>

#include "rule.h"

#define CRASH_VIEW "crash" /* the view that has this stack alone */

/* p: finished, of one stack. Names are cleaned. */
struct error *crash_stack_write(const struct profile *p, const struct libraries *l, FILE *out);

#endif
