/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_path.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proc_stat.h"

/* Of a thread: the process's own sums the times of all its threads. */
static bool thread_lives(const char *proc, pid_t pid, pid_t tid)
{
	char path[PATH_MAX], state;
	u32 flags;

	snprintf(path, sizeof(path), "%s/%d/task/%d/stat", proc, pid, tid);
	return proc_stat_read(path, &state, &flags) && !(flags & PF_EXITING);
}

pid_t living_thread_in(const char *proc, pid_t pid)
{
	char path[PATH_MAX];
	struct dirent *entry;
	pid_t ret = 0;
	DIR *dir;

	if (thread_lives(proc, pid, pid))
		return pid;
	snprintf(path, sizeof(path), "%s/%d/task", proc, pid);
	dir = opendir(path);
	if (!dir)
		return !kill(pid, 0) || errno == EPERM ? pid : 0;
	while (!ret && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && thread_lives(proc, pid, tid))
			ret = tid;
	}
	closedir(dir);
	return ret;
}

pid_t living_thread(pid_t pid)
{
	return living_thread_in("/proc", pid);
}

bool process_is_gone(pid_t pid)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool ret;

	if (end.fd < 0) /* old seccomp profiles refuse it */
		return !living_thread(pid);
	ret = poll(&end, 1, 0) > 0;
	close(end.fd);
	return ret;
}

/* As long as a thread has memory, /proc shows it and the files. A tenth of the price of a look at its stat. */
static bool has_memory(pid_t tid)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {NULL, 1};

	return process_vm_readv(tid, &to, 1, &from, 1, 0) >= 0 || errno == EFAULT;
}

void proc_path(char *ret, size_t size, pid_t pid, const char *name)
{
	pid_t tid = has_memory(pid) ? pid : living_thread(pid);

	snprintf(ret, size, "/proc/%d/%s", tid ? tid : pid, name);
}

void proc_map_path(char ret[PROC_MAP_PATH], pid_t tid, u64 start, u64 end)
{
	snprintf(ret, PROC_MAP_PATH, "/proc/%d/map_files/%lx-%lx", tid, start, end);
}
