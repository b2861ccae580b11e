/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_watch.h"

#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unwind/binary/proc_path.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"
#include "unwind/process/comm.h"

#define TRIES       8        /* threads may begin while others are being watched: then all over again */
#define SETTLE_NS   20000000 /* two of the ticks in which /proc says when a thread began */
#define MEASURED    32
#define HOLDERS_MAX 16 /* processes that are named */

struct watched {
	pid_t tid;
	int fd; /* -1: it ended meanwhile */
};

struct thread_watch {
	struct thread_watch_options options;
	struct watched *threads;
	u32 n;
	u64 passed; /* when all had been opened (ticks_now()) */
	u32 missed; /* threads that began meanwhile, and nobody can tell whether they are watched */
};

static int open_event(const struct thread_watch_options *o, pid_t tid)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
	        .size = sizeof(attr),
	        .bp_type = o->executed  ? HW_BREAKPOINT_X
	                   : o->written ? HW_BREAKPOINT_W
	                                : HW_BREAKPOINT_RW,
	        .bp_addr = o->addr,
	        .bp_len = o->executed ? sizeof(long) : o->bytes,
	        .sample_period = 1,
	        .disabled = 1,
	        .inherit = 1,
	        .inherit_thread = 1,
	        .exclude_kernel = 1,
	        .exclude_hv = 1};

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* As many files as are permitted: each thread takes one. */
static void want_files(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Who traces it, as a debugger does; 0: nobody, as far as it can be read. */
static pid_t tracer_of(pid_t pid)
{
	cleanup(fclose) FILE *file = NULL;
	char path[64], line[256];
	int ret;

	proc_path(path, sizeof(path), pid, "status");
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "TracerPid: %d", &ret) == 1)
			return ret;
	return 0;
}

/* Has it events of perf_event_open()? Debug registers are such. */
static bool has_events(pid_t pid)
{
	char path[64], link[64];
	bool ret = false;
	DIR *dir;

	proc_path(path, sizeof(path), pid, "fd");
	dir = opendir(path);
	for (struct dirent *e; dir && !ret && (e = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		ret = !strcmp(link, "anon_inode:[perf_event]");
	}
	if (dir)
		closedir(dir);
	return ret;
}

/* "gdb (4242), perf (4243)": who may have them; "" if nobody is found. */
static void find_holders(pid_t pid, char *ret, size_t size)
{
	pid_t tracer = tracer_of(pid), other;
	char comm[COMM_TEXT];
	DIR *dir = opendir("/proc");
	size_t len = 0;
	u32 n = 0;

	*ret = '\0';
	for (struct dirent *e; dir && n < HOLDERS_MAX && (e = readdir(dir));) {
		other = atoi(e->d_name);
		if (other <= 0 || other == getpid() || (other != tracer && !has_events(other)))
			continue;
		comm_read(other, comm);
		len += (size_t)snprintf(ret + len, size - len, "%s%s (%d)", n++ ? ", " : "", comm, other);
	}
	if (dir)
		closedir(dir);
}

static struct error *refuse_all(pid_t pid)
{
	struct error *err = error_new(ERROR_UNSUPPORTED, "all debug registers of process %d are in use", pid);
	char holders[HOLDERS_MAX * (COMM_TEXT + 16)];

	find_holders(pid, holders, sizeof(holders));
	if (*holders)
		return error_hint(err, "each thread has four, for all tools together; who may have them: %s", holders);
	return error_hint(err, "a debugger or another profiler has them: each thread has four");
}

static struct error *refuse(const struct thread_watch *w, int code)
{
	if (code == ENOSPC)
		return refuse_all(w->options.pid);
	if (code == EMFILE)
		return error_hint(error_errno(code, "cannot watch all threads of process %d", w->options.pid),
		        "raise the limit of open files (ulimit -n)");
	return error_hint(error_errno(code, "debug registers are not available"),
	        "this virtual machine may have none, or the kernel refuses perf_event_open()");
}

static struct error *watch_thread(struct thread_watch *w, pid_t tid)
{
	struct error *err = grow(&w->threads, w->n, sizeof(*w->threads));
	int fd = err ? -1 : open_event(&w->options, tid), code = errno;

	if (err || (fd < 0 && code != ESRCH))
		return err ? err : refuse(w, code);
	w->threads[w->n++] = (struct watched){.tid = tid, .fd = fd};
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, w->options.program))
		return error_errno(errno, "cannot run a program at a debug register");
	return NULL;
}

static bool is_watched(const struct thread_watch *w, pid_t tid)
{
	for (u32 i = 0; i < w->n; i++)
		if (w->threads[i].tid == tid)
			return true;
	return false;
}

/* Calls each() for all threads that are there now. */
static struct error *for_threads(struct thread_watch *w, struct error *(*each)(struct thread_watch *w, pid_t tid))
{
	struct error *err = NULL;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", w->options.pid);
	dir = opendir(path);
	if (!dir)
		return error_new(ERROR_NO_PROCESS, "process %d has ended", w->options.pid);
	for (struct dirent *e; !err && (e = readdir(dir));)
		if (atoi(e->d_name) > 0)
			err = each(w, atoi(e->d_name));
	closedir(dir);
	return err;
}

/* In clock ticks since the machine started, as /proc/PID/stat has them. */
static u64 ticks_now(void)
{
	struct timespec t;
	u64 hz = (u64)sysconf(_SC_CLK_TCK);

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (u64)t.tv_sec * hz + (u64)t.tv_nsec * hz / 1000000000;
}

/* When a thread began; 0: it has ended. */
static u64 began(pid_t pid, pid_t tid)
{
	cleanup(fclose) FILE *file = NULL;
	char path[64], line[1024], *end;
	u64 ticks;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file) || !(end = strrchr(line, ')')) ||
	        sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lu",
	                &ticks) != 1)
		return 0;
	return ticks;
}

/* Was it there before all others were watched, and is not itself? What began later inherits the watch. */
static struct error *check_thread(struct thread_watch *w, pid_t tid)
{
	u64 ticks = is_watched(w, tid) ? 0 : began(w->options.pid, tid);

	w->missed += ticks && ticks <= w->passed;
	return NULL;
}

static void forget(struct thread_watch *w)
{
	for (u32 i = 0; i < w->n; i++)
		if (w->threads[i].fd >= 0)
			close(w->threads[i].fd);
	w->n = 0;
}

static struct error *count_missed(struct thread_watch *w)
{
	w->missed = 0;
	return for_threads(w, check_thread);
}

/*
 * All threads, each once. One that begins meanwhile is watched if its creator was then, which nobody can tell: so all
 * over again, unless it began later or has ended by the time that this is known. What is left is counted.
 */
static struct error *watch_all(struct thread_watch *w)
{
	struct error *err = NULL;

	w->missed = 1;
	for (u32 i = 0; !err && w->missed && i < TRIES; i++) {
		forget(w);
		err = for_threads(w, watch_thread);
		w->passed = ticks_now();
		if (!err)
			err = count_missed(w);
		if (!err && w->missed) {
			nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
			err = count_missed(w);
		}
	}
	return err;
}

struct error *thread_watch_open(const struct thread_watch_options *o, struct thread_watch **ret)
{
	struct thread_watch *w = calloc(1, sizeof(*w));
	struct error *err;

	if (!w)
		return &error_no_memory;
	w->options = *o;
	want_files();
	err = watch_all(w);
	if (err) {
		thread_watch_close(w);
		return err;
	}
	for (u32 i = 0; i < w->n; i++)
		if (w->threads[i].fd >= 0)
			ioctl(w->threads[i].fd, PERF_EVENT_IOC_ENABLE);
	*ret = w;
	return NULL;
}

u32 thread_watch_missed(const struct thread_watch *w)
{
	return w->missed;
}

void thread_watch_close(struct thread_watch *w)
{
	if (!w)
		return;
	forget(w);
	free(w->threads);
	free(w);
}

u64 thread_watch_cost(void)
{
	static volatile u64 word;
	const struct thread_watch_options o = {.addr = (u64)&word, .bytes = 8};
	u64 best = UINT64_MAX, from, took;
	int fd = open_event(&o, 0);

	if (fd < 0)
		return 0;
	ioctl(fd, PERF_EVENT_IOC_ENABLE);
	for (u32 i = 0; i < MEASURED; i++) {
		from = now_ns();
		word = i;
		took = now_ns() - from;
		best = took < best ? took : best;
	}
	close(fd);
	return best;
}
