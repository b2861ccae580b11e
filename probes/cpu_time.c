/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_time.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "unwind/cleanup.h"

static u64 to_ns(const struct timespec *ts)
{
	return (u64)ts->tv_sec * 1000000000 + (u64)ts->tv_nsec;
}

u64 cpu_of_process(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return to_ns(&ts);
}

u64 cpu_of_machine(void)
{
	cleanup(fclose) FILE *file = fopen("/proc/stat", "re");
	unsigned long user, nice, system;

	if (!file || fscanf(file, "cpu %lu %lu %lu", &user, &nice, &system) != 3)
		return 0;
	return (user + nice + system) * (1000000000 / (u64)sysconf(_SC_CLK_TCK));
}
