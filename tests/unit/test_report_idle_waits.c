/* SPDX-License-Identifier: Apache-2.0 */
/* Which waits of a profile of wall-clock time are those of idle threads. */
#include "unit.h"

#include "frontends/report/idle_waits.h"

#define MS 1000000ull

static const struct {
	const char *prefix;
	enum profile_kind kind;
} kinds[] = {{"k:", KIND_KERNEL}, {"s:", KIND_SCRIPT}, {"w:", KIND_WAITING}, {"", KIND_NATIVE}};

static u32 add(struct profile *p, const char *path, u64 ns, u64 waits)
{
	char *copy = strdup(path), *rest = copy, *part;
	u32 node = 0, function;

	while ((part = strsep(&rest, ";"))) {
		struct profile_function fn = {.module = "program", .file = ""};
		u32 k = 0;

		while (strncmp(part, kinds[k].prefix, strlen(kinds[k].prefix)) != 0)
			k++;
		fn.kind = kinds[k].kind;
		fn.name = part + strlen(kinds[k].prefix);
		assert_null(profile_function(p, 0, &fn, false, &function));
		assert_null(profile_child(p, node, function, &node));
	}
	profile_add(p, node, ns);
	profile_add_more(p, node, waits);
	free(copy);
	return node;
}

static void test_which(void **state)
{
	static const struct {
		const char *stack;
		u64 ns, waits;
		bool idle;
	} cases[] = {
	        {"clone3;start_thread;libstdc++.so.6+0xd4490;dnsdist+0x59e650;sleep;clock_nanosleep;w:[sleep]",
	                5000 * MS, 6, true},
	        /* what the kernel was at when it was seen first: the same sleeps */
	        {"clone3;start_thread;look;nanosleep;k:common_nsleep;w:[sleep]", 200 * MS, 1, true},
	        {"clone3;start_thread;look;nanosleep;k:common_nsleep;k:do_nanosleep;w:[sleep]", 4800 * MS, 5, true},
	        {"_start;__libc_start_main;main;sleep;w:[sleep]", 5000 * MS, 6, true},
	        {"clone3;Py;Py;Py;Py;Py;Py;Py;s:Thread.run (threading.py:964);s:tick (a.py:2);time.sleep;w:[sleep]",
	                5000 * MS, 6, true},
	        {"clone3;start_thread;poll_device;usleep;w:[sleep]", 5000 * MS, 50, false},
	        {"clone3;start_thread;s:run;s:serve;s:process;s:finish;s:handle;s:do_GET;s:view;s:retry;w:[sleep]",
	                5000 * MS, 6, false},
	        {"clone3;start_thread;serve;k:do_futex;w:[condition]", 5000 * MS, 6, false},
	        {"clone3;start_thread;serve_two;k:do_futex;w:[condition Queue]", 5000 * MS, 5, true},
	        {"clone3;start_thread;ask;k:do_recv;w:[receive]", 5000 * MS, 1, false},
	};
	u32 node[sizeof(cases) / sizeof(*cases)];
	struct profile *p;
	bool *idle;

	assert_null(profile_create(&p));
	p->meta.unit = "nanoseconds";
	p->meta.more = "waits";
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		node[i] = add(p, cases[i].stack, cases[i].ns, cases[i].waits);
	profile_finish(p);
	assert_null(idle_waits(p, &idle));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (idle[node[i]] != cases[i].idle)
			fail_msg("%s: %d", cases[i].stack, idle[node[i]]);
	free(idle);
	p->meta.more = "bytes";
	assert_null(idle_waits(p, &idle));
	assert_false(idle[node[0]]);
	free(idle);
	profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_which)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
