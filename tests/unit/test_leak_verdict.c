/* SPDX-License-Identifier: Apache-2.0 */
/* What the ages of blocks say: leaks, caches that fill up, blocks in use. */
#include <math.h>

#include "unit.h"

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

/* Where the middle third's blocks were chosen more rarely, each stands for more. */
static void test_weights(void **state)
{
	struct leak_left left = {.seen = {160, 10, 10}, .bytes = {16000, 16000, 16000}};

	assert_int_equal(leak_judge(&left, 60).verdict, LEAK_GROWS);
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

/* Classes of ages are in order, and meet. */
static void test_ages(void **state)
{
	assert_int_equal(leak_age(0), 0);
	assert_int_equal(leak_age(UINT64_MAX), LEAK_AGES - 1);
	for (u32 age = 1; age < LEAK_AGES; age++) {
		assert_true(leak_age_begin(age) >= leak_age_begin(age - 1));
		if (leak_age_begin(age) > leak_age_begin(age - 1)) {
			assert_int_equal(leak_age(leak_age_begin(age)), age);
			assert_true(leak_age(leak_age_begin(age) - 1) < age);
		}
	}
}

#define MS 1000000ull

/* Of 1,000 blocks 990 are freed within 1 ms, and 10 are watched for 5 s: 1 % lives longer. */
static void test_life(void **state)
{
	u32 died[LEAK_AGES] = {0}, cut[LEAK_AGES] = {0};
	struct leak_life life;

	died[leak_age(MS)] = 990;
	cut[leak_age(5000 * MS)] = 10;
	leak_life(died, cut, 2000 * MS, &life);
	assert_true(life.known && life.outlived == 10 && !life.died);
	assert_true(fabs(life.part - 0.01) < 1e-9 && life.low > 0 && life.low < 0.01 && life.high > 0.01);
	cut[leak_age(5000 * MS)] = 0;
	leak_life(died, cut, 2000 * MS, &life);
	assert_true(life.known && life.part == 0 && life.high > 0 && life.high < 0.01);
}

/* Of 100 blocks half are cut off at 1 ms; half of the others die at 10 ms: half of all live longer. */
static void test_life_cut(void **state)
{
	u32 died[LEAK_AGES] = {0}, cut[LEAK_AGES] = {0};
	struct leak_life life;

	cut[leak_age(MS)] = 50;
	died[leak_age(10 * MS)] = 25;
	cut[leak_age(5000 * MS)] = 25;
	leak_life(died, cut, 1000 * MS, &life);
	assert_true(life.known && fabs(life.part - 0.5) < 1e-9);
	cut[leak_age(5000 * MS)] = 0;
	died[leak_age(10 * MS)] = 0;
	leak_life(died, cut, 1000 * MS, &life);
	assert_false(life.known);
	assert_int_equal(life.reached, leak_age(MS));
}

static enum leak_verdict judged_with(u64 outlived, u64 died, double early, double late, u32 stayed, u32 gone)
{
	struct leak_life life = {
	        .part = 0.01, .low = 0.005, .high = 0.02, .known = true, .outlived = outlived, .died = died};
	struct leak_windows w = {.life = &life,
	        .stayed = stayed,
	        .gone = gone,
	        .below = 1,
	        .bytes = 1e6,
	        .has_heap = true,
	        .early = early,
	        .late = late,
	        .least = 100};

	return leak_judge_windows(&w, 60).verdict;
}

static enum leak_verdict judged(u64 outlived, u64 died, double early, double late)
{
	return judged_with(outlived, died, early, late, (u32)outlived, 0);
}

static void test_windows(void **state)
{
	assert_int_equal(judged(10, 0, 5000, 5000), LEAK_GROWS);
	assert_int_equal(judged(0, 10, 5000, 5000), LEAK_IN_USE);
	assert_int_equal(judged(2, 0, 5000, 5000), LEAK_FEW);
	assert_int_equal(judged(10, 10, 5000, 5000), LEAK_LONG);
	assert_int_equal(judged(10, 0, 5000, 500), LEAK_ENDED); /* a cache that is full */
	assert_int_equal(judged(10, 0, 0, 50), LEAK_ENDED);
	assert_int_equal(judged(10, 0, 500, 500), LEAK_ENDED);             /* it would have to grow by 2,500 */
	assert_int_equal(judged_with(100, 0, 5000, 5000, 2, 0), LEAK_FEW); /* the others seem to be there */
	assert_int_equal(judged_with(100, 0, 5000, 5000, 0, 1), LEAK_LONG);
	assert_int_equal(judged_with(100, 0, 5000, 5000, 4, 2), LEAK_LONG);
}

/* No block was followed for long: registers saw all of them freed, or there were too few. */
static void test_windows_short(void **state)
{
	struct leak_life life = {.part = 1, .high = 1};
	struct leak_windows w = {.life = &life, .watched = 2, .bytes = 1e6};

	assert_int_equal(leak_judge_windows(&w, 60).verdict, LEAK_SHORT);
	w.watched = 9;
	assert_int_equal(leak_judge_windows(&w, 60).verdict, LEAK_IN_USE);
	w.stayed = 1;
	assert_int_equal(leak_judge_windows(&w, 60).verdict, LEAK_SHORT);
}

/* What windows know of totals widens what is known of lives. */
static void test_windows_interval(void **state)
{
	struct leak_life life = {.part = 0.01, .low = 0.005, .high = 0.02, .known = true, .outlived = 10};
	struct leak_windows w = {.life = &life, .stayed = 10, .bytes = 1e6, .below = 0.5, .above = 2};
	struct leak_growth g = leak_judge_windows(&w, 60);

	assert_int_equal(g.verdict, LEAK_GROWS);
	assert_true(fabs(g.low - 2500) < 1e-6 && fabs(g.high - 40000) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_ages), cmocka_unit_test(test_life),
	        cmocka_unit_test(test_life_cut), cmocka_unit_test(test_windows), cmocka_unit_test(test_windows_short),
	        cmocka_unit_test(test_windows_interval), cmocka_unit_test(test_verdicts),
	        cmocka_unit_test(test_interval), cmocka_unit_test(test_weights), cmocka_unit_test(test_slots)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
