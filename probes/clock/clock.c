/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "clock_cpus.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probes/capabilities.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "sample.skel.h"
#include "unwind/now.h"

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
