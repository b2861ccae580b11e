/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_ticks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capabilities.h"

struct error *cpu_ticks_open(struct cpu_ticks *t, u32 hz, int program)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct perf_event_attr attr = {.size = sizeof(attr),
	        .type = PERF_TYPE_SOFTWARE,
	        .config = PERF_COUNT_SW_CPU_CLOCK,
	        .freq = 1,
	        .sample_freq = hz};

	t->fd = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*t->fd));
	if (!t->fd)
		return &error_no_memory;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0 && errno == ENODEV) /* offline */
			continue;
		if (fd < 0)
			return capabilities_no_event(errno, "sample CPU %d", cpu);
		t->fd[t->n++] = fd;
		if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program))
			return capabilities_no_event(errno, "sample CPU %d", cpu);
	}
	return NULL;
}

void cpu_ticks_close(struct cpu_ticks *t)
{
	for (u32 i = 0; i < t->n; i++)
		close(t->fd[i]);
	free(t->fd);
	*t = (struct cpu_ticks){0};
}
