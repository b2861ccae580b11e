/* SPDX-License-Identifier: Apache-2.0 */
/* Some samples of the clock, for the stacks of threads that are on a CPU: only the CPU itself has their registers. */
#ifndef YRT_BURST_H
#define YRT_BURST_H

#include <sys/types.h>

#include "unwind/profile/collect.h"

struct burst;

struct burst_options {
	struct collect_options collect;
	u32 depth;
	bool no_user, no_kernel;
	const char *cache_dir;
	void (*warn)(void *ctx, struct error *err);
	void *ctx;
};

struct burst_thread {
	pid_t pid;
	u32 tid;
	bool seen; /* set by burst_take() */
};

/* Samples their processes for a moment. Reasons why some could not be sampled are reported through warn. */
struct error *burst_take(const struct burst_options *options, struct burst_thread *threads, u32 n, struct burst **ret);
/* Adds each thread's most frequent stack to a finished profile, below a node of the thread. */
struct error *burst_graft(const struct burst *b, const struct burst_thread *threads, u32 n, struct profile *to);
void burst_destroy(struct burst *b);

#endif
