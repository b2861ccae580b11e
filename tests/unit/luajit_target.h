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

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"
#include "profile/expand.h"
#include "process/process.h"
#include "unwind.h"

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

static inline void target_complain(void *ctx, struct error *err)
{
	print_error("%s\n", err->message);
	error_free(err);
}

static inline void must(struct error *err)
{
	if (err)
		fail_msg("%s", err->message);
}

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
	must(arena_create(NULL, &t->arena));
	must(modules_create(t->arena, NULL, &t->modules));
	t->modules->complain = target_complain;
	return t;
}

static inline void target_end(struct target *t)
{
	int status;

	kill(t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
	process_destroy(t->process);
	modules_destroy(t->modules);
	arena_destroy(t->arena);
	fclose(t->expectation);
	free(t);
}

/* Goes on until the target stops itself, or after usec if that is not 0. False: it ended, as it should. */
static inline bool target_continue(struct target *t, useconds_t usec)
{
	int status;
	bool changed;

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
	if (t->process)
		must(process_rescan(t->process, &changed));
	else
		must(process_create(t->modules, t->pid, 1, &t->process));
	return true;
}

static inline void target_registers(struct target *t, struct unwind_registers *ret)
{
	struct user_regs_struct r;

	assert_int_equal(ptrace(PTRACE_GETREGS, t->pid, 0, &r), 0);
	*ret = (struct unwind_registers){.reg = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
	                                         r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
	        .thread_pointer = r.fs_base};
}

/* Walks the stack and expands it. Returns why the walk ended. */
static inline int target_walk(struct target *t)
{
	struct unwind_registers regs;
	u32 n;
	int stop;

	target_registers(t, &regs);
	stop = unwind_stack(t->process, &regs, t->walked, TARGET_FRAMES, &n);
	t->nframes = expand_stack(t->process, t->walked, n, 0, t->frames, TARGET_FRAMES);
	return stop;
}

static inline bool target_name(struct target *t, u32 i, struct frame_name *ret)
{
	struct runtime_process view = process_view(t->process);

	for (u32 k = 0; k < t->process->ninstances; k++) {
		struct instance *instance = &t->process->instances[k];

		if (instance->data && instance->ops->name_frame(instance->data, &view, t->frames, i, t->nframes, ret))
			return true;
	}
	return false;
}

#endif
