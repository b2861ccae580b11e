/* SPDX-License-Identifier: Apache-2.0 */
/* hit_pace.h: which progress a program makes in a shift, and how far off the number of calls may be. */
#include <math.h>

#include "unit.h"

#include "probes/hit/hit_pace.h"

#define S 1e9

/* Of a program that has this beside shifts, and that in them. A shift without length ends: its share is learned. */
static struct pace learned(struct pace_span outside, struct pace_span inside, bool by_time)
{
	struct pace p = {.outside = outside, .inside = inside, .by_time = by_time};

	p.outside.wall = p.inside.wall = S;
	assert_true(pace_step(&p, 1, 0, true) == 0);
	return p;
}

static void is(double seen, double due)
{
	assert_true(fabs(seen - due) < 1e-6);
}

static void test_busy(void **state)
{
	struct pace p = learned((struct pace_span){.cpu = S}, (struct pace_span){.cpu = S, .hits = 0.4 * S}, false);

	assert_false(p.by_time);
	is(p.kept, 0.6);
	is(p.dearer, 1);
	is(pace_expect(&p, 100, true), 60);
	is(pace_expect(&p, 100, false), 100);
	/* it runs as much as before beside its hits, which is no more than all of it */
	p = learned((struct pace_span){.cpu = 0.6 * S}, (struct pace_span){.cpu = S, .hits = 0.2 * S}, false);
	is(p.kept, 1);
	/* hits can not have taken more than what they cost, a quarter more at most */
	p = learned((struct pace_span){.cpu = S}, (struct pace_span){.cpu = 0.5 * S, .hits = 0.2 * S}, false);
	is(p.kept, 0.75);
}

static void test_waiting(void **state)
{
	struct pace p = learned((struct pace_span){.cpu = 0.1 * S, .waits = 1000},
	        (struct pace_span){.cpu = 0.4 * S, .hits = 0.3 * S, .waits = 800}, false);

	assert_true(p.by_time);
	is(p.changed, 10); /* a second of its own CPU time is ten of time */
	is(p.kept, 0.8);
	is(pace_expect(&p, 100, true), 80);
	is(pace_expect(&p, 100, false), 100);
	p = learned((struct pace_span){.cpu = 0.1 * S, .waits = 1000},
	        (struct pace_span){.cpu = 0.2 * S, .hits = 0.1 * S, .waits = 500}, true);
	is(p.changed, 0);
	is(p.kept, 0.875); /* not as few as its waits: hits took 0.125 at most */
	/* hits leave it no time to wait: its own CPU time tells */
	p = learned((struct pace_span){.cpu = 0.1 * S, .waits = 1000},
	        (struct pace_span){.cpu = 0.65 * S, .hits = 0.6 * S, .waits = 10}, true);
	is(p.kept, 0.5);
}

static void test_turns(void **state)
{
	struct pace_span mostly = {.cpu = 0.7 * S}, hits = {.cpu = 0.7 * S, .hits = 0.1 * S};
	struct pace p = learned(mostly, hits, false);

	assert_false(p.by_time);
	p = learned(mostly, hits, true); /* what was idle is so up to 0.8 of a CPU */
	assert_true(p.by_time);
	mostly.cpu = 0.9 * S;
	p = learned(mostly, hits, true);
	assert_false(p.by_time);
	is(p.changed, 0.9);
	/* a program that waits for a CPU as long as it has one is not idle */
	p = learned((struct pace_span){.cpu = 0.3 * S, .ran = 0.3 * S, .ready = 0.3 * S}, hits, false);
	assert_false(p.by_time);
}

static void test_unknown(void **state)
{
	struct pace p = {0};

	is(pace_expect(&p, 100, true), 0);
	is(pace_error(&p), 1.96);
	assert_true(pace_step(&p, 1000, 0, false) == 0);      /* the first time */
	assert_true(pace_step(&p, 3000, 500, false) == -500); /* no process has run: that is less than hits cost */
	pace_skip(&p, 9000, 500);
	assert_true(p.done == -500 && p.by_time);
	assert_true(pace_step(&p, 11000, 500, false) == 2000);
}

static void test_error(void **state)
{
	struct pace p = {0};

	pace_saw(&p, 10, 100, 5);
	is(p.calls, 50);
	is(pace_error(&p), 0);
	pace_saw(&p, 20, 200, 5); /* as many for as much progress */
	is(pace_error(&p), 0);
	p = (struct pace){0};
	pace_saw(&p, 10, 100, 1);
	pace_saw(&p, 30, 100, 1); /* ten less, ten more than the mean */
	is(pace_error(&p), 1.96 * sqrt(200) / 40);
	p.kept = 0.8;
	p.by_time = true;
	p.inside = (struct pace_span){.wall = S, .hits = 0.4 * S};
	is(pace_error(&p), 1.96 * sqrt(200) / 40 + 0.8 / 0.5 - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_busy),
	        cmocka_unit_test(test_waiting),
	        cmocka_unit_test(test_turns),
	        cmocka_unit_test(test_unknown),
	        cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
