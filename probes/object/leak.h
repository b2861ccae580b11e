/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was allocated during a run and is still there at its end, by stack and age.
 *
 * Each call of an allocation function is seen, and the address that it returns: by uprobes at its entry and at its
 * returns. Blocks are chosen by size as in alloc.h; a chosen one is in a ledger until free() gets its address. Growth
 * is told from what only looks like it by the ages of what is left (leak_verdict.h).
 *
 * Where all that would cost more than a share of the target's CPU time, the uprobes are placed in windows
 * (alloc_windows.h). What is still there at the end of a window is not known from then on, but for the few blocks that
 * debug registers watch: one on a word of the block that free() writes (leak_watch.h). How many blocks of a stack live
 * for how long is a life table of both (leak_life.h).
 */
#ifndef YRT_LEAK_H
#define YRT_LEAK_H

#include <stdbool.h>
#include <types.h>

#include "alloc.h"
#include "leak_age.h"

struct leak_key { /* of a block */
	u64 addr;
	u32 tgid, reserved;
};

struct leak_block {  /* that was chosen, and is not freed */
	u64 hash;    /* of its stack */
	u64 bytes;   /* that it stands for, */
	u64 blocks;  /* and blocks */
	u64 ns;      /* when it was made */
	u64 size;    /* that was asked for */
	u32 code;    /* whose block it is: LEAK_COOKIE_CODE */
	u32 watched; /* by a debug register */
};

struct leak_stack { /* of all chosen blocks of a stack */
	u64 made, made_bytes;
	u64 freed, freed_bytes;
	u64 life_ns;         /* of those that were freed, together; each once */
	u64 lives;           /* their number */
	u32 died[LEAK_AGES]; /* the same, by age */
};

struct leak_counters { /* in BPF one for each CPU */
	u64 watched;   /* blocks that were chosen */
	u64 freed;     /* of them */
	u64 failed;    /* calls that returned no block */
	u64 full;      /* blocks that the ledger had no room for */
	u64 left;      /* of those whose address came again without a free() */
};

/* The cookie of an allocation function has its file's allocator, too (leak_codes), in place of a high number. */
#define LEAK_COOKIE_CODE(cookie)  ((cookie) >> 56)
#define LEAK_COOKIE_RETURN_CLEARS 1 /* of a return: it goes on as memset() */

/* An allocator whose books can be read (leak_heap.h). */
enum leak_books { LEAK_BOOKS_NONE, LEAK_BOOKS_GLIBC, LEAK_BOOKS_JEMALLOC, LEAK_BOOKS };

#define LEAK_CURVE 128 /* points */
struct leak_point {
	u64 ns;        /* since the begin */
	u64 rss, heap; /* bytes: of all targets, and of their anonymous memory */
};

#define LEAK_HEAP_POINTS 32
struct leak_heap_point { /* what their allocators have, where they can be read */
	u64 ns;
	u64 in_use, free; /* bytes; free: for threads, too */
};

struct leak_summary { /* sampler_stats.of_event */
	struct leak_counters counters;
	u64 calls, bytes;           /* seen, as in alloc.h */
	u64 left, left_bytes;       /* blocks that are still there: of the chosen, and what they stand for */
	const char *from, *sampled; /* as in alloc.h */
	const char *report;         /* lines for people; NULL: it is not made yet */
	struct leak_point curve[LEAK_CURVE];
	u32 npoints;
	struct leak_heap_point heap[LEAK_HEAP_POINTS];
	u32 nheap;
	u32 grows;                    /* stacks that are said to grow, */
	double grows_low, grows_high; /* all together, in bytes a minute: the interval */
	bool in_windows;              /* not all calls were seen */
	u64 cut;                      /* in windows: blocks that were not seen any more when one ended */
	u64 looked_at;                /* others that were looked at again (leak_again.h) */
	u64 registers;                /* blocks that debug registers watched, */
	u64 outlived;                 /* of them, those that were still there when they were let go */
	double watch_s;
	const char *no_registers; /* why not; NULL: they were used */
	struct alloc_estimate estimate;
};

/* leak_command.c, leak_words.c: probes/event_command.h */
extern const struct event_command leak_command;
extern const struct event_words leak_words;

#endif
