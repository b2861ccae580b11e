/* SPDX-License-Identifier: Apache-2.0 */
#include "when_exit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unwind/cleanup.h"
#include "unwind/now.h"

#define POLL_MS        20
#define NOT_EXECUTABLE 126 /* of a shell, by POSIX's "Exit Status for Commands" */
#define NOT_FOUND      127

/* In a group of its own, to be killed with what it started; yrt ignores SIGPIPE, it does not. */
static int spawn_shell(const char *command, pid_t *ret)
{
	char *arguments[] = {"sh", "-c", (char *)command, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t defaults;
	int failed;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&how, &defaults);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	failed = posix_spawn(ret, "/bin/sh", &files, &how, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return failed;
}

/* It is not reaped: its number is not given anew. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Returns when it has ended, has had its time, or *stop is set. Old seccomp profiles refuse pidfd_open(). */
static void await_end(pid_t pid, volatile sig_atomic_t *stop)
{
	cleanup(close) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	u64 limit = now_ns() + WHEN_EXIT_S * 1000000000ULL, now;

	while (!*stop && !has_ended(pid) && (now = now_ns()) < limit)
		poll(&end, 1, fd < 0 ? POLL_MS : (int)((limit - now) / 1000000) + 1);
}

struct error *when_exit_status(const char *command, volatile sig_atomic_t *stop, int *ret)
{
	pid_t pid;
	int status = 0, failed = spawn_shell(command, &pid);

	if (failed)
		return error_hint(error_new(ERROR_INPUT, "cannot run /bin/sh: %s", strerror(failed)),
		        "exit(COMMAND) of --when needs a shell");
	await_end(pid, stop);
	if (!has_ended(pid))
		kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	*ret = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (*ret == NOT_FOUND || *ret == NOT_EXECUTABLE)
		return error_hint(error_new(ERROR_INPUT, "the shell cannot run \"%s\" of --when", command),
		        "give the whole path of a program");
	return NULL;
}
