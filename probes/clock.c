/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "clock_cpus.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/now.h"

#define FINE_HZ	 400 /* at least so many ticks a second see short-lived threads */
#define FINE_S	 10  /* after the last of them */
#define LOOK_NS	 20000000
#define ARMING_SHARE 50 /* one part in so many of the targets' time goes into arming their clocks: too much */
#define RATES_LEAST 8
#define PASSES_MAX 8 /* looks at a process whose threads come and go while we attach */

struct clock {
	struct clock_options options;
	int *tickers; /* perf events, one a thread */
	u32 ntickers;
	bool hardware;
	bool no_inherit_thread; /* kernels before 5.13 */
	u64 coarse_ns, fine_ns, tick_ns; /* between ticks: of either kind, at present */
	u64 looked_ns, fine_until_ns;
	u32 short_lives;
	u32 nold; /* tickers that are replaced at present; the first ones */
	bool fixed; /* replacing failed once */
	u64 closed_cpu_ns; /* that tickers which are gone had counted */
	u64 stopped_cpu_ns;
	u64 started_ns, arming_ns;
	bool arming_known;
	bool by_cpu; /* tickers only count; what ticks are cpus */
	struct clock_cpus cpus;
};

static int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags | PERF_FLAG_FD_CLOEXEC);
}

static void set_source(const struct clock *c, struct perf_event_attr *attr)
{
	if (c->by_cpu) {
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_DUMMY;
	} else if (c->hardware) {
		attr->type = PERF_TYPE_HARDWARE;
		attr->config = PERF_COUNT_HW_CPU_CYCLES;
		attr->freq = 1;
		attr->sample_freq = 1000000000 / c->tick_ns;
	} else {
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_CPU_CLOCK;
		attr->sample_period = c->tick_ns;
	}
}

static int open_ticker(struct clock *c, pid_t tid, bool on_exec)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .disabled = 1, .inherit = 1, .exclude_hv = 1,
		.enable_on_exec = on_exec, .read_format = PERF_FORMAT_TOTAL_TIME_RUNNING };
	int fd;

	set_source(c, &attr);
	attr.inherit_thread = !c->options.follow && !c->no_inherit_thread;
	fd = perf_event_open(&attr, tid, -1, -1, 0);
	if (fd < 0 && errno == EINVAL && attr.inherit_thread) {
		c->no_inherit_thread = true;
		attr.inherit_thread = 0;
		fd = perf_event_open(&attr, tid, -1, -1, 0);
	}
	if (fd >= 0 && !c->by_cpu && ioctl(fd, PERF_EVENT_IOC_SET_BPF, object_clock_program(c->options.object))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A PMU is often there in name only (virtual machines): ask for a cycle counter with our own thread. */
static bool has_cycles(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES,
		.disabled = 1, .freq = 1, .sample_freq = 1000 };
	int fd = perf_event_open(&attr, 0, -1, -1, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void use_period(struct clock *c, u64 ns)
{
	c->tick_ns = ns;
	object_set_tick(c->options.object, ns, c->hardware);
}

static void choose_periods(struct clock *c)
{
	double period = 1e9 / c->options.frequency, fine = c->options.frequency * 2 < FINE_HZ ? 1e9 / FINE_HZ : period / 2;
	u32 random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (u32)getpid() * 2654435761u;
	c->coarse_ns = (u64)(period * (0.8 + 0.15 * random / UINT32_MAX));
	c->fine_ns = (u64)fine;
	use_period(c, c->hardware ? c->fine_ns : c->coarse_ns);
}

struct error *clock_create(const struct clock_options *options, struct clock **ret)
{
	struct clock *c = calloc(1, sizeof(*c));

	if (!c)
		return &error_no_memory;
	c->options = *options;
	c->hardware = has_cycles();
	choose_periods(c);
	*ret = c;
	return NULL;
}

void clock_destroy(struct clock *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->ntickers; i++)
		close(c->tickers[i]);
	clock_cpus_close(&c->cpus);
	free(c->tickers);
	free(c);
}

static struct error *explain_open(pid_t pid, pid_t tid)
{
	if (errno == EACCES || errno == EPERM)
		return error_hint(error_errno(errno, "not permitted to sample process %d", pid),
			"run as root, or as the process's own user with CAP_PERFMON; `yrt doctor` tells more");
	if (errno == EMFILE)
		return error_hint(error_errno(errno, "cannot sample thread %d of process %d", tid, pid),
			"raise the limit of open files (ulimit -n): yrt needs one for each thread");
	return error_errno(errno, "cannot sample thread %d of process %d", tid, pid);
}

static struct error *attach_thread(struct clock *c, pid_t pid, pid_t tid, bool on_exec)
{
	int fd, *grown = realloc(c->tickers, (c->ntickers + 1) * sizeof(*grown));

	if (!grown)
		return &error_no_memory;
	c->tickers = grown;
	object_set_clocked(c->options.object, tid);
	fd = open_ticker(c, tid, on_exec);
	if (fd < 0)
		return errno == ESRCH ? NULL : explain_open(pid, tid);
	c->tickers[c->ntickers++] = fd;
	return NULL;
}

/* Opens a clock for each thread that has none yet. */
static struct error *attach_pass(struct clock *c, pid_t pid, bool on_exec)
{
	struct error *err = NULL;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !err && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && !object_has_clock(c->options.object, tid))
			err = attach_thread(c, pid, tid, on_exec);
	}
	if (dir)
		closedir(dir);
	return err;
}

/* All of its threads, those too that it makes meanwhile. */
static struct error *attach_passes(struct clock *c, pid_t pid, bool on_exec)
{
	struct error *err = NULL;

	for (u32 pass = 0; pass < PASSES_MAX; pass++) {
		u32 before = c->ntickers;

		err = attach_pass(c, pid, on_exec);
		if (err || c->ntickers == before)
			break;
	}
	return err;
}

struct error *clock_attach(struct clock *c, pid_t pid, bool on_exec)
{
	u32 first = c->ntickers;
	struct error *err;

	object_set_attaching(c->options.object, true);
	err = attach_passes(c, pid, on_exec);
	object_set_attaching(c->options.object, false);
	if (!err && c->ntickers == first)
		err = error_new(ERROR_NO_PROCESS, "process %d has exited", pid);
	return err;
}

struct error *clock_start(struct clock *c)
{
	for (u32 i = 0; i < c->ntickers; i++)
		if (ioctl(c->tickers[i], PERF_EVENT_IOC_ENABLE, 0))
			return error_errno(errno, "cannot start the clock");
	if (!c->started_ns)
		c->started_ns = now_ns();
	clock_cpus_start(&c->cpus);
	return NULL;
}

static u64 ticker_cpu_ns(int ticker)
{
	u64 value[2];

	return read(ticker, value, sizeof(value)) == sizeof(value) ? value[1] : 0;
}

static u64 read_cpu_ns(const struct clock *c)
{
	u64 sum = c->closed_cpu_ns;

	for (u32 i = c->nold; i < c->ntickers; i++)
		sum += ticker_cpu_ns(c->tickers[i]);
	return sum;
}

/* Closes the tickers from begin to end. */
static void close_tickers(struct clock *c, u32 begin, u32 end)
{
	for (u32 i = begin; i < end; i++)
		close(c->tickers[i]);
	memmove(c->tickers + begin, c->tickers + end, (c->ntickers - end) * sizeof(*c->tickers));
	c->ntickers -= end - begin;
}

/* Do targets lose much to the arming of their clocks, and would clocks of all CPUs take less than half of that? */
static bool arms_too_often(struct clock *c, u64 now)
{
	double a_cpu_second, a_second;
	u32 n;
	u64 rates = object_switch_rates(c->options.object, &n);

	if (n < RATES_LEAST || now <= c->started_ns)
		return false;
	if (!c->arming_known)
		c->arming_ns = clock_arming_ns(c->coarse_ns);
	c->arming_known = true;
	a_cpu_second = (double)rates / n;
	if (a_cpu_second * (double)c->arming_ns < 1e9 / ARMING_SHARE)
		return false;
	a_second = a_cpu_second * (double)read_cpu_ns(c) / (double)(now - c->started_ns);
	return a_second > 2.0 * clock_cpus_online() * 1e9 / (double)c->coarse_ns;
}

bool clock_outdated(struct clock *c, u64 now)
{
	u32 short_lives = object_short_lives(c->options.object);

	if (c->hardware || c->fixed || c->by_cpu || now - c->looked_ns < LOOK_NS)
		return false;
	c->looked_ns = now;
	if (arms_too_often(c, now)) {
		c->by_cpu = clock_cpus_open(&c->cpus, c->coarse_ns, object_clock_program(c->options.object));
		if (!c->by_cpu)
			c->arming_ns = 0;
		return c->by_cpu;
	}
	if (short_lives != c->short_lives)
		c->fine_until_ns = now + FINE_S * 1000000000ull;
	c->short_lives = short_lives;
	return (now < c->fine_until_ns) != (c->tick_ns == c->fine_ns);
}

void clock_replace(struct clock *c)
{
	use_period(c, c->by_cpu || c->tick_ns == c->fine_ns ? c->coarse_ns : c->fine_ns);
	object_set_by_cpu(c->options.object, c->by_cpu);
	c->nold = c->ntickers;
	object_set_attaching(c->options.object, true);
}

struct error *clock_attach_again(struct clock *c, pid_t pid)
{
	return attach_passes(c, pid, false);
}

struct error *clock_replaced(struct clock *c, struct error *failed)
{
	u32 n = c->nold;

	object_set_attaching(c->options.object, false);
	c->nold = 0;
	if (failed) {
		c->fixed = true;
		c->by_cpu = false;
		object_set_by_cpu(c->options.object, false);
		clock_cpus_close(&c->cpus);
		close_tickers(c, n, c->ntickers);
		return failed;
	}
	for (u32 i = 0; i < n; i++)
		c->closed_cpu_ns += ticker_cpu_ns(c->tickers[i]);
	close_tickers(c, 0, n);
	return clock_start(c);
}

void clock_stop(struct clock *c)
{
	for (u32 i = 0; i < c->ntickers; i++)
		ioctl(c->tickers[i], PERF_EVENT_IOC_DISABLE, 0);
	clock_cpus_stop(&c->cpus);
	c->stopped_cpu_ns = read_cpu_ns(c);
}

u64 clock_cpu_ns(const struct clock *c)
{
	return c->stopped_cpu_ns ? c->stopped_cpu_ns : read_cpu_ns(c);
}

bool clock_by_cpu(const struct clock *c)
{
	return c->by_cpu;
}

const char *clock_source(const struct clock *c)
{
	return c->hardware ? "cycles" : "cpu-clock";
}
