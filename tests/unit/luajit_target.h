/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stopped LuaJIT program as a target: fixtures/lua/host.c, a child of the test, runs a script of fixtures/lua. At
 * checkpoints it writes what Lua itself says of its stack (lua_getinfo, as debug.traceback does) and stops.
 *
 * The library is that of the system. For another one YRT_LUA_HOST has the words, with spaces between, that run the host
 * with it (tests/versions/version.py).
 */
#ifndef YRT_LUAJIT_TARGET_H
#define YRT_LUAJIT_TARGET_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "look.h"

#include "profile/expand.h"

#define TARGET_FRAMES 8192

struct target {
	pid_t pid;
	FILE *expectation;
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	struct frame walked[TARGET_FRAMES]; /* as the walker pushed them */
	struct frame frames[TARGET_FRAMES]; /* expanded */
	u32 nframes;
};

#define TARGET_WORDS 32

/* Becomes the host. options: words of its own, NULL at their end. Only returns if that fails. */
static inline void target_exec(int fd, const char *script, const char *argument, const char *const *options)
{
	const char *source = getenv("YRT_SOURCE"), *host = getenv("YRT_LUA_HOST");
	char path[4096], number[16], words[4096], *rest = words, *word;
	const char *argv[TARGET_WORDS];
	u32 n = 0;

	snprintf(path, sizeof(path), "%s/fixtures/lua/%s", source ? source : YRT_SOURCE_DIR, script);
	snprintf(number, sizeof(number), "%d", fd);
	snprintf(words, sizeof(words), "%s", host ? host : LUA_HOST);
	while ((word = strsep(&rest, " ")) && n < TARGET_WORDS / 2)
		if (*word)
			argv[n++] = word;
	argv[n++] = "-e";
	argv[n++] = number;
	while (options && *options && n < TARGET_WORDS - 3)
		argv[n++] = *options++;
	argv[n++] = path;
	argv[n++] = argument;
	argv[n] = NULL;
	fcntl(fd, F_SETFD, 0);
	execvp(argv[0], (char *const *)argv);
}

/* Starts the script; the target is stopped at once. */
static inline struct target *target_start(const char *script, const char *argument, const char *const *options)
{
	struct target *t = calloc(1, sizeof(*t));
	int pipes[2], status;

	assert_non_null(t);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
	t->pid = fork();
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody who holds its output */
		target_exec(pipes[1], script, argument, options);
		_exit(127);
	}
	close(pipes[1]);
	t->expectation = fdopen(pipes[0], "r");
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (!WIFSTOPPED(status))
		fail_msg("the host of %s did not start: status 0x%x (127: not run, 99: no library)", script, status);
	look_begin(&t->arena, &t->modules);
	return t;
}

static inline void target_end(struct target *t)
{
	int status;

	kill(t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
	look_end(t->arena, t->modules, t->process);
	fclose(t->expectation);
	free(t);
}

/* Goes on until the target stops itself, or after usec if that is not 0. False: it ended, as it should. */
static inline bool target_continue(struct target *t, useconds_t usec)
{
	int status;

	assert_int_equal(ptrace(PTRACE_CONT, t->pid, 0, 0), 0);
	if (usec) {
		usleep(usec);
		kill(t->pid, SIGSTOP);
	}
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return false;
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
		fail_msg("the target ended with status 0x%x", status);
	look_at(t->modules, t->pid, &t->process);
	return true;
}

/* Walks the stack and expands it. Returns why the walk ended. */
static inline int target_walk(struct target *t)
{
	struct unwind_registers regs;
	u32 n;
	int stop;

	look_registers(t->pid, &regs);
	stop = unwind_stack(t->process, &regs, t->walked, TARGET_FRAMES, &n);
	t->nframes = expand_stack(t->process, t->walked, n, 0, t->frames, TARGET_FRAMES);
	return stop;
}

static inline bool target_name(struct target *t, u32 i, struct frame_name *ret)
{
	return look_name(t->process, t->frames, i, t->nframes, ret);
}

#endif
