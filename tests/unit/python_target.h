/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stopped Python program as a target: a child of the test runs a script of fixtures/python, which writes what Python
 * itself says to a pipe and stops. YRT_PYTHON names another interpreter than the system's.
 */
#ifndef YRT_PYTHON_TARGET_H
#define YRT_PYTHON_TARGET_H

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "look.h"

#define TARGET_FRAMES 32768

struct target {
	pid_t pid;
	FILE *out; /* what the script writes */
	struct arena *arena;
	struct modules *modules;
	struct process *process;
	struct frame frames[TARGET_FRAMES];
	u32 nframes;
};

/* Becomes Python. Only returns if that fails. */
static void target_exec(int fd, const char *script)
{
	const char *source = getenv("YRT_SOURCE"), *python = getenv("YRT_PYTHON");
	char path[4096], number[16];

	snprintf(path, sizeof(path), "%s/fixtures/python/%s", source ? source : YRT_SOURCE_DIR, script);
	snprintf(number, sizeof(number), "%d", fd);
	fcntl(fd, F_SETFD, 0);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	python = python && *python ? python : "/usr/bin/python3";
	execlp(python, python, "-B", path, number, NULL);
}

static struct target *target_start(const char *script)
{
	struct target *t = calloc(1, sizeof(*t));
	int pipes[2], status;

	assert_non_null(t);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	fcntl(pipes[1], F_SETPIPE_SZ, 1 << 20);
	t->pid = fork();
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody who holds its output */
		target_exec(pipes[1], script);
		_exit(127);
	}
	close(pipes[1]);
	t->out = fdopen(pipes[0], "r");
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	if (!WIFSTOPPED(status))
		fail_msg("Python did not start: status 0x%x", status);
	ptrace(PTRACE_SETOPTIONS, t->pid, 0, PTRACE_O_EXITKILL);
	look_begin(&t->arena, &t->modules);
	return t;
}

static void target_end(struct target *t)
{
	int status;

	kill(t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
	look_end(t->arena, t->modules, t->process);
	fclose(t->out);
	free(t);
}

/* Goes on until the target stops itself, or after usec if that is not 0. False: it ended, as it should. */
static bool target_continue(struct target *t, useconds_t usec)
{
	int status, sig = 0;

	do {
		/* a SIGTRAP is ptrace's own, of a wrapper's exec */
		assert_int_equal(ptrace(PTRACE_CONT, t->pid, 0, sig == SIGTRAP ? 0 : sig), 0);
		if (usec) {
			usleep(usec);
			kill(t->pid, SIGSTOP);
		}
		assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
		if (WIFEXITED(status) && !WEXITSTATUS(status))
			return false;
		if (!WIFSTOPPED(status))
			fail_msg("the target ended with status 0x%x", status);
		sig = WSTOPSIG(status);
	} while (sig != SIGSTOP);
	look_at(t->modules, t->pid, &t->process);
	return true;
}

/* Walks the stack. Returns why the walk ended. */
static inline int target_walk(struct target *t)
{
	struct unwind_registers regs;

	look_registers(t->pid, &regs);
	return unwind_stack(t->process, &regs, t->frames, TARGET_FRAMES, &t->nframes);
}

static inline bool target_name(struct target *t, u32 i, struct frame_name *ret)
{
	return look_name(t->process, t->frames, i, t->nframes, ret);
}

/* The next frame of a script at or behind i; nframes: none. */
static inline u32 target_script(const struct target *t, u32 i)
{
	while (i < t->nframes && frame_kind(&t->frames[i]) != FRAME_SCRIPT)
		i++;
	return i;
}

#endif
