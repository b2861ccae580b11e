/* SPDX-License-Identifier: Apache-2.0 */
/* Which name a thread gets, and when a runtime is asked for it. The runtime is the test's own. */
#include "unit.h"

#include "unwind/profile/thread_names.h"

#define TID 43

static struct {
	struct arena *arena;
	struct modules *modules;
	struct profile *profile;
	struct process process;
	struct instance instances[2];
	struct table known;
	struct stack_record record;
	u32 asked;
	const char *answer; /* of the runtime; NULL: it knows of no such thread */
} here;

static bool answer(void *instance, const struct runtime_process *p, pid_t tid, char *ret, size_t size)
{
	here.asked++;
	assert_int_equal(tid, TID);
	if (here.answer)
		snprintf(ret, size, "%s", here.answer);
	return here.answer != NULL;
}

static const struct runtime_ops with_names = {.name = "with", .thread_name = answer},
                                without_names = {.name = "without"};

static int setup(void **state)
{
	memset(&here, 0, sizeof(here));
	assert_null(arena_create(NULL, &here.arena));
	assert_null(modules_create(here.arena, NULL, &here.modules));
	assert_null(profile_create(&here.profile));
	here.instances[0] = (struct instance){.ops = &without_names, .data = &here};
	here.instances[1] = (struct instance){.ops = &with_names, .data = &here};
	here.process =
	        (struct process){.pid = 42, .modules = here.modules, .instances = here.instances, .ninstances = 2};
	here.record = (struct stack_record){.instance = 7, .tgid = 42, .tid = TID, .comm = "python"};
	return 0;
}

static int teardown(void **state)
{
	table_free(&here.known);
	profile_destroy(here.profile);
	modules_destroy(here.modules);
	arena_destroy(here.arena);
	return 0;
}

static u32 thread(const struct process *p)
{
	u32 ret;

	assert_null(thread_function(&here.known, here.profile, p, &here.record, &ret));
	assert_int_equal(here.profile->functions[ret].kind, KIND_THREAD);
	return ret;
}

static const char *name(u32 function)
{
	return here.profile->functions[function].name;
}

static void test_of_runtime(void **state)
{
	u32 first;

	here.answer = "worker; 1";
	first = thread(&here.process);
	assert_string_equal(name(first), "worker; 1 (tid 43)");
	strcpy(here.record.comm, "other");
	here.answer = "another";
	assert_int_equal(thread(&here.process), first);
	assert_string_equal(name(first), "worker; 1 (tid 43)");
	assert_int_equal(here.asked, 1);
}

/* The language knows of a thread a moment after it began to run: what was drawn till then gets the name too. */
static void test_late(void **state)
{
	u32 first = thread(&here.process);

	assert_string_equal(name(first), "python (tid 43)");
	here.answer = "worker";
	assert_int_equal(thread(&here.process), first);
	assert_string_equal(name(first), "worker (tid 43)");
	assert_int_equal(here.asked, 2);
}

static void test_of_kernel(void **state)
{
	u32 first = thread(NULL), second;

	assert_string_equal(name(first), "python (tid 43)");
	strcpy(here.record.comm, "renamed");
	second = thread(&here.process);
	assert_string_equal(name(second), "renamed (tid 43)");
	assert_int_equal(thread(&here.process), second);
	strcpy(here.record.comm, "python");
	assert_int_equal(thread(&here.process), first);
	memset(here.record.comm, 'x', COMM_LEN);
	assert_string_equal(name(thread(&here.process)), "xxxxxxxxxxxxxxxx (tid 43)");
}

/* A language may be loaded long after the thread began to run, but who has no name is not asked about all the time. */
static void test_asked_rarely(void **state)
{
	u32 first;

	for (u32 i = 0; i < 1000; i++)
		first = thread(&here.process);
	assert_in_range(here.asked, 1, 20);
	here.answer = "late";
	for (u32 i = 0; i < 1000; i++)
		thread(&here.process);
	assert_string_equal(name(first), "late (tid 43)");
	assert_in_range(here.asked, 1, 20);
}

/* An empty name is none, and the dead and those whose runtime failed are not asked. */
static void test_not_asked(void **state)
{
	here.answer = "";
	assert_string_equal(name(thread(&here.process)), "python (tid 43)");
	here.answer = "worker";
	here.asked = 0;
	here.process.dead = true;
	assert_string_equal(name(thread(&here.process)), "python (tid 43)");
	here.process.dead = false;
	here.instances[1].data = NULL;
	assert_string_equal(name(thread(&here.process)), "python (tid 43)");
	assert_int_equal(here.asked, 0);
}

/* A thread of another process, or another thread, is another function though the names are the same. */
static void test_others(void **state)
{
	u32 first;

	here.answer = "MainThread";
	first = thread(&here.process);
	here.record.instance++;
	assert_int_not_equal(thread(&here.process), first);
}

static void test_cut(void **state)
{
	static char longest[2 * NAME_MAX_BYTES];

	memset(longest, 'n', sizeof(longest) - 1);
	here.answer = longest;
	assert_int_equal(strlen(name(thread(&here.process))), NAME_MAX_BYTES - 1 + strlen(" (tid 43)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_of_runtime, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_late, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_of_kernel, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_asked_rarely, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_not_asked, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_others, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
