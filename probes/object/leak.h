/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was allocated during a run and is still there at its end, by stack and age.
 *
 * Each call of an allocation function is seen, and the address that it returns: by uprobes at its entry and at its
 * returns. Blocks are chosen by size as in alloc.h; a chosen one is in a ledger until free() gets its address. Where
 * the uprobes would cost more than a quarter of --max-cpu, they are placed in shifts (hit/hit_shifts.h): blocks of a
 * shift are watched for a second, in which free() alone is probed; what is still there then is shown with that age.
 *
 * Growth is told from what only looks like it by the ages of what is left (leak_verdict.h).
 */
#ifndef YRT_LEAK_H
#define YRT_LEAK_H

#include <types.h>

struct leak_key { /* of a block */
	u64 addr;
	u32 tgid, reserved;
};

struct leak_block { /* that was chosen, and is not freed */
	u64 hash;   /* of its stack */
	u64 bytes;  /* that it stands for, */
	u64 blocks; /* and blocks */
	u64 ns;     /* when it was made */
	u32 shift;  /* the number of the shift that saw it */
	u32 reserved;
};

struct leak_stack { /* of all chosen blocks of a stack */
	u64 made, made_bytes;
	u64 freed, freed_bytes;
	u64 life_ns; /* of those that were freed, together; each once */
	u64 lives;   /* their number */
};

struct leak_counters { /* in BPF one for each CPU */
	u64 watched;   /* blocks that were chosen */
	u64 freed;     /* of them */
	u64 failed;    /* calls that returned no block */
	u64 full;      /* blocks that the ledger had no room for */
	u64 left;      /* of those whose address came again without a free() */
};

#define LEAK_CURVE 128 /* points */
struct leak_point {
	u64 ns;        /* since the begin */
	u64 rss, heap; /* bytes: of all targets, and of their anonymous memory */
};

struct leak_summary { /* sampler_stats.of_event */
	struct leak_counters counters;
	u64 calls, bytes;     /* seen, as in alloc.h */
	u64 left, left_bytes; /* blocks that are still there: of the chosen, and what they stand for */
	const char *from;     /* as in alloc.h */
	const char *report;   /* lines for people; NULL: it is not made yet */
	struct leak_point curve[LEAK_CURVE];
	u32 npoints;
	u32 grows;      /* stacks that are said to grow */
	double watch_s; /* for how long a block was watched at most */
	bool in_shifts;
};

/* leak_command.c, leak_words.c: probes/event_command.h */
extern const struct event_command leak_command;
extern const struct event_words leak_words;

#endif
