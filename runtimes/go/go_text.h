/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as net/http/pprof prints them, with debug=1 and debug=2: runtime/pprof/pprof.go, runtime/traceback.go of
 * Go 1.26. */
#ifndef YRT_GO_TEXT_H
#define YRT_GO_TEXT_H

#include <stdio.h>

#include "go_places.h"

/* " 0x4a6b2d 0x4a6c01": all of a chain, as runtime.Callers() has them. */
void go_print_pcs(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, FILE *out);
/* "#	0x4a6b2d	main.f+0x2d	/src/main.go:18", a line each; the runtime's innermost are left out unless there
 * are no others. */
void go_print_lines(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, FILE *out);
/* "main.f(...)", "	/src/main.go:18 +0x2d": as a panic prints them, without the runtime's own. */
void go_print_trace(const struct go_places *p, const struct go_stacks *s, const struct go_chain *c, FILE *out);

/* Is a function in a panic's text? */
bool go_is_traced(const char *name, bool innermost);

#endif
