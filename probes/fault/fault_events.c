/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/capabilities.h"

static struct error *open_one(struct fault_events *f, int program, int cpu, u64 config)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
	        .type = PERF_TYPE_SOFTWARE,
	        .config = config,
	        .sample_period = 1,
	        .sample_type = PERF_SAMPLE_ADDR};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ENODEV
		               ? NULL
		               : capabilities_no_event(errno, "watch page faults of CPU %d", cpu); /* ENODEV: offline */
	f->fds[f->n++] = fd;
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, program)
	               ? capabilities_no_event(errno, "watch page faults of CPU %d", cpu)
	               : NULL;
}

struct error *fault_events_open(int program, struct fault_events *ret)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct error *err;

	*ret = (struct fault_events){.fds = calloc(cpus > 0 ? (size_t)cpus * 2 : 2, sizeof(*ret->fds))};
	err = ret->fds ? NULL : &error_no_memory;
	for (int cpu = 0; !err && cpu < cpus; cpu++) {
		err = open_one(ret, program, cpu, PERF_COUNT_SW_PAGE_FAULTS_MIN);
		if (!err)
			err = open_one(ret, program, cpu, PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	}
	return err;
}

void fault_events_close(struct fault_events *f)
{
	for (u32 i = 0; i < f->n; i++)
		close(f->fds[i]);
	free(f->fds);
	*f = (struct fault_events){0};
}
