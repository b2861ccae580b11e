/* SPDX-License-Identifier: Apache-2.0 */
/* What allocators' books say over a run, also where they can be read only now and then. */
#include "unit.h"

#include "probes/object/leak_series.h"

#define CLASS 12
#define KB    1000u

/* A second later: so many KB of one size in use; 0: the books could not be read. */
static void add(struct leak_series *s, u32 second, u32 glibc_kb, u32 jemalloc_kb)
{
	const u32 kb[LEAK_BOOKS] = {[LEAK_BOOKS_GLIBC] = glibc_kb, [LEAK_BOOKS_JEMALLOC] = jemalloc_kb};
	static struct leak_series_point p;

	memset(&p, 0, sizeof(p));
	p.ns = second * 1000000000ull;
	p.processes = 1;
	for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++) {
		p.of[of].failed = !kb[of];
		p.of[of].in_use = p.of[of].in_use_of[CLASS] = (u64)kb[of] * KB;
	}
	leak_series_add(s, &p);
}

static bool grew(const struct leak_series *s, enum leak_books of, struct leak_growing *ret)
{
	const struct leak_series_of series = {.books = of, .from = CLASS, .to = CLASS, .part = 1, .unsure = 10 * KB};

	return leak_series_grew(s, 60, &series, ret);
}

/* One allocator's failure is neither its own 0 nor the loss of what the other says. */
static void test_torn(void **state)
{
	struct leak_series s = {0};
	struct leak_growing g;
	struct leak_summary curve;

	assert_null(leak_series_create(&s));
	for (u32 i = 0; i <= 60; i += 6)
		add(&s, i, 1000 + i, i == 30 || i == 60 ? 0 : 500);
	assert_true(grew(&s, LEAK_BOOKS_JEMALLOC, &g));
	assert_true(g.early == 0 && g.late == 0 && g.in_use == 500 * KB);
	assert_true(grew(&s, LEAK_BOOKS_GLIBC, &g));
	assert_true(g.early == 30 * KB && g.late == 30 * KB && g.a_minute == 60 * KB);
	assert_null(leak_series_last(&s)); /* nobody may take that for what there is now */
	leak_series_curve(&s, &curve);
	assert_int_equal(curve.nheap, 9);
	assert_int_equal(curve.heap[0].in_use, 1500 * KB);
	assert_int_equal(curve.heap[8].in_use, 1554 * KB);
	leak_series_free(&s);
}

/* Books that can be read from some time on are no growth. */
static void test_late(void **state)
{
	struct leak_series s = {0};
	struct leak_growing g;

	assert_null(leak_series_create(&s));
	for (u32 i = 0; i <= 60; i += 6)
		add(&s, i, 1000, i < 12 ? 0 : 500);
	assert_true(grew(&s, LEAK_BOOKS_JEMALLOC, &g));
	assert_true(g.early == 0 && g.late == 0);
	leak_series_free(&s);
}

/* An allocator that is not there has nothing to say, and keeps nothing back. */
static void test_none(void **state)
{
	struct leak_series s = {0};
	static struct leak_class found[LEAK_CLASSES];
	struct leak_growing g;

	assert_null(leak_series_create(&s));
	for (u32 i = 0; i <= 60; i++) /* more points than are kept */
		add(&s, i, 1000 + 10 * i, 0);
	assert_false(grew(&s, LEAK_BOOKS_JEMALLOC, &g));
	assert_non_null(leak_series_last(&s));
	assert_true(grew(&s, LEAK_BOOKS_GLIBC, &g));
	assert_true(g.a_minute == 600 * KB);
	assert_int_equal(leak_series_growing(&s, 60, found), 1);
	assert_true(found[0].books == LEAK_BOOKS_GLIBC && found[0].number == CLASS);
	leak_series_free(&s);
}

/* 300 KB a minute after a cache of 500 KB has filled up; what threads' caches have goes up and down meanwhile. */
static void test_even(void **state)
{
	struct leak_series s = {0};
	struct leak_growing g;

	assert_null(leak_series_create(&s));
	for (u32 i = 0; i <= 60; i += 3)
		add(&s, i, (i < 12 ? 500 + i * 500 / 12 : 1000) + i * 5 + (i / 3 % 3) * 5, 0);
	assert_true(grew(&s, LEAK_BOOKS_GLIBC, &g));
	assert_true(g.low < 300 * KB && g.high > 300 * KB);
	assert_true(g.low > 240 * KB && g.high < 360 * KB && g.a_minute >= g.low && g.a_minute <= g.high);
	leak_series_free(&s);
}

/* Growth that becomes slower all the time has no rate: the interval has what both halves say. */
static void test_uneven(void **state)
{
	struct leak_series s = {0};
	struct leak_growing g;

	assert_null(leak_series_create(&s));
	for (u32 i = 0; i <= 60; i += 3)
		add(&s, i, 1000 + 4000 * i / (i + 20), 0);
	assert_true(grew(&s, LEAK_BOOKS_GLIBC, &g));
	assert_true(g.low < 1200 * KB && g.high > 3000 * KB);
	leak_series_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_torn),
	        cmocka_unit_test(test_late),
	        cmocka_unit_test(test_none),
	        cmocka_unit_test(test_even),
	        cmocka_unit_test(test_uneven),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
