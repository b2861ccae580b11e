/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "unit.h"

#include "frontends/report/others.c"

/* A process that has the other end of a connection of this one; it waits until it is killed, or this one has ended. */
static pid_t start_peer(int *ret)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0), own;
	pid_t pid;

	assert_int_equal(bind(fd, (struct sockaddr *)&a, size) | listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
	own = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(own, (struct sockaddr *)&a, size), 0);
	*ret = accept(fd, NULL, NULL);
	close(fd);
	pid = fork();
	if (!pid) {
		close(*ret);
		_exit(read(own, &size, 1) != 0);
	}
	close(own);
	return pid;
}

static void test_who_is_connected(void **state)
{
	static struct connection all[SOCKETS];
	static u64 inodes[SOCKETS];
	int fd;
	pid_t peer = start_peer(&fd);
	u32 n = add_connections(getpid(), "tcp", all, 0);

	assert_true(n > 0);
	qsort(all, n, sizeof(*all), by_inode);
	assert_false(talks(all, n, peer, inodes)); /* nobody is a target yet */
	mark_own(all, n, getpid(), inodes);
	assert_true(talks(all, n, peer, inodes));
	close(fd);
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	assert_false(talks(all, n, peer, inodes)); /* gone */
}

static void test_order(void **state)
{
	static struct others then = {.n = 3, .all = {{10, 5}, {20, 5}, {30, 0}}};
	static struct others now = {.n = 4, .all = {{10, 7}, {20, 65}, {30, 50}, {40, 60}}};
	const pid_t target = 30;
	u64 ticks = 0;

	assert_int_equal(next_of(&then, &now, &target, 1, 0, &ticks), 20);
	assert_int_equal(ticks, 60);
	assert_int_equal(next_of(&then, &now, &target, 1, 20, &ticks), 40); /* new, and as much */
	assert_int_equal(next_of(&then, &now, &target, 1, 40, &ticks), 10);
	assert_int_equal(ticks, 2);
	assert_int_equal(next_of(&then, &now, &target, 1, 10, &ticks), 0);
}

static void test_ticks(void **state)
{
	u64 ticks;

	assert_true(read_ticks(getpid(), &ticks));
	assert_false(read_ticks(0x7ffffffe, &ticks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_who_is_connected), cmocka_unit_test(test_order), cmocka_unit_test(test_ticks)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
