/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_NOW_H
#define YRT_NOW_H

#include <time.h>

#include <types.h>

/* CLOCK_MONOTONIC, which is what bpf_ktime_get_ns() reads, too. */
static inline u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

/* CPU time of the calling thread since its start. */
static inline u64 thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

#endif
