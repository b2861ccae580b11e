/* SPDX-License-Identifier: Apache-2.0 */
/* What windows stand for: programs of a known rate, slowed by hits of a known cost, give their calls again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probes/object/alloc_weigh.h"

#define SECOND 1e9

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
		alloc_weigh(s, 10, &calls, &bytes);
		check(calls.sum, SECOND / own[k], &calls);
		check(bytes.sum, 100 * SECOND / own[k], &bytes);
	}
}

/* Phases of different rates: each window stands for its own. The interval has the truth, and is wide. */
static void test_phases(void **state)
{
	struct alloc_slice s[10];
	struct alloc_sums calls = {0}, bytes = {0};

	for (int i = 0; i < 10; i++)
		s[i] = i % 2 ? window(200, 600, 250, 2000) : window(20000, 600, 250, 100);
	alloc_weigh(s, 10, &calls, &bytes);
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
	alloc_weigh(s, 8, &calls, &bytes);
	assert_true(alloc_slice_own(&s[0]) < 0);
	assert_true(calls.sum > 0.9 * 8 * SECOND / 10 / 100 && calls.sum < 1.1 * 8 * SECOND / 10 / 100);
	assert_true(alloc_sums_high(&calls) > 8 * SECOND / 10 / 100);
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
	alloc_weigh(s, 4, &calls, &bytes);
	check(calls.sum, 4 * SECOND / 10 / 50000, &calls);
}

/* No window stands for less than itself, and nothing at all for nothing. */
static void test_least(void **state)
{
	struct alloc_slice s = window(1000, 600, 250, 500);
	struct alloc_sums calls = {0}, bytes = {0};

	alloc_weigh(&s, 0, &calls, &bytes);
	assert_true(calls.sum == 0 && alloc_sums_low(&calls) == 0 && alloc_sums_high(&calls) == 0);
	s.stands_for = 0;
	alloc_weigh(&s, 1, &calls, &bytes);
	assert_true(s.weight == 1 && calls.sum == 500);
	s = (struct alloc_slice){0};
	alloc_weigh(&s, 1, &calls, &bytes);
	assert_true(s.weight == 1 && isfinite(alloc_sums_high(&calls)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steady), cmocka_unit_test(test_phases),
	        cmocka_unit_test(test_dense), cmocka_unit_test(test_sparse), cmocka_unit_test(test_least)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
