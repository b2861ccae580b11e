/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that does nothing at its ticks: yrt-ticks HZ PID gives each thread that PID has now the same software clock as yrt's samples
 * have, without a BPF program, until it is killed. What a target loses beside it no sampler on this machine can avoid.
 */
#include <dirent.h>
#include <err.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tick(pid_t tid, unsigned hz)
{
	struct perf_event_attr clock = {
		.size = sizeof(clock),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000u / hz,
		.inherit = 1,
	};

	if (syscall(SYS_perf_event_open, &clock, tid, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0)
		err(1, "perf_event_open for thread %d", tid);
}

int main(int argc, char **argv)
{
	unsigned hz = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
	char path[64];
	DIR *threads;

	if (!hz)
		errx(2, "usage: yrt-ticks HZ PID");
	snprintf(path, sizeof(path), "/proc/%d/task", atoi(argv[2]));
	threads = opendir(path);
	if (!threads)
		err(1, "%s", path);
	for (struct dirent *entry; (entry = readdir(threads));)
		if (entry->d_name[0] != '.')
			tick(atoi(entry->d_name), hz);
	for (;;)
		pause();
}
