/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls of a language's functions can be seen from outside, for `yrt probe` and `yrt latency`: an address of the
 * target that each call touches once, on which a debug register is put, and the frame that a walk then finds.
 *
 * An interpreter reads a function's first instruction once for each call. Others may read it too (a copy of the code, a
 * debugger in the language), and a jump may lead back to it. So a hit counts only if the walk's innermost frame of the
 * language is the function at its very beginning.
 */
#ifndef YRT_RUNTIME_CALLS_H
#define YRT_RUNTIME_CALLS_H

#include "runtime.h"

#define RUNTIME_CALL_FRAMES 2

/* A function as it exists now. One that was defined anew, or compiled, has several of these under one name. */
struct runtime_callee {
	char name[NAME_MAX_BYTES]; /* in full, as it is asked for behind "<view>:" */
	char file[NAME_MAX_BYTES]; /* "" if none */
	u32 line;                  /* where it is defined; 0: none */
	u64 entry;                 /* in the process, aligned to bytes: */
	u8 bytes;                  /* 1, 2, 4 or 8 */
	bool executed;             /* machine code begins there; else it is read */
	u8 nat;
	struct frame
	        at[RUNTIME_CALL_FRAMES]; /* the innermost frame of the language then is one of these, flags aside */
	const char *makes;               /* a call only makes this ("generator"), and returns at once; NULL */
};

struct runtime_calls_ops {
	const char *form; /* for help and errors: "python:MODULE.FUNCTION" */
	/*
	 * Calls add() for each function that may have a name of this pattern (with * as in the shell; NULL: any), and
	 * maybe for others. Reads the target, which keeps running.
	 */
	struct error *(*list)(void *instance, const struct runtime_process *p, const char *pattern,
	        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);
};

#endif
