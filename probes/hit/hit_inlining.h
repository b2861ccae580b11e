/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose calls are not all seen, as compiled code has them inlined: into which others, and for what share. */
#ifndef YRT_HIT_INLINING_H
#define YRT_HIT_INLINING_H

#include <stdio.h>

#include "unwind/runtime_calls.h"

#define CALLEE_INLINING_NAMES 3
#define CALLEE_INLINING_OF    16 /* functions of a pattern that are looked for */
#define CALLEE_INLINING_TEXT  (CALLEE_INLINING_NAMES * (NAME_MAX_BYTES + 2) + 16)

struct callee_inlining {
	char into[CALLEE_INLINING_NAMES][NAME_MAX_BYTES];
	u32 n, more;
};

struct hit_inlined {      /* a function that is inlined somewhere */
	const char *what; /* as the user says it, as long as the sampler */
	char name[NAME_MAX_BYTES], file[NAME_MAX_BYTES];
	u32 line;
};

struct hit_inlined_all { /* equal `what` are together */
	struct hit_inlined of[CALLEE_INLINING_OF];
	u32 n;
};

struct run_request;

void hit_inlined_add(struct hit_inlined_all *all, const char *what, const struct runtime_callee *callee);
/*
 * After the run: lines on the share of samples in which they are inlined, of CPU time, by a profile that takes a second
 * more. A run that was ended early, or whose target is over, gets none.
 */
void hit_inlined_explain(FILE *out, const struct run_request *run, const struct hit_inlined_all *all);

/* ctx: a struct callee_inlining. Each name counts once. */
void callee_inlining_add(void *ctx, const char *into);
/* "a, b, c and others", in CALLEE_INLINING_TEXT bytes. */
void callee_inlining_text(const struct callee_inlining *in, char *ret);

#endif
