/* SPDX-License-Identifier: Apache-2.0 */
/* System calls as text, descriptors, and who holds a mutex, also of targets that lie. */
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "unwind/process/descriptor.h"
#include "unwind/binary/memory.h"
#include "unwind/process/mutex.h"
#include "unwind/process/switches.h"

static void expect(struct syscall call, const char *expected)
{
	char *text = syscall_text(&call);

	assert_string_equal(text, expected);
	free(text);
}

/* A timeout of a clock's moment is shown by how far away that is. */
static void expect_moment(struct syscall call, clockid_t clock)
{
	struct timespec ts;
	char *text;

	clock_gettime(clock, &ts);
	ts.tv_sec += 1000;
	call.arguments[3] = (u64)(uintptr_t)&ts;
	text = syscall_text(&call);
	assert_true(strstr(text, " 1000.000 s from now)") || strstr(text, " 999.9"));
	free(text);
}

static void test_text(void **state)
{
	struct memory *memory = memory_live(getpid());
	struct timespec ts = {1, 500000000}, broken = {1, -5};
	struct syscall call = {.number = SYS_nanosleep, .arguments = {(u64)(uintptr_t)&ts}, .memory = memory};
	char text[64];

	expect(call, "nanosleep(1.500 s)");
	snprintf(text, sizeof(text), "nanosleep(0x%lx)", (unsigned long)(uintptr_t)&broken);
	call.arguments[0] = (u64)(uintptr_t)&broken;
	expect(call, text);
	call.arguments[0] = 8; /* unreadable */
	expect(call, "nanosleep(0x8)");
	call = (struct syscall){.number = SYS_clock_nanosleep,
	        .arguments = {CLOCK_MONOTONIC, 0, (u64)(uintptr_t)&ts},
	        .memory = memory};
	expect(call, "clock_nanosleep(MONOTONIC, 0, 1.500 s)");
	call.arguments[1] = TIMER_ABSTIME; /* a moment that is over, and one of a clock that does not exist */
	expect(call, "clock_nanosleep(MONOTONIC, ABSTIME, 0.000 s from now)");
	call.arguments[0] = 0x7fffffff;
	expect(call, "clock_nanosleep(2147483647, ABSTIME, 1.500 s)");
	call = (struct syscall){
	        .number = SYS_futex, .arguments = {4096, FUTEX_WAIT, 1, (u64)(uintptr_t)&ts}, .memory = memory};
	expect(call, "futex(0x1000, WAIT, 1, 1.500 s)");
	call.arguments[1] = FUTEX_WAIT_BITSET;
	expect(call, "futex(0x1000, WAIT_BITSET, 1, 0.000 s from now)");
	expect_moment(call, CLOCK_MONOTONIC);
	call.arguments[1] = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
	expect_moment(call, CLOCK_REALTIME);
	call.arguments[1] = FUTEX_LOCK_PI;
	expect_moment(call, CLOCK_REALTIME);
	expect((struct syscall){.number = SYS_poll, .arguments = {0, 0, (u32)-1}}, "poll(0, 0, no timeout)");
	expect((struct syscall){.number = SYS_futex, .arguments = {4096, 0x7f, 1, 0}},
	        "futex(0x1000, 127, 1, no timeout)");
	expect((struct syscall){.number = SYS_read, .arguments = {(u64)-1, 1, 2}}, "read(-1, 0x1, 2)");
	expect((struct syscall){.number = 100000, .arguments = {1, 2, 3}}, "syscall 100000(0x1, 0x2, 0x3)");
	assert_null(syscall_name(-1));
	assert_null(syscall_name(1 << 30));
	assert_string_equal(syscall_name(SYS_epoll_wait), "epoll_wait");
	memory_destroy(memory);
}

struct sleeper {
	struct timespec ts;
	volatile pid_t tid;
};

static void *sleep_in(void *ctx)
{
	struct sleeper *s = ctx;

	s->tid = gettid();
	syscall(SYS_nanosleep, &s->ts, NULL);
	return NULL;
}

/* The timespec of a call that the thread has left is another's memory by now. */
static void test_left(void **state)
{
	static struct sleeper s = {.ts = {1000, 0}};
	struct syscall call = {
	        .number = SYS_nanosleep, .arguments = {(u64)(uintptr_t)&s.ts}, .memory = memory_live(getpid())};
	char path[64], line[256] = "", text[64];
	struct switches before;
	pthread_t thread;
	FILE *f;

	assert_int_equal(pthread_create(&thread, NULL, sleep_in, &s), 0);
	while (strncmp(line, "35 ", 3)) { /* SYS_nanosleep */
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", s.tid);
		f = fopen(path, "re");
		if (f && !fgets(line, sizeof(line), f))
			line[0] = '\0';
		if (f)
			fclose(f);
	}
	call.tid = s.tid;
	call.tgid = getpid();
	assert_true(switches_read((u32)getpid(), (u32)s.tid, &before));
	call.switches = before.voluntary + before.others;
	sscanf(line, "35 %lx %lx %lx %lx %lx %lx", &call.arguments[0], &call.arguments[1], &call.arguments[2],
	        &call.arguments[3], &call.arguments[4], &call.arguments[5]);
	expect(call, "nanosleep(1000.000 s)");
	call.switches--; /* it was in it before */
	snprintf(text, sizeof(text), "nanosleep(0x%lx)", call.arguments[0]);
	expect(call, text);
	call.number = SYS_read; /* of what was not this file then */
	call.arguments[0] = 0;
	call.arguments[1] = 0;
	call.arguments[2] = 1;
	expect(call, "read(0, 0, 1)");
	pthread_detach(thread); /* it sleeps to the end */
	memory_destroy(call.memory);
}

/* Descriptors that a call has in memory: which, not where. */
static void test_polled(void **state)
{
	struct memory *memory = memory_live(getpid());
	struct pollfd polled[70] = {{.fd = 300}, {.fd = -1}, {.fd = 301}};
	struct syscall call = {.number = SYS_poll, .arguments = {(u64)(uintptr_t)polled, 3, 50}, .memory = memory};
	fd_set set;

	expect(call, "poll([300, 301], 3, 50 ms)");
	for (int i = 0; i < 70; i++)
		polled[i].fd = 300 + i;
	call.arguments[1] = 70;
	expect(call, "poll([300, 301, 302, 303, ...], 70, 50 ms)");
	call.arguments[0] = 8; /* unreadable */
	expect(call, "poll(0x8, 70, 50 ms)");
	FD_ZERO(&set);
	FD_SET(300, &set);
	FD_SET(307, &set);
	call = (struct syscall){
	        .number = SYS_pselect6, .arguments = {301, (u64)(uintptr_t)&set, 0, 8, 0}, .memory = memory};
	expect(call, "pselect6(301, [300], 0, 0x8, no timeout)");
	call.arguments[0] = (u64)1 << 40; /* more than a set has */
	call.arguments[1] = 16;
	expect(call, "pselect6(0, 0x10, 0, 0x8, no timeout)");
	memory_destroy(memory);
}

static void test_descriptors(void **state)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(any);
	char text[DESCRIPTOR_TEXT], expected[64];
	int s = socket(AF_INET, SOCK_STREAM, 0), pair[2];

	assert_int_equal(bind(s, (struct sockaddr *)&any, sizeof(any)) || listen(s, 1) ||
	                         getsockname(s, (struct sockaddr *)&any, &size),
	        0);
	assert_true(descriptor_text(getpid(), s, text));
	snprintf(expected, sizeof(expected), "tcp 127.0.0.1:%u listens", ntohs(any.sin_port));
	assert_string_equal(text, expected);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_true(descriptor_text(getpid(), pair[0], text));
	assert_int_equal(strncmp(text, "unix", 4), 0);
	close(s);
	assert_false(descriptor_text(getpid(), s, text));
	assert_false(descriptor_text(getpid(), -1, text));
	assert_false(descriptor_text(1 << 29, 0, text));
}

static void test_mutex(void **state)
{
	struct memory *memory = memory_live(getpid());
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	u32 *word = (u32 *)&m, tid;
	struct syscall call = {.number = SYS_futex,
	        .arguments = {(u64)(uintptr_t)&m, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2},
	        .memory = memory};
	u64 addr;

	pthread_mutex_lock(&m);
	assert_false(mutex_owner(&call, &addr, &tid)); /* nobody waits */
	word[0] = 2;
	assert_true(mutex_owner(&call, &addr, &tid));
	assert_int_equal(tid, gettid());
	assert_int_equal(addr, (uintptr_t)&m);
	word[3] = 1u << 30; /* users */
	assert_false(mutex_owner(&call, &addr, &tid));
	word[3] = 1;
	word[4] = 0xdeadbeef; /* kind */
	assert_false(mutex_owner(&call, &addr, &tid));
	word[4] = 0;
	call.arguments[2] = 1;
	assert_false(mutex_owner(&call, &addr, &tid));
	call.arguments[2] = 2;
	call.number = SYS_read;
	assert_false(mutex_owner(&call, &addr, &tid));
	call.number = SYS_futex;
	call.arguments[1] = FUTEX_LOCK_PI;
	word[0] = FUTEX_WAITERS | 77;
	assert_true(mutex_owner(&call, &addr, &tid));
	assert_int_equal(tid, 77);
	call.arguments[0] = 8; /* unreadable */
	assert_false(mutex_owner(&call, &addr, &tid));
	memory_destroy(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_text),
	        cmocka_unit_test(test_left),
	        cmocka_unit_test(test_polled),
	        cmocka_unit_test(test_descriptors),
	        cmocka_unit_test(test_mutex),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
