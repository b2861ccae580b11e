/* SPDX-License-Identifier: Apache-2.0 */
/* tlab_budget.h: the rate follows what a sample costs. */
#include <math.h>

#include "unit.h"

#include "probes/tlab/tlab_budget.h"

#define STEP_NS 100000000ull

/* Lets so many samples a second be taken at such costs for some seconds; returns the rate that is allowed then. */
static double run(
        struct tlab_budget *b, struct tlab_spent *s, double rate, double walk_ns, double cpus, double sites, int steps)
{
	double allowed = 0;

	for (int i = 0; i < steps; i++) {
		u64 samples = (u64)(rate / 10);

		s->at_ns += STEP_NS;
		s->target_cpu_ns += (u64)(cpus * STEP_NS);
		s->samples += samples;
		s->walk_ns += (u64)(walk_ns * (double)samples);
		s->traps += samples;
		s->requests += samples;
		s->sites += (u64)(sites / 10);
		allowed = tlab_budget_rate(b, s);
	}
	return allowed;
}

static void test_no_limit(void **state)
{
	struct tlab_budget b = {.trap_ns = 15000, .site_ns = 1000};
	struct tlab_spent s = {.at_ns = 1};

	assert_true(isinf(tlab_budget_rate(&b, &s)));
	assert_true(isinf(run(&b, &s, 500, 1e6, 1, 1000, 10)));
}

/* 10 us of walk and seven times 15 us: 2 % of a CPU, less 5 ms for 5,000 sites, is 130 samples a second. */
static void test_costs(void **state)
{
	struct tlab_budget b = {.share = 0.02, .trap_ns = 15000, .site_ns = 1000};
	struct tlab_spent s = {.at_ns = 1}, start = s;
	double allowed;

	tlab_budget_rate(&b, &s);
	allowed = run(&b, &s, 400, 10000, 1, 5000, 100);
	assert_true(fabs(allowed - 130.4) < 2);
	assert_true(fabs(tlab_budget_share(&b, &start, &s) - 0.051) < 0.0005);
	allowed = run(&b, &s, 400, 10000, 2, 5000, 100); /* a second CPU */
	assert_true(fabs(allowed - 304) < 4);
}

static void test_least(void **state)
{
	struct tlab_budget b = {.share = 0.02, .trap_ns = 15000, .site_ns = 1000};
	struct tlab_spent s = {.at_ns = 1};

	assert_true(tlab_budget_rate(&b, &s) == TLAB_BUDGET_LEAST);
	assert_true(run(&b, &s, 100, 1e7, 1, 1e6, 20) == TLAB_BUDGET_LEAST);
}

/* Sites are placed for as much of the time as half of the share allows, but not for less than a tenth. */
static void test_duty(void **state)
{
	struct tlab_budget b = {.share = 0.02, .trap_ns = 1000, .site_ns = 5000};
	struct tlab_spent s = {.at_ns = 1};

	tlab_budget_rate(&b, &s);
	assert_true(tlab_budget_duty(&b, 1) == 1);
	for (int i = 0; i < 100; i++) { /* 8,000 hits a second, while they are placed */
		s.placed_ns += STEP_NS / 2;
		run(&b, &s, 0, 0, 1, 4000, 1);
	}
	assert_true(fabs(tlab_budget_duty(&b, 1) - 0.25) < 0.001);
	b.site_ns = 1500; /* 0.83: shifts are not begun for that, but gone on with */
	for (int i = 0; i < 100; i++) {
		s.placed_ns += STEP_NS / 2;
		run(&b, &s, 0, 0, 1, 4000, 1);
	}
	assert_true(tlab_budget_duty(&b, 1) == 1);
	assert_true(fabs(tlab_budget_duty(&b, 0.5) - 0.83) < 0.01);
	b.site_ns = 5000;
	for (int i = 0; i < 100; i++) {
		s.placed_ns += STEP_NS;
		run(&b, &s, 0, 0, 1, 2000, 1);
	}
	assert_true(tlab_budget_duty(&b, 1) == 1);
	for (int i = 0; i < 100; i++) {
		s.placed_ns += STEP_NS;
		run(&b, &s, 0, 0, 1, 200000, 1);
	}
	assert_true(tlab_budget_duty(&b, 1) == 0.1);
	b.share = 0;
	assert_true(tlab_budget_duty(&b, 1) == 1);
}

/* A target that is gone has no clock any more. */
static void test_gone(void **state)
{
	struct tlab_budget b = {.share = 0.02, .trap_ns = 1000, .site_ns = 1000};
	struct tlab_spent s = {.at_ns = 1}, before;

	tlab_budget_rate(&b, &s);
	run(&b, &s, 100, 10000, 1, 0, 20);
	before = s;
	s.target_cpu_ns = 0;
	s.at_ns += STEP_NS;
	assert_true(tlab_budget_rate(&b, &s) >= TLAB_BUDGET_LEAST);
	assert_true(tlab_budget_share(&b, &before, &s) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_no_limit),
	        cmocka_unit_test(test_costs),
	        cmocka_unit_test(test_least),
	        cmocka_unit_test(test_duty),
	        cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
