/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

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
                           "b 7 17790.5:   2004008 cpu-clock:u: \n"
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

/* Without a call chain; a tracepoint with fields; without a time or period; without a thread; commands with numbers. */
static void test_forms(void **state)
{
	expect("    app 10  1.000000:   10 cpu-clock:      401000 early+0x0 (/app)\n"
	       "    app 10  1.100000:   10 cpu-clock:      402000 late+0x0 (/app)\n",
	        true, "app (tid 10);early 1\napp (tid 10);late 1\n");
	expect("sleep 10 [001]  4.5: sched:sched_switch: prev_comm=a prev_pid=10 ==> next_comm=b (x)\n"
	       "\tffffffff821f8b58 __schedule+0x618 ([kernel.kallsyms])\n\t 7f10b9594ec5 nap+0x5 (/app)\n\n",
	        false, "nap;__schedule 1\n");
	expect("a b 7 10/10 cycles: \n\t 401000 busy+0x0 (/app)\n", true, "a b 7 (tid 10);busy 1\n");
	expect("a 10 [003] 250 cpu/cycles/P: \n\t 401000 busy+0x0 (/app)\n", true, "a (tid 10);busy 1\n");
	expect(":-1 -1/-1 [001] 1.1: 25 cycles: \n\tffffffff81000000 late+0x0 ([kernel.kallsyms])\n", true,
	        ":-1 (tid -1);late 1\n");
}

/* The kernel is where its addresses are, whatever brackets or endings a name has. */
static void test_kernel(void **state)
{
	static const char in[] = "a 1 2.3: 4 cycles: \n"
	                         "\tffffffff81000000 do_futex+0x10 ([kernel.kallsyms])\n"
	                         "\tffffffffc0000000 nf_hook+0x1 ([nf_tables])\n"
	                         "\t9c51fd34 jitted+0x4 ([JIT app cache])\n"
	                         "\t9c51fd44 anon+0x4 ([anon:x])\n"
	                         "\t9c51fd54 mine+0x4 (/opt/x.koala/lib.ko.so)\n";
	struct filter_options options = {.no_kernel = true};
	struct bytes bytes = {(char *)in, strlen(in)};

	expect_read(&bytes, &options, "mine;anon;jitted 1\n");
}

/* Of several events the first; what was left out is told, as are periods that differ. */
static void test_events(void **state)
{
	static const char two[] = "a 1 2.3: 4 cycles: \n\t1 f (x)\n\na 1 2.4: 1 page-faults: \n\t2 g (x)\n\n"
	                          "a 1 2.5: 4 cycles: \n\t1 f (x)\n",
	                  differ[] = "a 1 2.3: 4 cycles: \n\t1 f (x)\n\na 1 2.4: 5 cycles: \n\t1 f (x)\n";
	struct filter_options options = {0};
	struct recording recording;
	struct profile *p;

	expect(two, false, "f 2\n");
	assert_null(read_bytes(two, strlen(two), &options, &p, &recording));
	assert_non_null(strstr(p->meta.loss, "the first event, are counted: 1 are of others, such as page-faults"));
	profile_destroy(p);
	assert_null(read_bytes(differ, strlen(differ), &options, &p, &recording));
	assert_non_null(strstr(p->meta.loss, "periods differ"));
	profile_destroy(p);
	assert_null(read_bytes(text, strlen(text), &options, &p, &recording));
	assert_null(p->meta.loss);
	profile_destroy(p);
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
	refuse("a 1 2.3 4 : \n", "line 1");
	refuse("1 2 3:\n", "line 1");
	expect("a 1 2.3: 4 cycles: \n\t12\n\t13 ((((\n\t14 )))) (\n\t15 f+0x (()\n\n", false,
	        "f+0x (();)))) (;((((;[unknown] 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_frames),
	        cmocka_unit_test(test_kinds),
	        cmocka_unit_test(test_forms),
	        cmocka_unit_test(test_kernel),
	        cmocka_unit_test(test_events),
	        cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
