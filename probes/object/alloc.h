/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native allocation: calls of malloc() and its relatives, of C++'s new where that is an entry of its own, of mmap() and
 * brk(), in whichever file of a process has them (alloc_functions.h).
 *
 * A uprobe at each sees every call while that is cheap; past a quarter of --max-cpu it is placed in shifts
 * (hit/hit_shifts.h), whose calls stand for those in between. Of the calls that are seen, a stack is taken with the
 * probability min(1, size/interval), and counts size/probability bytes and 1/probability calls: both sums are unbiased,
 * and each large block is seen. The interval is the one asked for, or 1, as long as few stacks are taken, and doubles
 * where they come fast.
 *
 * A call that an allocator makes of itself (memalign() of malloc(), malloc() of mmap()) does not count: it has its
 * return address in the allocator's own code, or its caller's place on the stack (alloc_code.h).
 */
#ifndef YRT_ALLOC_H
#define YRT_ALLOC_H

#include <stdbool.h>
#include <types.h>

struct alloc_options {   /* sampler_options.of_event */
	double interval; /* bytes, at least; 0: as said above */
	bool growth;     /* only mmap() and sbrk(), also of allocators: what makes the process larger */
};

/* In BPF one for each CPU. */
struct alloc_counters { /* of calls that were seen, with those that they stand for */
	u64 calls, bytes;
	u64 taken;   /* of them with a stack */
	u64 inner;   /* calls that an allocator made of itself, which do not count */
	u64 strange; /* of a size that no address space holds */
};

struct alloc_summary { /* sampler_stats.of_event */
	struct alloc_counters counters;
	u64 interval;     /* at the end */
	const char *from; /* the files whose functions are probed, by their names */
	bool in_shifts;   /* bytes and calls are estimates */
};

/* alloc_command.c, alloc_words.c: probes/event_command.h */
extern const struct event_command alloc_command;
extern const struct event_words alloc_words;

#endif
