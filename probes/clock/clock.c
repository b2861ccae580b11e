/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock_state.h"
#include "probes/capabilities.h"
#include "probes/event.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

/*
 * The clock ticks where targets are. A CPU's timer is stopped if no tick has hit a target there for two seconds, and
 * each thread of the targets is at another CPU, running or asleep. It is started again when a target's thread comes to
 * the CPU: the kernel moves it there, or it is new. A tracepoint sees that and wakes yrt.
 *
 * So nothing is lost while targets stay on CPUs that they used lately: what is not sampled is the time that yrt needs
 * to start the timer, once for a CPU and at most each two seconds. Time without ticks counts as lost (clock.bpf.h). A
 * timer that goes on keeps the rest of its period, so its first tick is at a random moment.
 *
 * Children of a target that are followed (-s) are known to BPF before they run, and what is selected (--select) is
 * looked at as soon as it is known. Only with -a all CPUs tick, as any that is not idle runs a target.
 */

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

static struct error *clock_cpus_create(const struct event_host *host, struct clock_cpus **ret)
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

/* NULL is fine */
static void clock_cpus_destroy(struct clock_cpus *c)
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

/* Opened timers tick from now on: fds[n], for each CPU, -1 for one that has none. They outlive it, or the next call. */
static void clock_cpus_set(struct clock_cpus *c, const int *fds, u32 n, u64 now)
{
	memset(states(c), CLOCK_TICKS, CLOCK_CPUS);
	memset(c->stopped, 0, sizeof(c->stopped));
	c->fds = fds;
	c->n = n;
	c->due = now + UNUSED_NS;
}

/* Is the timer of this CPU stopped? */
static bool clock_cpus_is_stopped(const struct clock_cpus *c, u32 cpu)
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

/* Starts timers that are wanted, and now and then stops those that are not. */
static void clock_cpus_poll(struct clock_cpus *c, u64 now)
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

#define CHECK_NS   1000000000
#define SAME_TICKS 16 /* ticks of a CPU with the same period */

struct timers {   /* one per CPU that was online */
	int *fds; /* of each CPU; -1: it has none */
	u32 n;
};

struct clock {
	const struct event_host *host;
	struct object *object;
	double frequency;
	struct timers timers;
	struct clock_cpus *cpus;
	long online;
	u64 created_ns, checked_ns, varied_ns;
	u32 next;                      /* timer to get another period */
	u64 phase_ns;                  /* from then until ticks are taken, at least */
	s64 cpu_at_start, cpu_at_stop; /* at_stop: 0: it runs still */
};

/* In [0, 1). */
static double random_share(void)
{
	u32 random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (u32)now_ns() * 2654435761u;
	return random / 4294967296.0;
}

static u64 tick_ns(const struct clock *c)
{
	return (u64)(1e9 / c->frequency * (0.8 + 0.15 * random_share()));
}

static void close_timers(struct timers *t)
{
	for (u32 i = 0; i < t->n; i++)
		if (t->fds[i] >= 0)
			close(t->fds[i]);
	free(t->fds);
	*t = (struct timers){0};
}

static struct error *open_timer(const struct clock *c, int cpu, struct timers *t)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
	        .type = PERF_TYPE_SOFTWARE,
	        .config = PERF_COUNT_SW_CPU_CLOCK,
	        .sample_period = tick_ns(c)};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	t->fds[t->n++] = fd;
	if (fd < 0)
		return errno == ENODEV ? NULL
		                       : capabilities_no_event(errno, "sample CPU %d", cpu); /* ENODEV: offline */
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, object_program(c->object, "on_clock"))
	               ? capabilities_no_event(errno, "sample CPU %d", cpu)
	               : NULL;
}

static struct error *open_timers(const struct clock *c, struct timers *t)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	struct error *err;

	*t = (struct timers){.fds = calloc(configured > 0 ? (size_t)configured : 1, sizeof(*t->fds))};
	err = t->fds ? NULL : &error_no_memory;
	for (int cpu = 0; !err && cpu < configured; cpu++)
		err = open_timer(c, cpu, t);
	if (err)
		close_timers(t);
	return err;
}

static void prepare(struct object *o)
{
	object_want(o, "on_clock");
	object_want(o, "on_migrate");
	object_want(o, "on_wakeup_new");
}

static void destroy(void *event)
{
	struct clock *c = event;

	if (!c)
		return;
	clock_cpus_destroy(c->cpus);
	close_timers(&c->timers);
	free(c);
}

/* The timers run from here on, but BPF takes no tick. */
static struct error *create(const struct event_host *host, void **ret)
{
	double frequency = host->options->frequency;
	struct clock *c = calloc(1, sizeof(*c));
	struct error *err;

	if (!c)
		return &error_no_memory;
	c->host = host;
	c->object = host->object;
	c->frequency = frequency;
	c->online = sysconf(_SC_NPROCESSORS_ONLN);
	c->created_ns = now_ns();
	c->phase_ns = (u64)(random_share() * 1e9 / frequency);
	object_skeleton(c->object)->bss->period_ns = (u64)(1e9 / frequency);
	object_skeleton(c->object)->bss->clock_value = 1;
	err = open_timers(c, &c->timers);
	if (!err)
		err = clock_cpus_create(host, &c->cpus);
	if (err) {
		destroy(c);
		return err;
	}
	clock_cpus_set(c->cpus, c->timers.fds, c->timers.n, now_ns());
	*ret = c;
	return NULL;
}

/* Sleeps until the first tick is due at a random moment. */
static struct error *start(void *event, bool at_exec)
{
	struct clock *c = event;

	sleep_until_ns(c->created_ns + c->phase_ns);
	c->cpu_at_start = object_cpu_ns(c->object);
	object_take_ticks(c->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

/* One timer at a time: on a machine of many CPUs each has its period for longer, but there are many. */
static void vary_period(struct clock *c, u64 now)
{
	u64 period;
	u32 cpu;

	if (!c->timers.n || (double)(now - c->varied_ns) * c->frequency < 1e9 * SAME_TICKS / c->timers.n)
		return;
	cpu = c->next++ % c->timers.n;
	c->varied_ns = now;
	if (c->timers.fds[cpu] < 0 || clock_cpus_is_stopped(c->cpus, cpu))
		return;
	period = tick_ns(c);
	ioctl(c->timers.fds[cpu], PERF_EVENT_IOC_PERIOD, &period);
}

/* The kernel ends the timer of a CPU that goes offline for good. */
static struct error *open_online(struct clock *c)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct timers timers;
	struct error *err;

	if (online == c->online)
		return NULL;
	c->online = online;
	err = open_timers(c, &timers);
	if (err)
		return err;
	close_timers(&c->timers);
	c->timers = timers;
	clock_cpus_set(c->cpus, c->timers.fds, c->timers.n, now_ns());
	return NULL;
}

/* Varies the periods, and looks for CPUs that have come online. */
static struct error *poll(void *event, u64 now)
{
	struct clock *c = event;
	struct error *err;

	vary_period(c, now);
	clock_cpus_poll(c->cpus, now);
	if (now - c->checked_ns < CHECK_NS)
		return NULL;
	c->checked_ns = now;
	err = open_online(c);
	if (err)
		c->host->options->warn(c->host->options->ctx, err);
	return NULL;
}

static struct error *stop(void *event)
{
	struct clock *c = event;

	object_take_ticks(c->object, TICKS_IGNORED);
	c->cpu_at_stop = object_final_cpu_ns(c->object);
	return NULL;
}

static void halve(void *event)
{
	struct clock *c = event;

	object_skeleton(c->object)->bss->period_ns *= 2;
}

/*
 * Samples of the CPU time that no tick stands for. Single late ticks are no loss worth reporting. A host that takes the
 * CPU away from a virtual machine makes gaps that no target ran in: more than what the scheduler counted and no sample
 * stands for was not lost.
 */
static u64 count_unticked(const struct clock *c, const struct sampler_stats *st)
{
	double samples = (double)st->probe.lost_ns / 1e9 * c->frequency, usual = 5 + (double)st->probe.weights / 200;
	double missing = st->expected - (double)st->probe.weights;

	if (samples > missing)
		samples = missing;
	return samples > usual ? (u64)samples : 0;
}

static void stats(void *event, struct sampler_stats *st)
{
	const struct clock *c = event;
	s64 now = c->cpu_at_stop ? c->cpu_at_stop : object_cpu_ns(c->object);

	st->target_cpu_s = now > c->cpu_at_start ? (double)(now - c->cpu_at_start) / 1e9 : 0;
	st->expected = st->target_cpu_s * c->frequency;
	st->lost_clock = count_unticked(c, st);
}

const struct event_ops clock_event = {
        .name = "clock",
        .command = "flame",
        .topic = TOPIC_CPU,
        .summary = "CPU time by stack, from the kernel to the line of script",
        .view = "CPU time of %s by stack, without the VM's own frames",
        .unit = "samples",
        .slots = 2, /* it can not interrupt itself; one to spare */
        .rated = true,
        .timed = true,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .stop = stop,
        .halve = halve,
        .stats = stats,
};
