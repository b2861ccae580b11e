/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native allocation: calls of malloc() and its relatives, of C++'s new where that is an entry of its own, of mmap() and
 * brk(), in whichever file of a process has them (alloc_functions.h).
 *
 * A uprobe at each sees every call while that is cheap; past a quarter of --max-cpu, as a share of the target's CPU
 * time, it is placed in windows, whose calls stand for those in between (alloc_windows.h). Of the calls that are seen,
 * a stack is taken with the probability min(1, size/interval), and counts size/probability bytes and 1/probability
 * calls: both sums are unbiased, and each large block is seen. The interval is the one asked for, or 1, as long as few
 * stacks are taken, and doubles where they come fast.
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
	bool growth; /* only mmap() and sbrk(), also of allocators: what makes the process larger; of leak: growth.h */
	bool mapped; /* of leak: bytes of addresses are shown */
};

/* In BPF one for each CPU. */
struct alloc_counters { /* of calls that were seen */
	u64 calls, bytes;
	u64 taken;   /* of them with a stack */
	u64 inner;   /* calls that an allocator made of itself, which do not count */
	u64 strange; /* of a size that no address space holds */
};

enum alloc_clock {          /* what tells how far the program came between two windows */
	ALLOC_CLOCK_CPU,    /* CPU time without hits */
	ALLOC_CLOCK_WAITS,  /* how often it waits, and time (alloc_waits.h) */
	ALLOC_CLOCK_COUNTER /* the allocator's own count of bytes (alloc_counter.h) */
};

struct alloc_estimate {
	double calls, calls_low, calls_high; /* with 95 % certainty; all the same while every call is seen */
	double bytes, bytes_low, bytes_high;
	u64 samples, sampled_calls, sampled_bytes; /* that programs took themselves (alloc_sample.h): in these sums */
	u32 windows;                               /* 0: every call is seen */
	double part;                               /* of the time, in which calls were seen */
	double share;                              /* of the targets' CPU time, that hits took */
	double exception_ns;                       /* that a hit costs besides BPF's program; */
	bool in_target;                            /* measured there, by pairs */
	double cold_ns, cold_low, cold_high; /* that the program's code is slower by behind a hit (alloc_cold.h), */
	u32 marks;                           /* measured by so many landmarks; 0: it is a guess */
	double own;                          /* of the CPU time of windows, that was the program's own */
	enum alloc_clock clock;              /* by which windows were weighed */
};

struct alloc_summary { /* sampler_stats.of_event */
	struct alloc_counters counters;
	struct alloc_estimate estimate;
	u64 interval;        /* the largest that decided of a block by chance; 0: all have a stack */
	u32 unknown;         /* places that allocate and are not seen: alloc_places_unknown() */
	u32 missed;          /* processes: alloc_places_missed() */
	const char *from;    /* the files whose functions are probed, by their names; */
	const char *sampled; /* and those whose samples are taken */
};

/* alloc_command.c, alloc_words.c: probes/event_command.h */
extern const struct event_command alloc_command;
extern const struct event_words alloc_words;

#endif
