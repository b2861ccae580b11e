/* SPDX-License-Identifier: Apache-2.0 */
#include "now.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"

s64 now_ahead_ns;

static const char *line_of(clockid_t clock)
{
	switch (clock) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
		return "monotonic";
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return "boottime";
	default:
		return NULL;
	}
}

/* The file is of the namespace that children get, which is the process's own but between unshare() and fork(). */
s64 now_ahead_of(pid_t pid, clockid_t clock)
{
	const char *wanted = line_of(clock);
	cleanup(fclose) FILE *file = NULL;
	char path[48] = "/proc/self/timens_offsets", name[16];
	long s, ns;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/timens_offsets", pid);
	file = wanted ? fopen(path, "re") : NULL; /* not there before Linux 5.6 */
	while (file && fscanf(file, "%15s %ld %ld", name, &s, &ns) == 3)
		if (!strcmp(name, wanted))
			return s * 1000000000 + ns;
	return 0;
}

__attribute__((constructor)) static void set_own(void)
{
	now_ahead_ns = now_ahead_of(0, CLOCK_MONOTONIC);
}
