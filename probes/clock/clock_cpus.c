/* SPDX-License-Identifier: Apache-2.0 */
#include "clock_cpus.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "clock_state.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

#define UNUSED_NS  2000000000ull /* without a tick that hits a target */
#define THREAD_NS  10000000ull   /* between two looks for each thread: a thousandth of a CPU */
#define STAT_AFTER 36 /* fields of /proc/PID/task/TID/stat from the one behind the name to the CPU, proc(5) */

struct clock_cpus {
	const struct event_host *host;
	struct bpf_link *on_migrate, *on_wakeup_new; /* NULL: all CPUs tick */
	const int *fds;
	u32 n;
	u64 due;
	u8 used[CLOCK_CPUS];
	u64 since[CLOCK_CPUS]; /* its timer was started; 0: it was not stopped yet */
};

struct error *clock_cpus_create(const struct event_host *host, struct clock_cpus **ret)
{
	struct sample *skel = object_skeleton(host->object);
	struct clock_cpus *c = calloc(1, sizeof(*c));

	if (!c)
		return &error_no_memory;
	c->host = host;
	*ret = c;
	if (host->options->everyone || host->options->follow || host->options->selection)
		return NULL;
	c->on_migrate = bpf_program__attach(skel->progs.on_migrate);
	c->on_wakeup_new = c->on_migrate ? bpf_program__attach(skel->progs.on_wakeup_new) : NULL;
	return NULL;
}

void clock_cpus_destroy(struct clock_cpus *c)
{
	if (!c)
		return;
	bpf_link__destroy(c->on_migrate);
	bpf_link__destroy(c->on_wakeup_new);
	free(c);
}

static u8 *states(const struct clock_cpus *c)
{
	return object_skeleton(c->host->object)->bss->clock_state;
}

void clock_cpus_set(struct clock_cpus *c, const int *fds, u32 n, u64 now)
{
	memset(states(c), CLOCK_TICKS, CLOCK_CPUS);
	c->fds = fds;
	c->n = n;
	c->due = now + UNUSED_NS;
}

bool clock_cpus_is_stopped(const struct clock_cpus *c, u32 cpu)
{
	return cpu < CLOCK_CPUS && states(c)[cpu] != CLOCK_TICKS;
}

static void start_timer(struct clock_cpus *c, u32 cpu, u64 now)
{
	c->since[cpu] = now;
	states(c)[cpu] = CLOCK_TICKS;
	ioctl(c->fds[cpu], PERF_EVENT_IOC_ENABLE, 0);
}

/* A target that comes there from now on is seen. */
static void stop_timer(struct clock_cpus *c, u32 cpu)
{
	__atomic_store_n(&states(c)[cpu], CLOCK_STOPPED, __ATOMIC_SEQ_CST);
	ioctl(c->fds[cpu], PERF_EVENT_IOC_DISABLE, 0);
}

/* The CPU that a thread is at, or was at last; -1: it is gone. */
static int cpu_of(pid_t pid, const char *tid)
{
	char path[64], stat[1024];
	cleanup(fclose) FILE *f = NULL;
	const char *at;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", pid, tid);
	f = fopen(path, "re");
	n = f ? fread(stat, 1, sizeof(stat) - 1, f) : 0;
	stat[n] = '\0';
	at = strrchr(stat, ')');
	for (u32 i = 0; at && i <= STAT_AFTER; i++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at + 1) : -1;
}

/* False: they cannot be listed. */
static bool mark_threads(struct clock_cpus *c, pid_t pid, u32 *threads)
{
	char path[64];
	DIR *dir;
	struct dirent *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT;
	while ((d = readdir(dir))) {
		int cpu = *d->d_name == '.' ? -1 : cpu_of(pid, d->d_name);

		if (cpu >= 0 && cpu < CLOCK_CPUS)
			c->used[cpu] = 1;
		(*threads)++;
	}
	closedir(dir);
	return true;
}

/* Which CPUs do targets use? False: it is not known. */
static bool look(struct clock_cpus *c, u64 now, u32 *threads)
{
	cleanup(free) struct probe_stats *each = object_cpu_stats(c->host->object);
	const struct targets *t = c->host->targets;

	if (!each)
		return false;
	for (u32 i = 0; i < c->n && i < CLOCK_CPUS; i++)
		c->used[i] = now < each[i].hit_ns + UNUSED_NS || now < c->since[i] + UNUSED_NS;
	for (u32 i = 0; i < t->nprocesses; i++)
		if (!t->processes[i]->dead && !mark_threads(c, t->processes[i]->pid, threads))
			return false;
	return true;
}

static void start_wanted(struct clock_cpus *c, u64 now)
{
	for (u32 i = 0; i < c->n && i < CLOCK_CPUS; i++)
		if (states(c)[i] == CLOCK_WANTED)
			start_timer(c, i, now);
}

void clock_cpus_poll(struct clock_cpus *c, u64 now)
{
	u32 threads = 0;
	bool known;

	if (!c->on_wakeup_new)
		return;
	start_wanted(c, now);
	if (now < c->due)
		return;
	known = look(c, now, &threads);
	for (u32 i = 0; i < c->n && i < CLOCK_CPUS; i++) {
		if (c->fds[i] < 0)
			continue;
		if (states(c)[i] == CLOCK_TICKS && known && !c->used[i])
			stop_timer(c, i);
		else if (states(c)[i] != CLOCK_TICKS && (!known || c->used[i]))
			start_timer(c, i, now);
	}
	c->due = now + (threads * THREAD_NS > UNUSED_NS ? threads * THREAD_NS : UNUSED_NS);
}
