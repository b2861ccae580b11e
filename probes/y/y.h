/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted by stack. A handler leaves what it wants to count in y_pending, under its thread and kind, and calls
 * on_y() (on_y_point(), on_y_tick(), on_y_call()) in its place, which takes the stack and counts under its hash
 * (y.bpf.h). Shared by BPF and user space.
 */
#ifndef YRT_Y_H
#define YRT_Y_H

#include <types.h>

#define Y_STACK_WORDS  12    /* of keys beside the stack: a number has one, a string Y_STRING_WORDS */
#define Y_STRING_WORDS 9     /* its length, and its bytes with zeros behind them */
#define Y_STRING_MOST  64    /* bytes of it */
#define Y_STACKS_MOST  16384 /* that are counted */
#define Y_PENDING      4096  /* threads that are between the two programs */

/* What runs a handler. */
enum y_kind {
	Y_OF_CODE,   /* uprobes */
	Y_OF_KERNEL, /* a raw tracepoint */
	Y_OF_CLOCK,  /* a perf event of each CPU */
	Y_OF_CALL,   /* a debug register that a call of a language's function touches (hit_callees.h) */
	Y_KINDS
};

#define Y_STATUSES 8 /* causes of failure (frontends/ylang/ir.h) */

/* A handler of the clock may come while one of the same thread is between the two. */
#define Y_PENDING_KEY(thread, kind) ((u32)(thread) | (u32)(kind) << 24)

struct y_pending {
	u64 map, value;
	u64 generation;          /* as of struct y_control */
	u64 keys[Y_STACK_WORDS]; /* those that are not there are 0 */
};

struct y_stack_key {
	u64 hash, map;
	u64 generation;
	u64 keys[Y_STACK_WORDS];
};

struct y_stack_total {
	u64 count, sum;
	u64 most, least; /* as those of struct y_total */
};

struct y_text { /* a string */
	u32 len, cut;
	char bytes[264]; /* 255 at most, and zeros behind them: it is compared as a whole */
};

/* An argument of a language's function that a handler wants, by value_places.wanted (unwind/shared/value.h). */
struct y_argument {
	u32 absent;             /* it could not be read, or the function has none of the name */
	u32 is_number, is_text; /* neither: it is something else */
	u32 beyond;             /* Y_BEYOND_LONG: a number that a long does not hold; _BOTH: nor is it in real */
	u64 number, real;       /* the number, without what is behind its point, and as a double */
	struct y_text text;     /* UTF-8 */
};

#define Y_BEYOND_LONG 1
#define Y_BEYOND_BOTH 2
#define Y_ARGUMENTS   8
struct y_arguments { /* one for each CPU: from the call until its handler has ended */
	struct y_argument of[Y_ARGUMENTS];
};

#endif
