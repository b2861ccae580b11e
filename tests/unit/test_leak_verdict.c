/* SPDX-License-Identifier: Apache-2.0 */
/* What the ages of blocks say: leaks, caches that fill up, blocks in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probes/object/leak_stacks.h"
#include "probes/object/leak_verdict.h"

static struct leak_growth of(u64 first, u64 middle, u64 last)
{
	struct leak_left left = {.seen = {first, middle, last},
	        .bytes = {100.0 * (double)first, 100.0 * (double)middle, 100.0 * (double)last}};

	return leak_judge(&left, 60);
}

static void test_verdicts(void **state)
{
	assert_int_equal(of(0, 0, 0).verdict, LEAK_FEW);
	assert_int_equal(of(1, 0, 2).verdict, LEAK_FEW);
	assert_int_equal(of(0, 0, 500).verdict, LEAK_IN_USE);
	assert_int_equal(of(0, 40, 500).verdict, LEAK_IN_USE);
	assert_int_equal(of(100, 5, 0).verdict, LEAK_ENDED);
	assert_int_equal(of(100, 100, 100).verdict, LEAK_GROWS);
	assert_int_equal(of(90, 110, 5000).verdict, LEAK_GROWS);
	assert_int_equal(of(3, 2, 0).verdict, LEAK_GROWS);
}

/* 200 blocks of 100 bytes in 40 s are 30,000 bytes a minute, which the interval has in it. */
static void test_interval(void **state)
{
	struct leak_growth g = of(100, 100, 100);

	assert_true(g.low < 30000 && g.high > 30000);
	assert_true(g.low > 24000 && g.high < 36000);
	g = of(2, 2, 2);
	assert_true(g.low >= 0 && g.low < 100 && g.high > 1000);
}

/* Slots of time become longer with the run; no block is lost by that. */
static void test_slots(void **state)
{
	struct leak_stacks s = {0};
	struct leak_left left;

	leak_stacks_begin(&s, 1000);
	assert_null(leak_stacks_add(&s, 7, 3));
	assert_null(leak_stacks_add(&s, 7, 4));
	assert_int_equal(s.n, 1);
	for (u64 second = 0; second < 300; second++) {
		struct leak_block block = {.hash = 7, .bytes = 10, .blocks = 2, .ns = 1000 + second * 1000000000};

		leak_stacks_left(&s, &block);
		block.hash = 8; /* no stack of it has come */
		leak_stacks_left(&s, &block);
	}
	leak_stacks_thirds(&s, leak_stacks_find(&s, 7), 1000 + 300ull * 1000000000, &left);
	assert_int_equal(left.seen[0] + left.seen[1] + left.seen[2], 300);
	for (u32 i = 0; i < 3; i++)
		assert_in_range(left.seen[i], 90, 110);
	assert_int_equal(s.bytes, 3000);
	leak_stacks_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_verdicts), cmocka_unit_test(test_interval), cmocka_unit_test(test_slots)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
