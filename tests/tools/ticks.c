/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that does nothing at its ticks: yrt-ticks HZ gives each CPU the same timer as yrt's samples have, without a
 * BPF program, until it is killed. What a target loses beside it no sampler on this machine can avoid.
 */
#include <err.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tick(int cpu, unsigned hz)
{
	struct perf_event_attr clock = {
	        .size = sizeof(clock),
	        .type = PERF_TYPE_SOFTWARE,
	        .config = PERF_COUNT_SW_CPU_CLOCK,
	        .sample_period = 1000000000u / hz,
	};

	if (syscall(SYS_perf_event_open, &clock, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC) < 0 && errno != ENODEV)
		err(1, "perf_event_open for CPU %d", cpu);
}

int main(int argc, char **argv)
{
	unsigned hz = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (!hz)
		errx(2, "usage: yrt-ticks HZ");
	for (int cpu = 0; cpu < cpus; cpu++)
		tick(cpu, hz);
	for (;;)
		pause();
}
