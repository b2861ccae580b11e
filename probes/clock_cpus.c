/* SPDX-License-Identifier: Apache-2.0 */
#include "clock_cpus.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/now.h"

#define TRIES  5 /* the shortest counts: others may have run meanwhile */
#define ARMINGS 16
#define SOON_NS 50000	  /* before any other timer of the CPU */
#define TICK_NS 4000000.0 /* of the scheduler, with HZ=250 */

static int open_event(u64 config, u64 period, pid_t pid, int cpu)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = config, .sample_period = period,
		.disabled = 1, .exclude_hv = 1, .exclude_idle = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

u32 clock_cpus_online(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (u32)n : 1;
}

bool clock_cpus_open(struct clock_cpus *c, u64 tick_ns, int program)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF);

	c->n = 0;
	c->fds = configured > 0 ? calloc((size_t)configured, sizeof(*c->fds)) : NULL;
	for (int cpu = 0; c->fds && cpu < configured; cpu++) {
		int fd = open_event(PERF_COUNT_SW_CPU_CLOCK, tick_ns, -1, cpu);

		if (fd < 0)
			continue; /* offline */
		if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program))
			close(fd);
		else
			c->fds[c->n++] = fd;
	}
	if (c->n && c->n >= clock_cpus_online())
		return true;
	clock_cpus_close(c);
	return false;
}

void clock_cpus_start(const struct clock_cpus *c)
{
	for (u32 i = 0; i < c->n; i++)
		ioctl(c->fds[i], PERF_EVENT_IOC_ENABLE, 0);
}

void clock_cpus_stop(const struct clock_cpus *c)
{
	for (u32 i = 0; i < c->n; i++)
		ioctl(c->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

void clock_cpus_close(struct clock_cpus *c)
{
	for (u32 i = 0; i < c->n; i++)
		close(c->fds[i]);
	free(c->fds);
	*c = (struct clock_cpus){ 0 };
}

static u64 shortest(u64 config, u64 period)
{
	int fd = open_event(config, period, 0, -1);
	u64 ret = UINT64_MAX;

	for (u32 i = 0; fd >= 0 && i < TRIES; i++) {
		u64 begin = now_ns(), took;

		for (u32 j = 0; j < ARMINGS; j++) {
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
			ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		}
		took = (now_ns() - begin) / ARMINGS;
		ret = took < ret ? took : ret;
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

u64 clock_arming_ns(u64 tick_ns)
{
	u64 timer = shortest(PERF_COUNT_SW_CPU_CLOCK, SOON_NS), none = shortest(PERF_COUNT_SW_DUMMY, 0);
	double tick = (double)tick_ns, first = tick < TICK_NS ? 1 - tick / (2 * TICK_NS) : TICK_NS / (2 * tick);

	return timer != UINT64_MAX && timer > none ? (u64)((double)(timer - none) * first) : 0;
}
