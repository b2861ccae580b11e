/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of processes, since each was added. */
#ifndef YRT_ALLOC_CPU_H
#define YRT_ALLOC_CPU_H

#include <sys/types.h>
#include <time.h>
#include <types.h>

#include "unwind/error.h"

struct alloc_cpu {
	struct alloc_cpu_clock {
		pid_t pid;
		clockid_t id;
		u64 first, last;
	} * of; /* freed by the caller */
	u32 n;
};

/* One that has ended, or was added before, is no error. */
struct error *alloc_cpu_add(struct alloc_cpu *c, pid_t pid);
/* ns; those that have ended keep what they had. */
u64 alloc_cpu_sum(struct alloc_cpu *c);

#endif
