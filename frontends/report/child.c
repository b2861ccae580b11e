/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unwind/now.h"

#define PIECE_NS 20000000

static pid_t wait_until(pid_t child, u64 until, int *status)
{
	pid_t ended;

	do {
		ended = waitpid(child, status, until ? WNOHANG : 0);
		if (!ended)
			nanosleep(&(struct timespec){.tv_nsec = PIECE_NS}, NULL);
	} while (!(ended == child || (ended < 0 && errno != EINTR)) && (!until || now_ns() < until));
	return ended;
}

struct error *child_wait(pid_t child, u64 until, int *status, bool *late)
{
	pid_t ended = wait_until(child, until, status);

	*late = false;
	if (!ended) {
		kill(child, SIGINT);
		ended = wait_until(child, now_ns() + (u64)(CHILD_GRACE_S * 1e9), status);
	}
	if (!ended) {
		*late = true;
		kill(child, SIGKILL);
		ended = wait_until(child, 0, status);
	}
	return ended < 0 ? error_errno(errno, "cannot wait for pid %d", child) : NULL;
}

struct error *child_yrt(const char *const *arguments, const char *output, u64 until)
{
	struct error *err;
	int status = 0;
	bool late;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		if (output && (!freopen(output, "w", stdout) || !freopen("/dev/null", "w", stderr)))
			_exit(ERROR_OUTPUT);
		execv("/proc/self/exe", (char **)arguments);
		_exit(ERROR_INTERNAL);
	}
	if (child < 0)
		return error_errno(errno, "cannot start a process");
	err = child_wait(child, until, &status, &late);
	if (err)
		return err;
	if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)) /* by child_wait() */
		return error_new(ERROR_INTERNAL, "there was no time for it: -d is over");
	if (WIFSIGNALED(status))
		return error_new(ERROR_INTERNAL, "yrt %s was ended by signal %d", arguments[1], WTERMSIG(status));
	if (!WEXITSTATUS(status))
		return NULL;
	return error_new((enum error_kind)WEXITSTATUS(status),
	        output ? "yrt %s says why" : "yrt %s failed, as it says above", arguments[1]);
}
