/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "binary/proc_stat.h"
#include "process/pause.h"

#define PAUSES 20

struct target {
	atomic_uint sent, taken;
	atomic_bool runs, ends;
};

static struct target *target; /* shared with the process */

static void wait_for_state(pid_t tid, char wanted)
{
	char path[64], state = 0;
	u32 flags;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	while (state != wanted) {
		usleep(1000);
		assert_true(proc_stat_read(path, &state, &flags));
	}
}

/* In place of libc's: here a signal always comes between the two requests. */
long ptrace(enum __ptrace_request request, ...)
{
	void *addr, *data;
	va_list args;
	pid_t tid;
	long ret;

	va_start(args, request);
	tid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	ret = syscall(SYS_ptrace, request, tid, addr, data);
	if (!ret && request == PTRACE_SEIZE)
		wait_for_state(tid, 't');
	return ret;
}

static void take(int signal)
{
	target->taken++;
}

/* Each signal to itself is taken before the call returns. */
static void *send_signals(void *arg)
{
	signal(SIGUSR1, take);
	for (target->runs = true; !target->ends; target->sent++)
		pthread_kill(pthread_self(), SIGUSR1);
	_exit(0);
}

static pid_t start(bool first_ends)
{
	pthread_t thread;
	pid_t pid;

	*target = (struct target){0};
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!first_ends)
			send_signals(NULL);
		if (pthread_create(&thread, NULL, send_signals, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	while (!target->runs)
		usleep(1000);
	return pid;
}

static void end(pid_t pid)
{
	int status;

	target->ends = true;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_no_signal_is_lost(void **state)
{
	pid_t pid = start(false);
	struct pause p;
	u32 before;

	for (u32 i = 0; i < PAUSES; i++) {
		assert_null(pause_begin(pid, &p));
		assert_int_equal(p.n, 1);
		assert_int_equal(p.threads[0].signal, SIGUSR1);
		before = target->sent;
		usleep(100);
		assert_int_equal(target->sent, before);
		pause_end(&p);
	}
	end(pid);
	assert_int_equal(target->taken, target->sent);
}

/* The first thread has ended: what is left of it cannot be stopped. */
static void test_first_thread_ended(void **state)
{
	pid_t pid = start(true);
	struct pause p;

	wait_for_state(pid, 'Z');

	for (u32 i = 0; i < 2; i++) {
		assert_null(pause_begin(pid, &p));
		assert_int_equal(p.n, 1);
		assert_int_not_equal(p.threads[0].tid, pid);
		pause_end(&p);
	}
	end(pid);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_no_signal_is_lost),
	        cmocka_unit_test(test_first_thread_ended),
	};

	target = mmap(NULL, sizeof(*target), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(target != MAP_FAILED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
