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

#define UNUSED_NS  2000000000ull /* without a tick that hits a target */
#define THREAD_NS  10000000ull   /* between two looks for each thread: a thousandth of a CPU */
#define SOONER     10            /* times as often if processes were chosen meanwhile */
#define STAT_AFTER 36 /* fields of /proc/PID/task/TID/stat from the one behind the name to the CPU, proc(5) */

struct clock_cpus {
	const struct event_host *host;
	struct bpf_link *on_migrate, *on_wakeup_new; /* NULL: all CPUs tick */
	const int *fds;
	u32 n;
	u64 due, sooner; /* the next look, and if a process was chosen since the last one */
	u32 seen;        /* processes, at the last look */
	u8 used[CLOCK_CPUS];
	bool stopped[CLOCK_CPUS];
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
	if (host->options->everyone)
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
	memset(c->stopped, 0, sizeof(c->stopped));
	c->fds = fds;
	c->n = n;
	c->due = now + UNUSED_NS;
}

bool clock_cpus_is_stopped(const struct clock_cpus *c, u32 cpu)
{
	return cpu < CLOCK_CPUS && c->stopped[cpu];
}

static bool has_timer(const struct clock_cpus *c, u32 cpu)
{
	return cpu < c->n && cpu < CLOCK_CPUS && c->fds[cpu] >= 0;
}

static void start_timer(struct clock_cpus *c, u32 cpu, u64 now)
{
	c->since[cpu] = now;
	c->stopped[cpu] = false;
	states(c)[cpu] = CLOCK_TICKS;
	ioctl(c->fds[cpu], PERF_EVENT_IOC_ENABLE, 0);
}

static void stop_timer(struct clock_cpus *c, u32 cpu)
{
	c->stopped[cpu] = true;
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

/*
 * Marks the CPUs on which no tick has hit a target of late. A target that comes there from now on is seen, so what the
 * threads' CPUs are is asked after that.
 */
static bool mark_unused(struct clock_cpus *c, u64 now)
{
	cleanup(free) struct probe_stats *each = object_cpu_stats(c->host->object);
	u8 *state = states(c);

	for (u32 i = 0; each && i < CLOCK_CPUS && i < c->n; i++) {
		bool came = !c->stopped[i] && state[i] != CLOCK_TICKS;

		if (came)
			c->since[i] = now;
		c->used[i] = came || now < each[i].hit_ns + UNUSED_NS || now < c->since[i] + UNUSED_NS;
		if (c->used[i] && !c->stopped[i])
			state[i] = CLOCK_TICKS;
		else
			__atomic_store_n(&state[i], CLOCK_STOPPED, __ATOMIC_SEQ_CST);
	}
	return each;
}

/* Which CPUs do targets use? False: it is not known. */
static bool look(struct clock_cpus *c, u64 now, u32 *threads)
{
	const struct targets *t = c->host->targets;

	if (!mark_unused(c, now))
		return false;
	for (u32 i = 0; i < t->nprocesses; i++)
		if (!t->processes[i]->dead && !mark_threads(c, t->processes[i]->pid, threads))
			return false;
	return true;
}

static void start_wanted(struct clock_cpus *c, u64 now)
{
	for (u32 i = 0; i < c->n && i < CLOCK_CPUS; i++)
		if (c->stopped[i] && states(c)[i] != CLOCK_STOPPED)
			start_timer(c, i, now);
}

/* A process that was chosen while it ran already came to its CPU unseen. */
static bool is_due(const struct clock_cpus *c, u64 now)
{
	return now >= c->due || (c->host->options->selection && c->seen != c->host->targets->seen && now >= c->sooner);
}

void clock_cpus_poll(struct clock_cpus *c, u64 now)
{
	u32 threads = 0;
	bool known;

	if (!c->on_wakeup_new)
		return;
	start_wanted(c, now);
	if (!is_due(c, now))
		return;
	c->seen = c->host->targets->seen;
	known = look(c, now, &threads);
	for (u32 i = 0; i < c->n && i < CLOCK_CPUS; i++) {
		bool used = !known || c->used[i] || states(c)[i] != CLOCK_STOPPED;

		if (!has_timer(c, i))
			continue;
		if (used && c->stopped[i])
			start_timer(c, i, now);
		else if (used)
			states(c)[i] = CLOCK_TICKS;
		else if (!c->stopped[i])
			stop_timer(c, i);
	}
	c->due = now + (threads * THREAD_NS > UNUSED_NS ? threads * THREAD_NS : UNUSED_NS);
	c->sooner = now + threads * THREAD_NS / SOONER;
}
