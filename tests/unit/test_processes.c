/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called, and what becomes of many. */
#include "unit.h"

#include "unwind/profile/containers.h"
#include "unwind/profile/process_names.h"
#include "unwind/profile/profile_processes.h"

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

/* A process of that place below its containers. */
static void add_in(struct profile *p, const char *program, u32 pid, const char *place)
{
	struct profile_function f = {
	        .name = program, .module = program, .file = place, .line = pid, .kind = KIND_PROCESS};
	u32 levels[CONTAINER_LEVELS], n, node = 0, function;

	assert_null(container_functions(p, place, levels, &n));
	for (u32 i = 0; i < n; i++)
		assert_null(profile_child(p, node, levels[i], &node));
	assert_null(profile_function(p, 0, &f, false, &function));
	assert_null(profile_child(p, node, function, &node));
	profile_add(p, node, 1);
}

static void expect_nodes(struct profile *p, enum processes how, u32 n, const char *const names[])
{
	profile_finish(p);
	assert_null(profile_show_processes(p, how));
	assert_int_equal(p->nnodes, n + 1);
	for (u32 i = 0; i < n; i++)
		assert_string_equal(p->functions[p->nodes[i + 1].function].name, names[i]);
	profile_destroy(p);
}

static void test_containers(void **state)
{
	static const char pod[] = "pod=12345678,namespace=shop,podname=web,container=0123456789ab,name=envoy",
	                  beside[] = "pod=12345678,namespace=shop,podname=web,container=ba9876543210,name=app";
	struct profile *p;

	assert_null(profile_create(&p)); /* one alone is not shown */
	add_in(p, "a", 1, pod);
	add_in(p, "b", 2, pod);
	expect_nodes(p, PROCESSES_AUTO, 2, (const char *const[]){"a (pid 1)", "b (pid 2)"});

	assert_null(profile_create(&p)); /* nor the pod, where there are two of its containers */
	add_in(p, "a", 1, pod);
	add_in(p, "b", 2, beside);
	expect_nodes(p, PROCESSES_AUTO, 4,
	        (const char *const[]){"container envoy", "a (pid 1)", "container app", "b (pid 2)"});

	assert_null(profile_create(&p)); /* a pod with one container is one node; programs are counted in each */
	for (u32 i = 0; i < PROCESSES_MANY + 1; i++)
		add_in(p, "a", i + 1, pod);
	add_in(p, "a", 40, "cgroup=/");
	expect_nodes(p, PROCESSES_AUTO, 4,
	        (const char *const[]){"pod shop/web (envoy)", "a (9 processes)", "host", "a (pid 40)"});

	assert_null(profile_create(&p)); /* not known where: at the root */
	add_in(p, "a", 1, pod);
	add_in(p, "b", 2, "");
	add_in(p, "c", 3, "unit=c.service");
	expect_nodes(p, PROCESSES_AUTO, 5,
	        (const char *const[]){"pod shop/web (envoy)", "a (pid 1)", "b (pid 2)", "c.service", "c (pid 3)"});

	assert_null(profile_create(&p));
	add_in(p, "a", 1, pod);
	add_in(p, "b", 2, "cgroup=/");
	expect_nodes(p, PROCESSES_NONE, 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_command_line),
	        cmocka_unit_test(test_levels),
	        cmocka_unit_test(test_containers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
