/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_watch.h"

#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/now.h"

#define TRIES    8 /* threads may begin while others are being watched: then all over again */
#define MEASURED 32

struct watched {
	pid_t tid;
	int fd; /* -1: it ended meanwhile */
};

struct thread_watch {
	struct thread_watch_options options;
	struct watched *threads;
	u32 n;
};

static int open_event(const struct thread_watch_options *o, pid_t tid)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
	        .size = sizeof(attr),
	        .bp_type = o->executed ? HW_BREAKPOINT_X : HW_BREAKPOINT_RW,
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

static struct error *refuse(const struct thread_watch *w, int code)
{
	if (code == ENOSPC)
		return error_hint(
		        error_new(ERROR_UNSUPPORTED, "all debug registers of process %d are in use", w->options.pid),
		        "a debugger or another profiler has them: each thread has four");
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

/* Each thread that is there now. *unknown: of them not watched before; they are if watch is set. */
static struct error *each_thread(struct thread_watch *w, bool watch, u32 *unknown)
{
	struct error *err = NULL;
	char path[64];
	DIR *dir;

	*unknown = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", w->options.pid);
	dir = opendir(path);
	if (!dir)
		return error_new(ERROR_NO_PROCESS, "process %d has ended", w->options.pid);
	for (struct dirent *e; !err && (e = readdir(dir));) {
		pid_t tid = atoi(e->d_name);

		if (tid <= 0 || (watch ? false : is_watched(w, tid)))
			continue;
		++*unknown;
		if (watch)
			err = watch_thread(w, tid);
	}
	closedir(dir);
	return err;
}

static void forget(struct thread_watch *w)
{
	for (u32 i = 0; i < w->n; i++)
		if (w->threads[i].fd >= 0)
			close(w->threads[i].fd);
	w->n = 0;
}

/*
 * All threads, each once. One that begins meanwhile is watched if its creator was then, which nobody can tell: so
 * nothing is enabled until no thread has begun.
 */
static struct error *watch_all(struct thread_watch *w)
{
	struct error *err = NULL;
	u32 n, missed = 1;

	for (u32 i = 0; !err && missed && i < TRIES; i++) {
		forget(w);
		err = each_thread(w, true, &n);
		if (!err)
			err = each_thread(w, false, &missed);
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
