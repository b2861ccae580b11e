/* SPDX-License-Identifier: Apache-2.0 */
/* A Y program from its source to its instructions, for one target. */
#ifndef YRT_YLANG_COMPILE_H
#define YRT_YLANG_COMPILE_H

#include "ir.h"
#include "target.h"

struct y_compile_options {
	const char *name; /* of the source, as messages have it */
	const char *text;
	size_t size;
	const char *const *defines, *const *includes; /* of -D and -I, up to NULL; may be NULL */
	FILE *tokens; /* what the preprocessor leaves; then nothing is compiled, *ret has no handlers. NULL: as usual */
	FILE *explain; /* where each type and offset came from; NULL: nobody asks */
};

/* ERROR_USAGE: what is wrong with the program, with its place, the line and a caret. */
struct error *y_compile(const struct y_compile_options *o, struct y_target *target, struct y_program **ret);

#endif
