/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks inside traces: debug.traceback never runs there, so the scripts note the stack in the same place while it is
 * interpreted, and a C function that the trace calls waits. Down to the trace's base all is exact; what is inlined is
 * counted.
 */
#include "luajit_levels.h"

static void print_tally(const struct tally *tally)
{
	print_message(
	        "inlined: %u right, %u wrong, %u missing; lines: %u of %u right; bases: %u of %u wrong; %u stops\n",
	        tally->right, tally->wrong, tally->missing, tally->right_lines, tally->lines, tally->wrong_bases,
	        tally->in_traces, tally->stops);
}

static void test_base(void **state)
{
	struct tally tally = compare_script("traces.lua", "");

	print_tally(&tally);
	assert_int_equal(tally.stops, 4);
	assert_int_equal(tally.in_traces, 4);
}

static void test_inlined(void **state)
{
	struct tally tally = compare_script("traces_inlined.lua", "");

	print_tally(&tally);
	assert_int_equal(tally.stops, 29 * 3);
	assert_true(tally.in_traces >= 25 * 3);
	assert_true(tally.wrong * 50 <= tally.right); /* 2 %: seldom, and not on every build */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_base),
	        cmocka_unit_test(test_inlined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
