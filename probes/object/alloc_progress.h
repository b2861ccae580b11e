/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What BPF counts of hits, so that user space knows what they cost, and how far the program got between them. */
#ifndef YRT_ALLOC_PROGRESS_H
#define YRT_ALLOC_PROGRESS_H

#include <types.h>

struct alloc_progress { /* in BPF one for each CPU, since the start */
	u64 hits;
	u64 stepped; /* of them, at instructions that the kernel does not emulate */
	u64 bpf_ns;  /* within the programs */
	u64 gaps;    /* between two hits of a thread that stayed on its CPU: */
	u64 gap_ns;  /* from the end of one's program to the begin of the other's */
	u64 pairs;   /* hits of the second place of a pair (alloc_function.pair): */
	u64 paired;  /* of them, those right after a hit of the first */
	u64 pair_ns; /* from the end of one program to the begin of the other: an exception, and next to no code */
	u64 traps;   /* hits of debug registers */
	u64 marks;   /* hits of landmarks (alloc_marks.h) */
	u64 squares; /* of sizes in units of ALLOC_UNIT bytes, of the same calls: */
	u64 rounded; /* bytes of blocks of such an allocator whose calls were seen, as it counts them */
};

#define ALLOC_UNIT       16
#define ALLOC_UNITS_MOST (1ul << 31) /* bytes of a block; a larger one counts as that */

#define ALLOC_MARKS 16 /* landmarks with uprobes at a time */

struct alloc_mark_hits { /* in BPF one for each CPU */
	u64 of[ALLOC_MARKS];
};

/* A thread of an allocator that counts (alloc_counters.h). */
struct alloc_thread {
	u64 base; /* of its thread-local memory */
	u32 tgid, reserved;
};

struct alloc_counter_at {    /* of a process */
	u64 offset;          /* of the counter, from a thread's base */
	u64 events, strange; /* hits that it was found by, and others: it is in doubt then */
};

#define ALLOC_EACH 256 /* a power of two */

struct alloc_count { /* of a stack, in a window */
	u64 bytes, calls;
};

struct alloc_count_key {
	u64 hash;
	u32 epoch, reserved; /* of the stack's record */
};

#endif
