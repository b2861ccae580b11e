/* SPDX-License-Identifier: Apache-2.0 */
/* What short waits were counted for too little or too much: of a thread (wait_record.h), and of a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after what it needs */
#include <cmocka.h>

#include "probes/wait/wait_owed.h"
#include "unwind/error.h"

#define TURN 5

static struct wait_chosen chosen_of(const s64 *ns, u32 n)
{
	struct wait_chosen c = {0};

	for (u32 i = 0; i < n; i++) {
		struct wait_rest wait = {.ns = ns[i], .hash = i + 1};

		wait_choose(&c, &wait, TURN);
	}
	return c;
}

/* The last wait gets what lacks; the largest gives what is too much, but no more than it had. */
static void test_thread(void **state)
{
	struct wait_chosen c = chosen_of((const s64[]){30, 70, 20}, 3), few = chosen_of((const s64[]){30, 70}, 2);
	struct wait_rest rest;

	wait_take_rest(&c, 500, TURN, &rest);
	assert_int_equal(rest.ns, 500);
	assert_int_equal(rest.hash, 3);
	wait_take_rest(&c, -40, TURN, &rest);
	assert_int_equal(rest.ns, -40);
	assert_int_equal(rest.hash, 2);
	wait_take_rest(&c, -100, TURN, &rest);
	assert_int_equal(rest.ns, -70);
	wait_take_rest(&few, 500, TURN, &rest);
	assert_int_equal(rest.ns, 0);
}

/* What user space has forgotten cannot become more or less. */
static void test_turns(void **state)
{
	struct wait_chosen c = chosen_of((const s64[]){30, 70, 20}, 3);
	struct wait_rest rest, wait = {.ns = 10, .hash = 9};

	wait_take_rest(&c, -40, TURN + 1, &rest);
	assert_int_equal(rest.ns, -40);
	wait_take_rest(&c, -40, TURN + 2, &rest);
	assert_int_equal(rest.ns, 0);
	wait_take_rest(&c, 40, TURN + 1, &rest);
	assert_int_equal(rest.ns, 40);
	wait_take_rest(&c, 40, TURN + 2, &rest);
	assert_int_equal(rest.ns, 0);
	wait_choose(&c, &wait, TURN + 2);
	wait_take_rest(&c, -40, TURN + 2, &rest);
	assert_int_equal(rest.ns, -10);
	assert_int_equal(rest.hash, 9);
}

/* Waits of several threads are those of their process. */
static void test_pool(void **state)
{
	struct wait_chosen one = chosen_of((const s64[]){30, 70}, 2), none = {0}, all = {0}, later = {0};
	struct wait_rest rest, wait = {.ns = 50, .hash = 9};

	wait_choose_all(&all, &one);
	wait_choose_all(&all, &none);
	wait_take_rest(&all, 500, TURN, &rest);
	assert_int_equal(rest.ns, 0);
	wait_choose(&later, &wait, TURN);
	wait_choose_all(&all, &later);
	assert_int_equal(all.n, 3);
	wait_take_rest(&all, 500, TURN, &rest);
	assert_int_equal(rest.ns, 500);
	assert_int_equal(rest.hash, 9);
	wait_take_rest(&all, -60, TURN, &rest);
	assert_int_equal(rest.ns, -60);
	assert_int_equal(rest.hash, 2);
	later.turn = TURN - 1; /* a thread that has slept */
	later.last.hash = 10;
	wait_choose_all(&all, &later);
	wait_take_rest(&all, 500, TURN, &rest);
	assert_int_equal(rest.hash, 9);
}

static s64 left_by_ended(void *ctx, u32 tgid)
{
	return ((const s64 *)ctx)[tgid];
}

static void owe(struct wait_owed *o, u32 tgid, s64 owed, u64 hash)
{
	struct wait_thread t = {.tgid = tgid, .owed = owed, .rest = {.ns = 1, .hash = hash}};

	assert_null(wait_owed_add(o, &t));
}

static s64 got(const struct wait_owed *o, u64 hash)
{
	for (u32 i = 0; i < o->n; i++)
		if (o->all[i].rest.hash == hash)
			return o->all[i].rest.ns;
	return -1;
}

static void test_share(void **state)
{
	s64 ended[] = {0, 0, 0, 300, -500, 10000};
	struct wait_owed o = {0};

	wait_owed_share(&o, left_by_ended, ended);
	owe(&o, 1, 600, 11); /* half of what two lack is what the third has too much */
	owe(&o, 2, 100, 21);
	owe(&o, 1, 200, 12);
	owe(&o, 1, -400, 13);
	owe(&o, 2, 300, 0);  /* it has no stack: the other one gets at most twice what it lacks */
	owe(&o, 3, 300, 31); /* with what threads lacked that have ended */
	owe(&o, 3, 300, 32);
	owe(&o, 4, 400, 41);  /* they had too much */
	owe(&o, 5, -400, 51); /* nobody is there to take it */
	wait_owed_share(&o, left_by_ended, ended);
	assert_int_equal(got(&o, 11), 300);
	assert_int_equal(got(&o, 12), 100);
	assert_int_equal(got(&o, 13), 0);
	assert_int_equal(got(&o, 21), 200);
	assert_int_equal(got(&o, 31), 450);
	assert_int_equal(got(&o, 32), 450);
	assert_int_equal(got(&o, 41), 0);
	assert_int_equal(got(&o, 51), 0);
	wait_owed_free(&o);
	assert_int_equal(o.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_thread),
	        cmocka_unit_test(test_turns),
	        cmocka_unit_test(test_pool),
	        cmocka_unit_test(test_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
