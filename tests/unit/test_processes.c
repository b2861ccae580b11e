/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called, and what becomes of many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/profile/process_names.h"
#include "unwind/profile/profile_processes.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void expect_container(const char *line, const char *wanted)
{
	char name[CONTAINER_MAX] = "";

	assert_int_equal(process_container(line, name), wanted != NULL);
	if (wanted)
		assert_string_equal(name, wanted);
}

static void test_container(void **state)
{
	char longest[8192];

	expect_container("0::/system.slice/docker-" ID ".scope\n", "0123456789ab");
	expect_container("4:memory:/docker/" ID "\n", "0123456789ab");
	expect_container("0::/kubepods.slice/pod1234/cri-containerd-" ID ".scope/inner\n", "0123456789ab");
	expect_container("0::/lxc.payload.web-1/init.scope\n", "web-1");
	expect_container("0::/user.slice/session-3.scope\n", NULL);
	expect_container("0::/" ID "0\n", NULL); /* too long to be one */
	expect_container("0::/lxc.payload.\n", NULL);
	expect_container("", NULL);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "/lxc.payload.", 13);
	longest[sizeof(longest) - 1] = '\0';
	longest[13 + CONTAINER_MAX] = '\0';
	longest[12 + CONTAINER_MAX] = '/';
	expect_container(longest, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

static void test_command_line(void **state)
{
	char name[PROCESS_NAME_MAX], bytes[PROCESS_NAME_MAX];

	process_command_line("sort\0-k2\0-n", 12, name);
	assert_string_equal(name, "sort -k2 -n");
	process_command_line("nginx: worker process\0\0\0\0", 25, name); /* a title in place of arguments */
	assert_string_equal(name, "nginx: worker process");
	process_command_line("", 0, name);
	assert_string_equal(name, "");
	memset(bytes, 'a', sizeof(bytes));
	process_command_line(bytes, sizeof(bytes), name);
	assert_int_equal(strlen(name), PROCESS_NAME_MAX - 1);
}

/* A process of a new profile: its number. */
static u32 add(struct profile *p, const char *name, const char *program, u32 pid)
{
	struct profile_function f = {.name = name, .module = program, .file = "", .line = pid, .kind = KIND_PROCESS};
	struct profile_function work = {.name = "work", .module = "", .file = "", .kind = KIND_NATIVE};
	u32 function, inside, node;

	assert_null(profile_function(p, 0, &f, false, &function));
	assert_null(profile_function(p, 0, &work, false, &inside));
	assert_null(profile_child(p, 0, function, &node));
	assert_null(profile_child(p, node, inside, &node));
	profile_add(p, node, 1);
	return function;
}

static void test_levels(void **state)
{
	struct profile *p;
	char hostile[2048];
	bool found = false;

	assert_null(profile_create(&p));
	add(p, "alone", "alone", 1);
	profile_finish(p);
	assert_null(profile_show_processes(p, PROCESSES_AUTO));
	assert_int_equal(p->nnodes, 2); /* the root and work */
	assert_int_equal(p->nodes[0].total, 1);
	assert_int_equal(p->nfunctions, 3);
	profile_destroy(p);

	memset(hostile, 0x80, sizeof(hostile)); /* the inside of a character, without end */
	hostile[sizeof(hostile) - 1] = '\0';
	assert_null(profile_create(&p));
	add(p, hostile, "x", 1);
	add(p, "", "x", 2);
	add(p, "/", "x", 3);
	add(p, "a/ /b", "x", 4);
	profile_finish(p);
	assert_null(profile_show_processes(p, PROCESSES_AUTO));
	assert_int_equal(p->nodes[0].total, 4);
	for (u32 i = 0; i < p->nfunctions; i++) {
		assert_true(strlen(p->functions[i].name) < PROCESS_SHOWN + 32);
		found = found || !strcmp(p->functions[i].name, "a/ /b (pid 4)");
	}
	assert_true(found);
	profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_container),
	        cmocka_unit_test(test_command_line),
	        cmocka_unit_test(test_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
