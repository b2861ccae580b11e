/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of the targets that allocate: of all targets (object_cpu_ns()) but those in which nothing was found to
 * probe. What ended before it was looked at counts: it is mostly one more of those that are probed.
 */
#ifndef YRT_ALLOC_CPU_H
#define YRT_ALLOC_CPU_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

struct object;
struct targets;

struct alloc_cpu {     /* all zero at first */
	pid_t *probed; /* processes that live */
	u32 nprobed;
	struct alloc_cpu_other { /* one in which there is nothing to probe */
		pid_t pid;       /* 0: it has ended, or is probed by now */
		u64 first, last; /* ns of CPU time */
	} * others;
	u32 nothers;
	u64 most;
};

/* One that was added before is no error. */
struct error *alloc_cpu_add(struct alloc_cpu *c, pid_t pid);
/* All targets that were not added by now are left out. */
struct error *alloc_cpu_leave_out(struct alloc_cpu *c, const struct targets *t);
/* Forgets processes that have ended, and calls ended() for each. */
void alloc_cpu_forget(struct alloc_cpu *c, void (*ended)(void *ctx, pid_t pid), void *ctx);
/* ns; it never falls. */
u64 alloc_cpu_sum(struct alloc_cpu *c, const struct object *o);
void alloc_cpu_free(struct alloc_cpu *c);

#endif
