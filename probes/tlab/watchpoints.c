/* SPDX-License-Identifier: Apache-2.0 */
#include "watchpoints.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/thread_start.h"

#define BUFFER_PAGES 8
#define TRIES        3 /* addresses for one request, where the thread was faster */
#define LOOK_EACH    8
#define MEASURED     32
#define NICE         -20
#define STACK_BYTES  (128 << 10)

struct watched { /* a thread with its event */
	pid_t tgid, tid;
	int fd;
};

struct watchpoint_thread {
	struct watchpoints *all;
	pthread_t thread;
	size_t buffer; /* of perf_buffer */
	int cpu;
	bool started;
};

struct watchpoints {
	struct object *object;
	void (*collecting)(void *ctx);
	void *ctx;
	struct perf_buffer *buffers;
	struct watchpoint_thread *movers;
	size_t nmovers;
	int stop;             /* eventfd */
	pthread_mutex_t lock; /* of threads */
	struct watched *threads;
	u32 nthreads, capacity; /* open addressing, a power of two */
	atomic_ulong set, late, refused, requests;
	atomic_bool realtime;
};

static struct perf_event_attr watch_attr(u64 addr)
{
	return (struct perf_event_attr){.type = PERF_TYPE_BREAKPOINT,
	        .size = sizeof(struct perf_event_attr),
	        .bp_type = HW_BREAKPOINT_W,
	        .bp_addr = addr,
	        .bp_len = HW_BREAKPOINT_LEN_8,
	        .sample_period = 1,
	        .exclude_kernel = 1,
	        .exclude_hv = 1};
}

static int open_watch(const struct watchpoints *w, pid_t tid, u64 addr)
{
	struct perf_event_attr attr = watch_attr(addr);
	int fd;

	attr.disabled = 1;
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -1;
	if (w && ioctl(fd, PERF_EVENT_IOC_SET_BPF, tlab_object_watch_program(w->object))) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct error *none(int code)
{
	return error_hint(error_errno(code, "debug registers are not available"),
	        "a debugger or another profiler may hold them, or this virtual machine has none");
}

struct error *watchpoints_refused(void)
{
	return none(ENOSPC);
}

/* The best of some: others may run meanwhile. */
static u64 measure_trap(int fd, volatile u64 *word)
{
	u64 best = UINT64_MAX, from, took;

	ioctl(fd, PERF_EVENT_IOC_ENABLE);
	for (u32 i = 0; i < MEASURED; i++) {
		from = now_ns();
		*word = i;
		took = now_ns() - from;
		best = took < best ? took : best;
	}
	return best;
}

struct error *watchpoints_try(u64 *trap_ns)
{
	static u64 word;
	int fd = open_watch(NULL, 0, (u64)&word & ~7ull);

	if (fd < 0)
		return none(errno);
	*trap_ns = measure_trap(fd, &word);
	close(fd);
	return NULL;
}

/* The place of a thread: its own, or the free one where it belongs. Under the lock. */
static struct watched *place_of(struct watchpoints *w, pid_t tid)
{
	u32 i = (u32)tid * 0x9e3779b1u;

	while (w->threads[i & (w->capacity - 1)].tid && w->threads[i & (w->capacity - 1)].tid != tid)
		i++;
	return &w->threads[i & (w->capacity - 1)];
}

/* A table of another size, with those that still live. */
static bool rebuild(struct watchpoints *w, u32 capacity)
{
	struct watched *old = w->threads;
	u32 n = w->capacity;
	char path[64];

	w->threads = calloc(capacity, sizeof(*w->threads));
	if (!w->threads) {
		w->threads = old;
		return false;
	}
	w->capacity = capacity;
	w->nthreads = 0;
	for (u32 i = 0; i < n; i++) {
		if (!old[i].tid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d", old[i].tgid, old[i].tid);
		if (access(path, F_OK)) {
			close(old[i].fd);
			continue;
		}
		*place_of(w, old[i].tid) = old[i];
		w->nthreads++;
	}
	free(old);
	return true;
}

/* The event of a thread, made if need be. -1: there is none. */
static int event_of(struct watchpoints *w, pid_t tgid, pid_t tid, u64 addr)
{
	struct watched *t;
	int fd = -1;

	pthread_mutex_lock(&w->lock);
	t = place_of(w, tid);
	if (t->tid) {
		fd = t->fd;
	} else if (addr && (w->nthreads < w->capacity / 4 * 3 || rebuild(w, w->capacity * 2))) {
		fd = open_watch(w, tid, addr);
		if (fd >= 0) {
			*place_of(w, tid) = (struct watched){.tgid = tgid, .tid = tid, .fd = fd};
			w->nthreads++;
		}
	}
	pthread_mutex_unlock(&w->lock);
	return fd;
}

/* Watches a thread for writes to an address, or (0) for nothing. */
static bool set_watch(struct watchpoints *w, pid_t tgid, pid_t tid, u64 addr)
{
	struct perf_event_attr attr = watch_attr(addr);
	int fd = event_of(w, tgid, tid, addr);

	if (fd < 0)
		return !addr;
	/* without DISABLE first the kernel does not take the new address */
	return !ioctl(fd, PERF_EVENT_IOC_DISABLE) && (!addr || !ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
}

/* Did the thread stay behind the address? *top: how far it is. */
static bool in_time(const struct watch_request *r, u64 addr, u64 *top)
{
	u64 start = 0;
	struct iovec local[] = {{top, 8}, {&start, 8}};
	struct iovec remote[] = {{(void *)r->top_at, 8}, {(void *)r->start_at, 8}};

	*top = 0;
	if (!r->top_at)
		return true;
	if (process_vm_readv((pid_t)r->tgid, local, 2, remote, 2, 0) != 16 || start != r->watch.start) {
		*top = r->end;
		return false;
	}
	return *top <= addr;
}

/*
 * A watchpoint was hit more than once: switches it off, unless it is for something else by now. The kernel's own way, a
 * limit of events (PERF_EVENT_IOC_REFRESH), leaves a breakpoint stopped for good: hw_breakpoint_add() does not clear
 * hw.state (seen on 6.18).
 */
static void rest(struct watchpoints *w, pid_t tgid, pid_t tid, u32 key)
{
	struct alloc_watch now;

	if (tlab_object_watch(w->object, key, &now) && now.addr)
		return;
	set_watch(w, tgid, tid, 0);
	if (tlab_object_watch(w->object, key, &now) && now.addr) /* it was set meanwhile */
		set_watch(w, tgid, tid, now.addr);
}

static void watch(struct watchpoints *w, const struct watch_request *r)
{
	struct alloc_watch now = r->watch;
	u64 top;

	if (!now.addr) {
		rest(w, (pid_t)r->tgid, (pid_t)r->tid, r->key);
		return;
	}
	for (u32 i = 0; i < TRIES; i++) {
		if (!set_watch(w, (pid_t)r->tgid, (pid_t)r->tid, now.addr)) {
			w->refused++;
			return;
		}
		/* at its priority it is hardly ever late: a look now and then is enough */
		if ((w->realtime && w->set % LOOK_EACH) || in_time(r, now.addr, &top)) {
			w->set++;
			return;
		}
		w->late++;
		now.addr = (top + (u64)(-log1p(-drand48()) * (double)now.interval)) & ~7ull;
		if (now.addr >= r->end || i + 1 == TRIES)
			now.addr = 0;
		tlab_object_set_watch(w->object, r->key, &now);
	}
	set_watch(w, (pid_t)r->tgid, (pid_t)r->tid, 0);
}

static void on_request(void *ctx, int cpu, void *data, u32 size)
{
	struct watchpoints *w = ctx;
	struct watch_request r;

	if (size < sizeof(r))
		return;
	memcpy(&r, data, sizeof(r));
	w->requests++;
	if (r.tgid)
		watch(w, &r);
	else
		w->collecting(w->ctx);
}

static void on_lost(void *ctx, int cpu, unsigned long long n)
{
	((struct watchpoints *)ctx)->refused += n;
}

static void take_priority(struct watchpoint_thread *k)
{
	struct sched_param param = {.sched_priority = 1};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(k->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &param)) {
		k->all->realtime = false;
		setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	}
}

static void *keep(void *arg)
{
	struct watchpoint_thread *k = arg;
	struct watchpoints *w = k->all;
	struct pollfd fds[] = {{.fd = perf_buffer__buffer_fd(w->buffers, k->buffer), .events = POLLIN},
	        {.fd = w->stop, .events = POLLIN}};

	take_priority(k);
	while (!(fds[1].revents & POLLIN)) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		perf_buffer__consume_buffer(w->buffers, k->buffer);
	}
	return NULL;
}

/* The numbers of the CPUs that are online, in the order in which libbpf has their buffers. */
static size_t online_cpus(int *ret, size_t max)
{
	cleanup(fclose) FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	int first, last, got;
	size_t n = 0;
	char separator;

	while (file && (got = fscanf(file, "%d", &first)) == 1) {
		last = first;
		separator = (char)fgetc(file);
		if (separator == '-' && fscanf(file, "%d", &last) == 1)
			separator = (char)fgetc(file);
		for (int cpu = first; cpu <= last && n < max; cpu++)
			ret[n++] = cpu;
		if (separator != ',')
			break;
	}
	return n;
}

static struct error *start_threads(struct watchpoints *w)
{
	cleanup(free) int *cpus = calloc(CPU_SETSIZE, sizeof(*cpus));
	size_t n = cpus ? online_cpus(cpus, CPU_SETSIZE) : 0;
	pthread_attr_t attr;
	int code = 0;

	w->nmovers = perf_buffer__buffer_cnt(w->buffers);
	w->movers = calloc(w->nmovers, sizeof(*w->movers));
	if (!cpus || !w->movers)
		return &error_no_memory;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (size_t i = 0; i < w->nmovers && !code; i++) {
		w->movers[i] = (struct watchpoint_thread){.all = w, .buffer = i, .cpu = i < n ? cpus[i] : (int)i};
		code = thread_start(&w->movers[i].thread, &attr, keep, &w->movers[i]);
		w->movers[i].started = !code;
	}
	pthread_attr_destroy(&attr);
	return code ? error_errno(code, "cannot start a thread") : NULL;
}

static struct error *start(struct watchpoints *w)
{
	w->stop = eventfd(0, EFD_CLOEXEC);
	if (w->stop < 0)
		return error_errno(errno, "cannot make an eventfd");
	w->capacity = 256;
	w->threads = calloc(w->capacity, sizeof(*w->threads));
	if (!w->threads)
		return &error_no_memory;
	w->buffers = perf_buffer__new(
	        tlab_object_watchpoint_threads_fd(w->object), BUFFER_PAGES, on_request, on_lost, w, NULL);
	if (!w->buffers)
		return error_errno(errno, "cannot make buffers for requests");
	return start_threads(w);
}

struct error *watchpoints_create(struct object *o, void (*collecting)(void *ctx), void *ctx, struct watchpoints **ret)
{
	struct watchpoints *w = calloc(1, sizeof(*w));
	struct error *err;

	if (!w)
		return &error_no_memory;
	w->object = o;
	w->collecting = collecting;
	w->ctx = ctx;
	w->stop = -1;
	w->realtime = true;
	pthread_mutex_init(&w->lock, NULL);
	err = start(w);
	if (err) {
		watchpoints_destroy(w);
		return err;
	}
	*ret = w;
	return NULL;
}

void watchpoints_destroy(struct watchpoints *w)
{
	if (!w)
		return;
	if (w->stop >= 0)
		eventfd_write(w->stop, 1);
	for (size_t i = 0; i < w->nmovers; i++)
		if (w->movers && w->movers[i].started)
			pthread_join(w->movers[i].thread, NULL);
	perf_buffer__free(w->buffers);
	for (u32 i = 0; w->threads && i < w->capacity; i++)
		if (w->threads[i].tid)
			close(w->threads[i].fd);
	free(w->movers);
	free(w->threads);
	if (w->stop >= 0)
		close(w->stop);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void watchpoints_sweep(struct watchpoints *w)
{
	pthread_mutex_lock(&w->lock);
	rebuild(w, w->capacity);
	pthread_mutex_unlock(&w->lock);
}

void watchpoints_stats(struct watchpoints *w, struct watchpoints_stats *ret)
{
	struct timespec ts;
	clockid_t clock;

	*ret = (struct watchpoints_stats){.set = w->set,
	        .late = w->late,
	        .refused = w->refused,
	        .requests = w->requests,
	        .realtime = w->realtime};
	for (size_t i = 0; i < w->nmovers; i++)
		if (w->movers[i].started && !pthread_getcpuclockid(w->movers[i].thread, &clock) &&
		        !clock_gettime(clock, &ts))
			ret->thread_ns += (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}
