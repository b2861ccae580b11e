/* SPDX-License-Identifier: Apache-2.0 */
#include "pause.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "binary/proc_path.h"
#include "binary/proc_stat.h"
#include "grow.h"

#define ROUNDS_MAX 100 /* of looking for new threads: those that are stopped make none */

static bool has(const struct pause *p, pid_t tid)
{
	for (u32 i = 0; i < p->n; i++)
		if (p->threads[i].tid == tid)
			return true;
	return false;
}

/* False: it has ended. */
static bool wait_for_stop(struct paused_thread *t)
{
	int status;
	pid_t got;

	do
		got = waitpid(t->tid, &status, __WALL);
	while (got < 0 && errno == EINTR);
	if (got != t->tid || !WIFSTOPPED(status))
		return false;
	if (status >> 16 != PTRACE_EVENT_STOP) /* it was about to take a signal */
		t->signal = WSTOPSIG(status);
	return true;
}

/* Of such a thread the kernel says EPERM: the first one stays in /proc until the last one ends. */
static bool has_ended(pid_t pid, pid_t tid)
{
	char path[64], state;
	u32 flags;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	return !proc_stat_read(path, &state, &flags) || state == 'Z' || state == 'X';
}

static struct error *stop(struct pause *p, pid_t pid, pid_t tid)
{
	struct error *err = grow(&p->threads, p->n, sizeof(*p->threads));
	struct paused_thread t = {.tid = tid};
	int code;

	if (err)
		return err;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		code = errno;
		if (code == ESRCH || has_ended(pid, tid))
			return NULL;
		return error_hint(error_errno(code, "cannot stop thread %d of process %d", tid, pid),
		        "a debugger or strace may be attached to it; without --pause it is read while it runs");
	}
	if (!ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) && wait_for_stop(&t))
		p->threads[p->n++] = t;
	return NULL;
}

static struct error *stop_new(struct pause *p, pid_t pid, DIR *dir)
{
	struct error *err = NULL;
	struct dirent *e;

	rewinddir(dir);
	while (!err && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]) && !has(p, atoi(e->d_name)))
			err = stop(p, pid, atoi(e->d_name));
	return err;
}

struct error *pause_begin(pid_t pid, struct pause *ret)
{
	char path[64];
	DIR *dir;
	struct error *err = NULL;
	u32 before;

	*ret = (struct pause){0};
	proc_path(path, sizeof(path), pid, "task");
	dir = opendir(path);
	if (!dir)
		return error_errno(errno, "cannot list the threads of process %d", pid);
	for (u32 i = 0; !err && i < ROUNDS_MAX; i++) {
		before = ret->n;
		err = stop_new(ret, pid, dir);
		if (ret->n == before)
			break;
	}
	closedir(dir);
	if (err)
		pause_end(ret);
	return err;
}

void pause_end(struct pause *p)
{
	for (u32 i = 0; i < p->n; i++)
		ptrace(PTRACE_DETACH, p->threads[i].tid, NULL, (void *)(long)p->threads[i].signal);
	free(p->threads);
	*p = (struct pause){0};
}
