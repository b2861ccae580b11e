/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that have others inlined, as a note names them. */
#ifndef YRT_HIT_INLINING_H
#define YRT_HIT_INLINING_H

#include "unwind/runtime.h"

#define CALLEE_INLINING_NAMES 3
#define CALLEE_INLINING_OF    16 /* functions of a pattern that are looked for */
#define CALLEE_INLINING_TEXT  (CALLEE_INLINING_NAMES * (NAME_MAX_BYTES + 2) + 16)

struct callee_inlining {
	char into[CALLEE_INLINING_NAMES][NAME_MAX_BYTES];
	u32 n, more;
};

/* ctx: a struct callee_inlining. Each name counts once. */
void callee_inlining_add(void *ctx, const char *into);
/* "a, b, c and others", in CALLEE_INLINING_TEXT bytes. */
void callee_inlining_text(const struct callee_inlining *in, char *ret);

#endif
