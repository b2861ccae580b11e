/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time. CLOCK_MONOTONIC may differ between time namespaces (time_namespaces(7)): the kernel and BPF know the
 * host's, yrt and a target each have their own.
 */
#ifndef YRT_NOW_H
#define YRT_NOW_H

#include <errno.h>
#include <sys/types.h>
#include <time.h>

#include <types.h>

/* By how much this process's CLOCK_MONOTONIC is ahead of the host's, in ns. Set before main(). */
extern s64 now_ahead_ns;

/* The same of a clock of a process (0: this one); 0 for clocks that no namespace changes, and if it is not known. */
s64 now_ahead_of(pid_t pid, clockid_t clock);

/* The host's CLOCK_MONOTONIC, which is what bpf_ktime_get_ns() reads, too. */
static inline u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec - (u64)now_ahead_ns;
}

/* Such a moment, for calls that wait until then by CLOCK_MONOTONIC. */
static inline struct timespec now_timespec(u64 ns)
{
	ns += (u64)now_ahead_ns;
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

/* Signals do not end it. */
static inline void sleep_until_ns(u64 when)
{
	struct timespec until = now_timespec(when);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/* CPU time of this process since its start. */
static inline u64 process_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
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
