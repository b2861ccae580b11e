/* SPDX-License-Identifier: Apache-2.0 */
/* What windows stand for: programs of a known rate, slowed by hits of a known cost, give their calls again. */
#include <math.h>

#include "unit.h"

#include "probes/object/alloc_cold.h"
#include "probes/object/alloc_weigh.h"

#define SECOND 1e9

static const struct alloc_cold warm; /* code is as fast behind a hit as elsewhere */

/* A window of a program that makes a call each own_ns, which stands for a tenth of a second; ns of a hit. */
static struct alloc_slice window(double own_ns, double exception_ns, double bpf_ns, double calls)
{
	return (struct alloc_slice){.hits = calls,
	        .gaps = calls,
	        .gap_ns = calls * (own_ns + exception_ns),
	        .exception_ns = exception_ns,
	        .cpu_ns = calls * (own_ns + exception_ns + bpf_ns),
	        .bpf_ns = calls * bpf_ns,
	        .stands_for = SECOND / 10,
	        .calls = calls,
	        .bytes = 100 * calls};
}

static void check(double sum, double due, const struct alloc_sums *s)
{
	assert_true(fabs(sum - due) < due / 1000);
	assert_true(alloc_sums_low(s) <= sum && sum <= alloc_sums_high(s));
}

/* Ten windows of a steady program: whatever the density, the calls of a second. */
static void test_steady(void **state)
{
	static const double own[] = {100, 1000, 10000, 100000};

	for (size_t k = 0; k < sizeof(own) / sizeof(*own); k++) {
		struct alloc_slice s[10];
		struct alloc_sums calls = {0}, bytes = {0};

		for (int i = 0; i < 10; i++)
			s[i] = window(own[k], 600, 250, 500);
		alloc_weigh(s, 10, &warm, &calls, &bytes);
		check(calls.sum, SECOND / own[k], &calls);
		check(bytes.sum, 100 * SECOND / own[k], &bytes);
	}
}

/*
 * Nearly all hits end gaps, but most CPU time lies in none: of threads that do not allocate, or where one was switched
 * away. It counts; ticks of the CPU clock, which are as often too much as too little, do not.
 */
static void test_rest(void **state)
{
	struct alloc_slice s[20], ticks[20];
	struct alloc_sums calls = {0}, bytes = {0}, ticking = {0}, others = {0};

	for (int i = 0; i < 20; i++) {
		s[i] = window(2000, 600, 250, 1000 + 10 * i);
		s[i].gaps = 0.97 * s[i].hits;
		s[i].gap_ns *= 0.97;
		ticks[i] = s[i];
		s[i].cpu_ns += 8000 * s[i].hits;
		ticks[i].cpu_ns += i % 2 ? 4e6 : -4e6;
	}
	alloc_weigh(s, 20, &warm, &calls, &bytes);
	assert_true(fabs(calls.sum - 2 * SECOND / 10000) < 0.03 * calls.sum);
	assert_true(alloc_sums_low(&calls) < 0.95 * calls.sum && alloc_sums_high(&calls) > 1.05 * calls.sum);
	alloc_weigh(ticks, 20, &warm, &ticking, &others);
	assert_true(fabs(ticking.sum - 2 * SECOND / 2000) < 0.05 * ticking.sum);
}

/* Phases of different rates: each window stands for its own. The interval has the truth, and is wide. */
static void test_phases(void **state)
{
	struct alloc_slice s[10];
	struct alloc_sums calls = {0}, bytes = {0};

	for (int i = 0; i < 10; i++)
		s[i] = i % 2 ? window(200, 600, 250, 2000) : window(20000, 600, 250, 100);
	alloc_weigh(s, 10, &warm, &calls, &bytes);
	check(calls.sum, SECOND / 2 / 200 + SECOND / 2 / 20000, &calls);
	assert_true(alloc_sums_high(&calls) > 1.3 * calls.sum && alloc_sums_low(&calls) < calls.sum / 1.3);
}

/* Where exceptions took all of a window as it seems, its like decide: chance of one measurement is none of the sum. */
static void test_dense(void **state)
{
	struct alloc_slice s[8];
	struct alloc_sums calls = {0}, bytes = {0};

	for (int i = 0; i < 8; i++) {
		s[i] = window(100, 600, 250, 2000);
		s[i].gap_ns += i % 2 ? 2000 * 120.0 : -2000 * 120.0;
	}
	alloc_weigh(s, 8, &warm, &calls, &bytes);
	assert_true(alloc_slice_own(&s[0]) < 0);
	assert_true(calls.sum > 0.9 * 8 * SECOND / 10 / 100 && calls.sum < 1.1 * 8 * SECOND / 10 / 100);
	assert_true(alloc_sums_high(&calls) > 8 * SECOND / 10 / 100);
}

/* Hits of second places have no code before them: windows with and without such stand for the same. */
static void test_pairs(void **state)
{
	struct alloc_slice s[6];
	struct alloc_sums calls = {0}, bytes = {0};

	for (int i = 0; i < 6; i++) {
		s[i] = window(150, 600, 250, 1000);
		s[i].pairs = i % 2 ? 1000 : 0;
		s[i].hits += s[i].pairs;
		s[i].cpu_ns += s[i].pairs * (600 + 250);
		s[i].bpf_ns += s[i].pairs * 250;
	}
	alloc_weigh(s, 6, &warm, &calls, &bytes);
	check(calls.sum, 6 * SECOND / 10 / 150, &calls);
}

/*
 * A short program whose calls are in two windows of twelve, behind which code is slower than anybody knows: the
 * interval has a quarter of the sum, and three times as much.
 */
static void test_short(void **state)
{
	struct alloc_slice s[12];
	struct alloc_sums calls = {0}, bytes = {0};
	struct alloc_cold guess;

	for (int i = 0; i < 12; i++)
		s[i] = i % 6 ? window(20000, 600, 250, 100) : window(500, 600, 250, 800);
	alloc_cold_fit(s, 12, NULL, 0, 600, &guess);
	alloc_weigh(s, 12, &guess, &calls, &bytes);
	assert_true(alloc_sums_low(&calls) > 0 && alloc_sums_low(&calls) < calls.sum / 3);
	assert_true(alloc_sums_high(&calls) > 3 * calls.sum && alloc_sums_high(&calls) < 20 * calls.sum);
}

/* Hits between which a thread waits have no gaps: CPU time says what was done. */
static void test_sparse(void **state)
{
	struct alloc_slice s[4];
	struct alloc_sums calls = {0}, bytes = {0};

	for (int i = 0; i < 4; i++) {
		s[i] = window(50000, 600, 250, 300);
		s[i].gaps = s[i].gap_ns = 0;
	}
	alloc_weigh(s, 4, &warm, &calls, &bytes);
	check(calls.sum, 4 * SECOND / 10 / 50000, &calls);
}

/* No window stands for less than itself, and nothing at all for nothing. */
static void test_least(void **state)
{
	struct alloc_slice s = window(1000, 600, 250, 500);
	struct alloc_sums calls = {0}, bytes = {0};

	alloc_weigh(&s, 0, &warm, &calls, &bytes);
	assert_true(calls.sum == 0 && alloc_sums_low(&calls) == 0 && alloc_sums_high(&calls) == 0);
	s.stands_for = 0;
	alloc_weigh(&s, 1, &warm, &calls, &bytes);
	assert_true(s.weight == 1 && calls.sum == 500);
	s = (struct alloc_slice){0};
	alloc_weigh(&s, 1, &warm, &calls, &bytes);
	assert_true(s.weight == 1 && isfinite(alloc_sums_high(&calls)));
}

#define EXCEPTION 600.0
#define COLD      200.0
#define BEHIND    350.0 /* ns between two hits, as slow as code is there: */
#define EACH      100   /* calls for a landmark */

/* What is left of it where code is fast: little code is little slower (alloc_weigh.c). */
static double own_ns(void)
{
	return BEHIND - COLD * (1 - exp(-0.7 * BEHIND / COLD));
}

/* Windows of a program that passes a landmark each EACH calls; and those in which the landmark alone has a uprobe. */
static void make_cold(struct alloc_slice *with, struct alloc_slice *alone, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		with[i] = window(BEHIND, EXCEPTION, 250, 2000);
		with[i].marks = 2000.0 / EACH;
		alone[i] = window(own_ns() * EACH + COLD, EXCEPTION, 250, 200);
		alone[i].marks = 200;
		with[i].choice = alone[i].choice = 1;
	}
}

/* By how much code is slower behind hits comes from landmarks, and the calls of a second come out. */
static void test_cold(void **state)
{
	struct alloc_slice with[30], alone[30];
	struct alloc_sums calls = {0}, bytes = {0};
	double due = 30 * SECOND / 10 / own_ns();
	struct alloc_cold cold;

	make_cold(with, alone, 30);
	alloc_cold_fit(with, 30, alone, 30, EXCEPTION, &cold);
	assert_true(cold.measured && cold.low < COLD && COLD < cold.high && fabs(cold.ns - COLD) < COLD / 10);
	alloc_weigh(with, 30, &cold, &calls, &bytes);
	assert_true(fabs(calls.sum - due) < due / 20);
	assert_true(
	        alloc_sums_low(&calls) < due && due < alloc_sums_high(&calls) && alloc_sums_high(&calls) < 1.6 * due);
}

/* Without landmarks, or where they are hardly hit, it is a guess, with a wide interval that has it. */
static void test_no_landmarks(void **state)
{
	struct alloc_slice with[30], alone[30];
	struct alloc_cold cold;

	make_cold(with, alone, 30);
	alloc_cold_fit(with, 30, NULL, 0, EXCEPTION, &cold);
	assert_true(!cold.measured && cold.low < COLD && COLD < cold.high && cold.high - cold.low > COLD);
	for (int i = 0; i < 30; i++)
		with[i].marks = i < 4;
	alloc_cold_fit(with, 30, alone, 30, EXCEPTION, &cold);
	assert_false(cold.measured);
	for (int i = 0; i < 30; i++)
		with[i] = alone[i] = (struct alloc_slice){.choice = 1};
	alloc_cold_fit(with, 30, alone, 30, EXCEPTION, &cold);
	assert_true(!cold.measured && isfinite(cold.ns) && isfinite(cold.low) && isfinite(cold.high));
}

/* Of a burst of 2,000 calls, 100 a second: code that takes 40 ns takes 5 us behind a hit, and a window ends with it. */
static struct alloc_slice burst(double calls)
{
	struct alloc_slice s = window(5000, EXCEPTION, 2000, calls);

	s.stands_for = SECOND / 10;
	s.behind = 2000;
	s.waits = 1;
	s.ns = 25e6;
	s.waits_behind = 100;
	s.ns_behind = SECOND;
	return s;
}

/* A program that waits most of the time is weighed by that. Windows that mostly miss the wait tell nothing. */
static void test_waits(void **state)
{
	const struct alloc_cold cold = {4700, 4500, 4900, true};
	struct alloc_slice s[20];
	struct alloc_sums calls = {0}, bytes = {0}, other = {0}, none = {0};
	double due = 20 * 100 * 2000;

	for (int i = 0; i < 20; i++)
		s[i] = burst(i % 2 ? 3000 : 1000);
	assert_int_equal(alloc_weigh(s, 20, &cold, &calls, &bytes), ALLOC_CLOCK_WAITS);
	check(calls.sum, due, &calls);
	for (int i = 0; i < 20; i++)
		s[i].ousted_behind = 200;
	assert_int_equal(
	        alloc_weigh(s, 20, &cold, &other, &none), ALLOC_CLOCK_CPU); /* it does not wait: it gets no CPU */
	for (int i = 0; i < 20; i++) {
		s[i].ousted_behind = 0;
		s[i].ready_behind = 3 * SECOND; /* three threads do not, others of its do */
	}
	assert_int_equal(alloc_weigh(s, 20, &cold, &other, &none), ALLOC_CLOCK_CPU);
	for (int i = 0; i < 20; i++)
		s[i].ready_behind = SECOND / 4;
	for (int i = 0; i < 20; i++)
		s[i].ousted_behind = 0;
	assert_true(alloc_sums_low(&calls) < 0.5 * due && alloc_sums_high(&calls) < 1.5 * due);
	for (int i = 0; i < 20; i++)
		s[i].waits = i % 2;
	assert_int_equal(alloc_weigh(s, 20, &cold, &other, &none), ALLOC_CLOCK_CPU);
}

/* A program that gets a CPU twice as often as its CPU time says, in phases of small and of large blocks. */
static void make_counted(struct alloc_slice *s, int n)
{
	for (int i = 0; i < n; i++) {
		double size = i / 10 % 2 ? 1000 : 100;

		s[i] = window(1000, 600, 250, 500);
		s[i].is_counted = true;
		s[i].bytes = 500 * size;
		s[i].rounded = s[i].own_counted = 1.1 * s[i].bytes;
		s[i].counted = 1.1 * size * 2e5;
		s[i].squares = 500 * size * size;
		s[i].largest = size;
	}
}

/* The counter's bytes are the scale, in each phase. Windows without a call leave theirs to others. */
static void test_counter(void **state)
{
	struct alloc_slice s[40];
	struct alloc_sums calls = {0}, bytes = {0}, rest = {0}, all = {0};
	double due = 2e5 * 40, of_bytes = 2e5 * (20 * 100 + 20 * 1000);

	make_counted(s, 40);
	assert_int_equal(alloc_weigh(s, 40, &warm, &calls, &bytes), ALLOC_CLOCK_COUNTER);
	check(calls.sum, due, &calls);
	check(bytes.sum, of_bytes, &bytes);
	for (int i = 3; i < 40; i += 10) {
		struct alloc_slice *none = &s[i];

		none->calls = none->bytes = none->rounded = none->own_counted = none->squares = none->hits = 0;
	}
	assert_int_equal(alloc_weigh(s, 40, &warm, &rest, &all), ALLOC_CLOCK_COUNTER);
	check(all.sum, of_bytes, &all);
	check(rest.sum, due, &rest);
}

/* One block of ten thousand has most of the bytes, and few windows have seen one: so much is said, no more. */
static void test_counter_of_large(void **state)
{
	struct alloc_slice s[40];
	struct alloc_sums calls = {0}, bytes = {0};

	make_counted(s, 40);
	for (int i = 0; i < 40; i++) {
		bool large = i == 20;

		s[i].bytes = 500 * 100 + 1e7 * large;
		s[i].rounded = s[i].own_counted = s[i].bytes;
		s[i].squares = 500 * 100 * 100 + 1e14 * large;
		s[i].counted = 200e3 * (100 + 1e3);
		s[i].largest = 1e7;
	}
	assert_int_equal(alloc_weigh(s, 40, &warm, &calls, &bytes), ALLOC_CLOCK_COUNTER);
	assert_true(alloc_sums_low(&calls) < 200e3 * 40 && 200e3 * 40 < alloc_sums_high(&calls));
	assert_true(fabs(bytes.sum - 200e3 * 1100 * 40) < 1);
}

/* What the counter says is not used where it contradicts calls that were seen, or is known of few windows. */
static void test_counter_in_doubt(void **state)
{
	struct alloc_slice s[40];
	struct alloc_sums calls = {0}, bytes = {0};

	make_counted(s, 40);
	for (int i = 0; i < 40; i++)
		s[i].own_counted *= 3;
	assert_int_equal(alloc_weigh(s, 40, &warm, &calls, &bytes), ALLOC_CLOCK_CPU);
	make_counted(s, 40);
	for (int i = 0; i < 20; i++)
		s[i].is_counted = false;
	assert_int_equal(alloc_weigh(s, 40, &warm, &calls, &bytes), ALLOC_CLOCK_CPU);
}

/* No window saw a call: bytes are known, and of the calls how many there may be. */
static void test_counter_alone(void **state)
{
	struct alloc_slice s[2];
	struct alloc_sums calls = {0}, bytes = {0};

	for (int i = 0; i < 2; i++)
		s[i] = (struct alloc_slice){.is_counted = true, .counted = 8000};
	assert_int_equal(alloc_weigh(s, 2, &warm, &calls, &bytes), ALLOC_CLOCK_COUNTER);
	assert_true(alloc_sums_low(&calls) == 0 && fabs(alloc_sums_high(&calls) - 2000) < 1);
	assert_true(fabs(bytes.sum - 16000) < 1 && alloc_sums_low(&bytes) < bytes.sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steady), cmocka_unit_test(test_rest),
	        cmocka_unit_test(test_phases), cmocka_unit_test(test_dense), cmocka_unit_test(test_pairs),
	        cmocka_unit_test(test_short), cmocka_unit_test(test_sparse), cmocka_unit_test(test_least),
	        cmocka_unit_test(test_cold), cmocka_unit_test(test_no_landmarks), cmocka_unit_test(test_waits),
	        cmocka_unit_test(test_counter), cmocka_unit_test(test_counter_of_large),
	        cmocka_unit_test(test_counter_in_doubt), cmocka_unit_test(test_counter_alone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
