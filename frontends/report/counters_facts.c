/* SPDX-License-Identifier: Apache-2.0 */
/* What two readings of counters say. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "counters.h"

static const struct process_counters *process_of(const struct counters *c, pid_t pid)
{
	for (u32 i = 0; i < c->nprocesses; i++)
		if (c->processes[i].pid == pid)
			return &c->processes[i];
	return NULL;
}

static double rise(u64 before, u64 after)
{
	return after > before ? (double)(after - before) : 0;
}

static void thread_facts(const struct counters *a, const struct counters *b, double s, struct facts *f)
{
	const struct thread_counters *most = NULL;
	double wanted = 0;
	u32 busy = 0, alive = 0;

	facts_set(f, "threads", b->nthreads);
	for (u32 i = 0; i < b->nthreads; i++) {
		const struct thread_counters *now = &b->threads[i], *then = counters_thread(a, now->tid);
		double cpu, queued;

		if (!then)
			continue;
		cpu = rise(then->run_ns, now->run_ns) / 1e9 / s;
		queued = rise(then->queued_ns, now->queued_ns) / 1e9 / s;
		wanted += cpu + queued;
		busy += cpu > 0.5;
		alive += cpu > 0.01;
		facts_add(f, "queue", queued);
		facts_add(f, "switches.voluntary", rise(then->voluntary, now->voluntary) / s);
		facts_add(f, "switches.involuntary", rise(then->involuntary, now->involuntary) / s);
		if (!most || cpu + queued > facts_number(f, "thread.cpu") + facts_number(f, "thread.queue")) {
			most = now;
			facts_set(f, "thread.cpu", cpu);
			facts_set_text(f, "thread.name", now->comm);
			facts_set(f, "thread.tid", now->tid);
			facts_set(f, "thread.queue", queued);
		}
	}
	facts_set(f, "thread.wants", facts_number(f, "thread.cpu") + facts_number(f, "thread.queue"));
	facts_set(f, "others.want", wanted - facts_number(f, "thread.wants"));
	facts_set(f, "threads.busy", busy);
	facts_set(f, "threads.active", alive);
}

static void limit_facts(const struct process_counters *p, struct facts *f)
{
	if (p->has_fds && p->fd_limit && facts_raise(f, "fds.part", (double)p->fds / (double)p->fd_limit)) {
		facts_set(f, "fds", (double)p->fds);
		facts_set(f, "fds.limit", (double)p->fd_limit);
		facts_set(f, "fds.sockets", (double)p->sockets);
		facts_set(f, "fds.pid", p->pid);
	}
	if (p->memory_limit)
		facts_raise(f, "memory.rlimit.part", (double)p->rss / (double)p->memory_limit);
	facts_add(f, "rss", (double)p->rss);
	facts_add(f, "rss.anon", (double)p->anon);
	facts_add(f, "rss.file", (double)p->file);
	facts_add(f, "rss.shmem", (double)p->shmem);
	facts_add(f, "swap", (double)p->swap);
}

static void process_facts(const struct counters *a, const struct counters *b, double s, struct facts *f)
{
	double tick = (double)sysconf(_SC_CLK_TCK), busiest = 0;
	u32 busy = 0;

	facts_set(f, "processes", b->nprocesses);
	for (u32 i = 0; i < b->nprocesses; i++) {
		const struct process_counters *now = &b->processes[i], *then = process_of(a, now->pid);
		double user, system;

		limit_facts(now, f);
		if (!then)
			continue;
		user = rise(then->user, now->user) / tick / s;
		system = rise(then->system, now->system) / tick / s;
		busy += user + system > 0.05;
		busiest = user + system > busiest ? user + system : busiest;
		facts_add(f, "cpu.user", user);
		facts_add(f, "cpu.system", system);
		facts_add(f, "faults.minor", rise(then->minor, now->minor) / s);
		facts_add(f, "faults.major", rise(then->major, now->major) / s);
		facts_add(f, "io.read", rise(then->read, now->read) / s);
		facts_add(f, "io.written", rise(then->written, now->written) / s);
		facts_add(f, "io.read.calls", rise(then->read_calls, now->read_calls) / s);
		facts_add(f, "io.write.calls", rise(then->write_calls, now->write_calls) / s);
		facts_add(f, "disk.read", rise(then->read_bytes, now->read_bytes) / s);
		facts_add(f, "disk.written", rise(then->written_bytes, now->written_bytes) / s);
	}
	facts_set(f, "cpu", facts_number(f, "cpu.user") + facts_number(f, "cpu.system"));
	facts_set(f, "process.cpu", busiest);
	facts_set(f, "processes.busy", busy);
	facts_set(f, "io.calls", facts_number(f, "io.read.calls") + facts_number(f, "io.write.calls"));
	if (facts_number(f, "io.calls") > 0)
		facts_set(f, "io.size",
		        (facts_number(f, "io.read") + facts_number(f, "io.written")) / facts_number(f, "io.calls"));
	if (facts_number(f, "io.read.calls") > 0)
		facts_set(f, "io.read.size", facts_number(f, "io.read") / facts_number(f, "io.read.calls"));
	if (facts_number(f, "io.write.calls") > 0)
		facts_set(f, "io.write.size", facts_number(f, "io.written") / facts_number(f, "io.write.calls"));
}

/* CPUs that the first process may run on. */
static u32 cpus_of(const struct counters *c)
{
	cpu_set_t set;

	if (c->nprocesses && !sched_getaffinity(c->processes[0].pid, sizeof(set), &set))
		return (u32)CPU_COUNT(&set);
	return (u32)sysconf(_SC_NPROCESSORS_ONLN);
}

static void machine_facts(const struct counters *a, const struct counters *b, double s, struct facts *f)
{
	const struct machine_counters *then = &a->machine, *now = &b->machine;
	double tick = (double)sysconf(_SC_CLK_TCK), segments = rise(then->sent_segments, now->sent_segments);

	facts_set(f, "cpus", cpus_of(b));
	/* the clock of /proc/stat ticks in steps: no more than there is */
	facts_set(f, "cpus.used", fmin(cpus_of(b), rise(then->allowed_busy, now->allowed_busy) / tick / s));
	facts_set(f, "machine.cpus", (double)sysconf(_SC_NPROCESSORS_ONLN));
	facts_set(f, "machine.cpu", rise(then->busy, now->busy) / tick / s);
	facts_set(f, "machine.idle", rise(then->idle + then->iowait, now->idle + now->iowait) / tick / s);
	facts_set(f, "machine.steal", rise(then->steal, now->steal) / tick / s);
	facts_set(f, "machine.memory", (double)now->memory);
	facts_set(f, "machine.memory.available", (double)now->memory_free);
	facts_set(f, "machine.swapped",
	        rise(then->swapped_in + then->swapped_out, now->swapped_in + now->swapped_out) / s);
	facts_set(f, "pressure.cpu", rise(then->pressure_cpu, now->pressure_cpu) / 1e6 / s);
	facts_set(f, "pressure.io", rise(then->pressure_io, now->pressure_io) / 1e6 / s);
	facts_set(f, "pressure.memory", rise(then->pressure_memory, now->pressure_memory) / 1e6 / s);
	facts_set(f, "net.segments", segments / s);
	facts_set(f, "net.retransmits", segments > 0 ? rise(then->retransmits, now->retransmits) / segments : 0);
	facts_set(f, "net.overflows", rise(then->overflows, now->overflows) / s);
}

static void cgroup_facts(const struct counters *a, const struct counters *b, double s, struct facts *f)
{
	const struct cgroup_counters *then = &a->cgroup, *now = &b->cgroup;
	double periods = rise(then->periods, now->periods);

	if (!now->known)
		return;
	if (now->cpus > 0) {
		facts_set(f, "cgroup.cpus", now->cpus);
		facts_set(f, "cgroup.throttled", periods > 0 ? rise(then->throttled, now->throttled) / periods : 0);
		facts_set(f, "cgroup.throttled.s", rise(then->throttled_us, now->throttled_us) / 1e6 / s);
	}
	if (now->memory_limit) {
		facts_set(f, "cgroup.memory", (double)now->memory);
		facts_set(f, "cgroup.memory.limit", (double)now->memory_limit);
		facts_set(f, "cgroup.memory.part", (double)now->memory / (double)now->memory_limit);
		facts_set(f, "cgroup.memory.full", rise(then->memory_max_events, now->memory_max_events) / s);
		facts_set(f, "cgroup.kills", (double)now->oom_kills);
	}
	if (now->pids_limit)
		facts_set(f, "cgroup.pids.part", (double)now->pids / (double)now->pids_limit);
	if (now->pressure) {
		facts_set(f, "cgroup.pressure.cpu", rise(then->pressure_cpu, now->pressure_cpu) / 1e6 / s);
		facts_set(f, "cgroup.pressure.io", rise(then->pressure_io, now->pressure_io) / 1e6 / s);
		facts_set(f, "cgroup.pressure.memory", rise(then->pressure_memory, now->pressure_memory) / 1e6 / s);
	}
}

void counters_facts(const struct counters *before, const struct counters *after, struct facts *ret)
{
	double s = (double)(after->at_ns - before->at_ns) / 1e9;

	if (s <= 0)
		return;
	facts_set(ret, "seconds", s);
	thread_facts(before, after, s, ret);
	process_facts(before, after, s, ret);
	machine_facts(before, after, s, ret);
	cgroup_facts(before, after, s, ret);
}

/* Shared memory is touched by one process after the other, and files come and go: neither is growth. */
static double own_memory(const struct process_counters *p)
{
	return (double)(p->anon ? p->anon : p->rss) + (double)p->swap;
}

double counters_collected(const struct counters *c)
{
	double ret = 0;

	for (u32 i = 0; i < c->nprocesses; i++)
		ret += (double)c->processes[i].collected;
	return ret;
}

double counters_fds(const struct counters *c)
{
	double ret = 0;

	for (u32 i = 0; i < c->nprocesses; i++)
		ret += (double)c->processes[i].fds;
	return ret;
}

double counters_memory(const struct counters *c)
{
	double sum = 0;

	for (u32 i = 0; i < c->nprocesses; i++)
		sum += own_memory(&c->processes[i]);
	return sum;
}

double counters_memory_of(const struct counters *c, pid_t pid)
{
	const struct process_counters *p = process_of(c, pid);

	return p ? own_memory(p) : 0;
}

/* Of its memory, or, within that, of what collections left. */
static double grown(const struct process_counters *then, const struct process_counters *now)
{
	return then ? fmax(own_memory(now) - own_memory(then), (double)now->collected - (double)then->collected) : 0;
}

pid_t counters_growing(const struct counters *before, const struct counters *after, double *had)
{
	double most = 0;
	pid_t ret = 0;

	for (u32 i = 0; i < after->nprocesses; i++) {
		const struct process_counters *then = process_of(before, after->processes[i].pid);
		double bytes = grown(then, &after->processes[i]);

		if (bytes <= most)
			continue;
		most = bytes;
		*had = own_memory(then);
		ret = after->processes[i].pid;
	}
	return ret;
}

void counters_growth(const struct counters *before, const struct counters *after, struct facts *ret)
{
	double s = (double)(after->at_ns - before->at_ns) / 1e9, rss = 0, collected = 0, fds = 0, threads = 0;

	for (u32 i = 0; s > 0 && i < after->nprocesses; i++) {
		const struct process_counters *now = &after->processes[i], *then = process_of(before, now->pid);

		if (!then)
			continue;
		rss += own_memory(now) - own_memory(then);
		collected += (double)now->collected - (double)then->collected;
		fds += (double)now->fds - (double)then->fds;
		threads += (double)now->threads - (double)then->threads;
	}
	if (s <= 0 || !after->nprocesses)
		return;
	facts_set(ret, "growth.seconds", s);
	facts_set(ret, "growth.rss", rss / s);
	facts_set(ret, "growth.collected", collected / s);
	if (facts_find(ret, "fds"))
		facts_set(ret, "growth.fds", fds / s);
	if (fds > 0)
		facts_set(ret, "fds.left", (facts_number(ret, "fds.limit") - facts_number(ret, "fds")) / (fds / s));
	facts_set(ret, "growth.threads", threads / s);
}
