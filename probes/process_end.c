/* SPDX-License-Identifier: Apache-2.0 */
#include "process_end.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/binary/proc_stat.h"
#include "unwind/cleanup.h"

bool process_is_gone(pid_t pid)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool ret;

	if (end.fd < 0) /* old seccomp profiles refuse it */
		return kill(pid, 0) && errno == ESRCH;
	ret = poll(&end, 1, 0) > 0;
	close(end.fd);
	return ret;
}

static bool thread_ends(pid_t pid, const char *tid)
{
	char path[320], state;
	u32 flags;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, tid);
	return !proc_stat_read(path, &state, &flags) || flags & PF_EXITING;
}

bool process_is_ending(pid_t pid)
{
	bool ret = true;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	if (process_is_gone(pid))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (ret && (entry = readdir(dir)))
		ret = *entry->d_name == '.' || thread_ends(pid, entry->d_name);
	closedir(dir);
	return ret;
}
