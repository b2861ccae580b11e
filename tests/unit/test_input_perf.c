/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontends/format/input_perf.h"
#include "profile_text.h"

static const char text[] = "# captured on a machine\n"
                           "#\n"
                           "worker 1 4242/4243 [003] 17790.451615:    2004008 cpu-clock:u: \n"
                           "\t           98f0e leaf+0x1e (/usr/lib/libx.so.6)\n"
                           "\t           98000 operator()(int)+0x3 (/usr/lib/liby (deleted))\n"
                           "\t            1000 helper (inlined)\n"
                           "\t            1001 main+0x20 (/bin/a out)\n"
                           "\n"
                           "worker 1 4242/4243 [003] 17790.452615:    2004008 cpu-clock:u: \n"
                           "\tffffffff81000000 do_syscall_64+0x5 ([kernel.kallsyms])\n"
                           "\t            1001 main+0x20 (/bin/a out)\r\n"
                           "\n"
                           "b 7 17790.5:   1 cycles: \n"
                           "\t               0 [unknown] ([unknown])\n";

static void expect(const char *in, bool threads, const char *expected)
{
	struct filter_options options = {.threads = threads};
	struct bytes bytes = {(char *)in, strlen(in)};

	expect_read(&bytes, &options, expected);
}

static void test_frames(void **state)
{
	expect(text, false, "[unknown] 1\nmain;do_syscall_64 1\nmain;helper;operator()(int);leaf 1\n");
	expect(text, true,
	        "b (tid 7);[unknown] 1\nworker 1 (tid 4243);main;do_syscall_64 1\n"
	        "worker 1 (tid 4243);main;helper;operator()(int);leaf 1\n");
	expect("a 1 2.3: 4 cycles: \n\na 1 2.4: 4 cycles:\n\n", true, "a (tid 1) 2\n");
}

static void test_kinds(void **state)
{
	struct filter_options options = {.no_user = true};
	struct bytes bytes = {(char *)text, strlen(text)};

	expect_read(&bytes, &options, "do_syscall_64 1\n[no stack] 2\n");
}

static void refuse(const char *in, const char *said)
{
	struct filter_options options = {0};
	struct recording recording;
	struct profile *p;
	struct error *err = read_bytes(in, strlen(in), &options, &p, &recording);

	assert_non_null(err);
	assert_int_equal(err->kind, ERROR_INPUT);
	assert_non_null(strstr(err->message, said));
	error_free(err);
}

static void test_hostile(void **state)
{
	refuse("a 1 2.3: 4 cycles: \n\tnothing here\n", "line 2: no frame's address");
	refuse("a 1 2.3: 4 cycles: \n\t12zz f (x)\n", "line 2");
	refuse("a 1 2.3: 4 cycles: \n\t12 f (x)\nnonsense\n", "line 3: no command and thread");
	refuse("a 1 2.3 4 cycles: \n", "line 1");
	refuse("1 2 3:\n", "line 1");
	expect("a 1 2.3: 4 cycles: \n\t12\n\t13 ((((\n\t14 )))) (\n\t15 f+0x (()\n\n", false,
	        "f+0x (();)))) (;((((;[unknown] 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_frames),
	        cmocka_unit_test(test_kinds),
	        cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
