/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What BPF knows of an address that calls of a language's function touch (unwind/runtime_calls.h). */
#ifndef YRT_HIT_CALLEE_H
#define YRT_HIT_CALLEE_H

#include <types.h>

#include "unwind/shared/frame.h"

struct callee_key {
	u64 addr;
	u32 tgid, reserved;
};

#define CALLEE_FRAMES 2
struct callee_watch {
	struct frame at[CALLEE_FRAMES]; /* either of them is innermost in its language; flags count as 0 */
	u64 word;                       /* what is there: a hit that finds something else was a write */
	u64 until;                      /* CLOCK_MONOTONIC, ns: later hits do not count */
	u32 reason;
	u32 each;  /* how many calls a call counts for */
	u32 bytes; /* of word; 0: it is code that is executed */
	u32 nat;
};

struct callee_counts { /* one for each CPU */
	u64 traps;     /* of threads of targets */
	u64 calls;     /* of them, those that were calls */
	u64 stand_for; /* calls, each with those that it stands for */
	u64 walk_ns;   /* spent on traps, by BPF */
};

#endif
