/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools: what lives in them, who allocated it, who made the pool. A block of a pool has no end of its own, so a
 * pool that lives for long (of a keepalive connection, of a configuration) keeps all that was ever taken from it. To
 * malloc() it is a few pages.
 *
 * Pools of nginx and its descendants, and of APR (Apache), are known; others are described by --pool (pools_spec.h).
 * Each pool is followed from its creation to its destruction or reset; what is taken from it is counted by stack, in
 * windows if hits cost too much (alloc_windows.h). A pool that was there before the run is known from the first block
 * that is taken from it.
 *
 * The address of a new pool is taken where the function that makes it looks whether there is one ("test rax, rax" and
 * a jump, which the kernel emulates); else where it returns.
 */
#ifndef YRT_POOLS_H
#define YRT_POOLS_H

#include <stdbool.h>
#include <types.h>

#include "alloc.h"

#define POOL_PARTS 12 /* stacks of a pool that are counted in it; more of them in a table of their own */

struct pool_key {
	u64 addr;
	u32 tgid, reserved;
};

struct pool_part { /* taken from a pool by a stack */
	u64 hash;
	s64 bytes, blocks; /* less those that were freed, of all that have this size */
	u64 size;          /* of the last block */
};

struct pool {
	u64 id;
	u64 made_ns; /* 0: before the run */
	u64 maker;   /* hash of the stack that made it; 0: it is not known */
	s64 bytes, blocks;
	u64 first_ns, last_ns; /* blocks */
	struct pool_part part[POOL_PARTS];
};

struct pool_more_key {
	u64 id, hash;
};

struct pool_maker { /* of the pools that a stack made, and that are gone */
	u64 made, gone;
	u64 life_ns, bytes, most; /* most: bytes of one */
};

struct pool_counters { /* in BPF one for each CPU */
	u64 made, destroyed, reset;
	u64 freed;     /* blocks that were given back to malloc() before their pool ended, */
	u64 unmatched; /* or that no stack was found for */
	u64 full;      /* pools and stacks that no table had room for */
};

#define POOL_SPECS_MAX 16
struct pool_options { /* sampler_options.of_event */
	double older_s;
	const char *spec[POOL_SPECS_MAX];
	u32 n;
};

struct pool_summary { /* sampler_stats.of_event */
	struct pool_counters counters;
	struct alloc_counters calls;
	struct alloc_estimate estimate;
	u64 alive, older; /* pools at the end; of them those of at least older_s */
	u64 bytes;        /* in the latter */
	double older_s;
	const char *from;   /* "nginx" */
	const char *report; /* lines for people; NULL: it is not made yet */
};

/* pools_command.c, pools_words.c: probes/event_command.h */
extern const struct event_command pools_command;
extern const struct event_words pools_words;

#endif
