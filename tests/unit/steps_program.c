/* SPDX-License-Identifier: Apache-2.0 */
#include "steps_program.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS        8
#define SIGNALS_US   10000 /* so long a time without a signal is waited for */
#define THREAD_TRIES 6000  /* each 10 ms */

/* Becomes the program. Never returns. */
static void become(const char *const *argv, bool traced)
{
	const char *source = getenv("YRT_SOURCE");
	char paths[WORDS][4096], *words[WORDS + 1] = {NULL};

	for (u32 i = 0; i < WORDS && argv[i]; i++) {
		bool fixture = !strncmp(argv[i], "fixtures/", 9);

		snprintf(paths[i], sizeof(paths[i]), "%s%s%s", fixture ? source ? source : YRT_SOURCE_DIR : "",
		        fixture ? "/" : "", argv[i]);
		words[i] = paths[i];
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (traced)
		ptrace(PTRACE_TRACEME, 0, 0, 0);
	execvp(words[0], words);
	_exit(127);
}

static bool is_called(pid_t pid, pid_t tid, const char *comm)
{
	char path[64], line[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = 0;
	fclose(f);
	return !strcmp(line, comm);
}

/* The tid of the thread with this name, or 0. */
static pid_t find_thread(pid_t pid, const char *comm)
{
	char path[64];
	struct dirent *e;
	pid_t ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !ret && (e = readdir(dir)))
		if (atoi(e->d_name) && is_called(pid, atoi(e->d_name), comm))
			ret = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return ret;
}

/* Waits for the thread of that name, and attaches to it alone. */
static pid_t seize(pid_t pid, const char *comm)
{
	pid_t tid = 0;

	for (u32 i = 0; i < THREAD_TRIES && !tid; i++) {
		usleep(10000);
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		tid = find_thread(pid, comm);
	}
	if (!tid)
		fail_msg("there is no thread %s", comm);
	assert_int_equal(ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_EXITKILL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
	return tid;
}

struct program program_start(const char *const *argv, const char *thread)
{
	struct program p = {.followed = thread != NULL, .pid = fork()};
	int status;

	assert_true(p.pid >= 0);
	if (!p.pid)
		become(argv, !thread);
	p.tid = thread ? seize(p.pid, thread) : p.pid;
	assert_int_equal(waitpid(p.tid, &status, __WALL), p.tid);
	if (!WIFSTOPPED(status))
		fail_msg("%s did not start: status 0x%x", argv[0], status);
	if (!thread)
		ptrace(PTRACE_SETOPTIONS, p.tid, 0, PTRACE_O_EXITKILL);
	return p;
}

void program_end(const struct program *p)
{
	int status;

	kill(p->pid, SIGKILL);
	while (waitpid(p->tid, &status, __WALL) == p->tid && WIFSTOPPED(status)) /* it goes first */
		;
	waitpid(p->pid, NULL, 0);
}

/* The signal that the program has stopped by, SIGSTOP if it was interrupted; 0: it runs. */
static int wait_for(const struct program *p, int flags)
{
	int status;
	pid_t tid = waitpid(p->tid, &status, flags | __WALL);

	if (!tid)
		return 0;
	assert_int_equal(tid, p->tid);
	if (!WIFSTOPPED(status))
		fail_msg("the program ended with status 0x%x", status);
	return status >> 16 == PTRACE_EVENT_STOP ? SIGSTOP : WSTOPSIG(status);
}

static void resume(const struct program *p, int request, int sig)
{
	assert_int_equal(ptrace((enum __ptrace_request)request, p->tid, 0, sig == SIGTRAP ? 0 : sig), 0);
}

/*
 * Goes on for so long, in us; 0: to its own SIGSTOP. Its other signals are passed on. The last moments nobody looks: a
 * program that sends itself signals would always be met at one of them.
 */
static void run_traced(const struct program *p, u32 us)
{
	int sig;

	resume(p, PTRACE_CONT, 0);
	for (u32 passed = 0; passed < us; passed += 100) {
		usleep(us % 250);
		sig = wait_for(p, WNOHANG);
		if (sig)
			resume(p, PTRACE_CONT, sig == SIGSTOP ? 0 : sig);
	}
	if (us) {
		usleep(us % 250);
		tgkill(p->pid, p->tid, SIGSTOP); /* another thread would stop them all */
	}
	for (sig = wait_for(p, 0); sig != SIGSTOP; sig = wait_for(p, 0))
		resume(p, PTRACE_CONT, sig);
}

/*
 * The same for a thread. It is not stopped where a signal has just met it, or one that is sent signals all the time
 * would always be met there. It stays traced: what a step has pushed of the flags (pushf) has the trap flag, which a
 * popf sets again.
 */
static void run_thread(const struct program *p, u32 us)
{
	bool clear = false;
	u32 passed = 0;
	int sig;

	resume(p, PTRACE_CONT, 0);
	while (passed < us || (!clear && passed < us + SIGNALS_US)) {
		usleep(1 + us % 99);
		passed += 100;
		sig = wait_for(p, WNOHANG);
		clear = !sig;
		if (sig)
			resume(p, PTRACE_CONT, sig);
	}
	assert_int_equal(ptrace(PTRACE_INTERRUPT, p->tid, 0, 0), 0);
	for (sig = wait_for(p, 0); sig != SIGSTOP; sig = wait_for(p, 0))
		resume(p, PTRACE_CONT, sig);
}

void program_run(const struct program *p, u32 us)
{
	if (p->followed)
		run_thread(p, us);
	else
		run_traced(p, us);
}

void program_step(const struct program *p)
{
	int sig = 0;

	do {
		resume(p, PTRACE_SINGLESTEP, sig);
		sig = wait_for(p, 0);
	} while (sig != SIGTRAP);
}

void program_registers(const struct program *p, struct unwind_registers *ret)
{
	struct user_regs_struct r;

	assert_int_equal(ptrace(PTRACE_GETREGS, p->tid, 0, &r), 0);
	*ret = (struct unwind_registers){.reg = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
	                                         r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
	        .thread_pointer = r.fs_base};
}
