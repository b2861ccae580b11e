/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unwind/open_files.h"

struct command {
	pid_t pid;
	int go;     /* closing it after a byte lets the child execute */
	int failed; /* the child's errno, or end of file once it executes */
	const char *name;
	bool ended;
	int status; /* of waitpid(), once it has ended */
};

static void run_child(char *const *argv, int go, int failed)
{
	char byte;
	int code;

	if (read(go, &byte, 1) == 1) {
		signal(SIGINT, SIG_DFL);
		signal(SIGPIPE, SIG_DFL); /* exec keeps what is ignored */
		open_files_restore();
		execvp(argv[0], argv);
		code = errno;
		if (write(failed, &code, sizeof(code)) < 0)
			_exit(126);
	}
	_exit(127);
}

struct error *command_create(char *const *argv, struct command **ret)
{
	struct command *c = calloc(1, sizeof(*c));
	int go[2], failed[2];

	if (!c)
		return &error_no_memory;
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC)) {
		free(c);
		return error_errno(errno, "cannot start %s", argv[0]);
	}
	c->name = argv[0];
	c->go = go[1];
	c->failed = failed[0];
	c->pid = fork();
	if (c->pid == 0) {
		close(go[1]);
		run_child(argv, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	*ret = c;
	if (c->pid < 0) {
		c->ended = true;
		return error_errno(errno, "cannot start %s", argv[0]);
	}
	return NULL;
}

void command_destroy(struct command *c)
{
	if (!c)
		return;
	if (c->go >= 0)
		close(c->go);
	if (!c->ended && c->pid > 0) {
		kill(c->pid, SIGTERM);
		waitpid(c->pid, NULL, 0);
	}
	close(c->failed);
	free(c);
}

pid_t command_pid(const struct command *c)
{
	return c->pid;
}

struct error *command_go(struct command *c)
{
	int code;

	if (write(c->go, "", 1) != 1)
		return error_errno(errno, "cannot start %s", c->name);
	close(c->go);
	c->go = -1;
	if (read(c->failed, &code, sizeof(code)) == sizeof(code))
		return error_hint(
		        error_new(ERROR_USAGE, "cannot start %s: no such program, or it is not executable", c->name),
		        "give its path behind --");
	return NULL;
}

bool command_has_ended(struct command *c)
{
	if (!c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
	return c->ended;
}

int command_status(const struct command *c)
{
	return c->ended && c->pid > 0 ? c->status : COMMAND_RUNS;
}
