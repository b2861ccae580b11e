/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses that are mapped, cut, replaced and moved, beside a table that knows each page. */
#include "unit.h"

#include "probes/object/growth_ledger.h"

#define PAGES 64
#define BASE  0x7f0000000000ull

static u64 at(u64 page)
{
	return BASE + page * GROWTH_PAGE;
}

static void add(struct growth_ledger *l, struct growth_record r)
{
	assert_null(growth_ledger_add(l, &r));
	for (u32 i = 1; i < l->n; i++)
		assert_true(l->ranges[i - 1].instance < l->ranges[i].instance ||
		            l->ranges[i - 1].end <= l->ranges[i].start);
	for (u32 i = 0; i < l->n; i++)
		assert_true(l->ranges[i].start < l->ranges[i].end);
}

static void map(struct growth_ledger *l, u64 page, u64 n, u64 hash, u64 ns)
{
	add(l, (struct growth_record){.instance = 1,
	               .hash = hash,
	               .began_ns = ns,
	               .ns = ns,
	               .added = at(page),
	               .added_size = n * GROWTH_PAGE});
}

static void unmap(struct growth_ledger *l, u64 page, u64 n, u64 began)
{
	add(l, (struct growth_record){.instance = 1,
	               .began_ns = began,
	               .ns = began + 1,
	               .gone = at(page),
	               .gone_size = n * GROWTH_PAGE});
}

/* The hash of a page's stack; 0: none. */
static u64 hash_at(const struct growth_ledger *l, u64 page)
{
	u32 i = growth_ledger_at(l, 1, at(page));

	return i < l->n && l->ranges[i].instance == 1 && l->ranges[i].start <= at(page) ? l->ranges[i].hash : 0;
}

static void test_cut(void **state)
{
	struct growth_ledger l = {0};

	map(&l, 0, 10, 7, 1);
	unmap(&l, 3, 2, 2);
	assert_int_equal(l.n, 2);
	assert_int_equal(hash_at(&l, 2), 7);
	assert_int_equal(hash_at(&l, 3), 0);
	assert_int_equal(hash_at(&l, 5), 7);
	unmap(&l, 0, PAGES, 3);
	assert_int_equal(l.n, 0);
	growth_ledger_free(&l);
}

/* A range that another thread maps while munmap() of its address still runs is not meant by that. */
static void test_meanwhile(void **state)
{
	struct growth_ledger l = {0};

	map(&l, 0, 4, 1, 10);
	map(&l, 0, 4, 2, 25);
	unmap(&l, 0, 4, 20);
	assert_int_equal(hash_at(&l, 0), 2);
	growth_ledger_free(&l);
}

static void test_move(void **state)
{
	struct growth_ledger l = {0};

	map(&l, 0, 4, 1, 1);
	add(&l, (struct growth_record){.instance = 1,
	                .hash = 2,
	                .began_ns = 5,
	                .ns = 6,
	                .gone = at(0),
	                .gone_size = 4 * GROWTH_PAGE,
	                .moved = at(20),
	                .added = at(24),
	                .added_size = 2 * GROWTH_PAGE});
	assert_int_equal(hash_at(&l, 0), 0);
	assert_int_equal(hash_at(&l, 23), 1);
	assert_int_equal(hash_at(&l, 24), 2);
	assert_int_equal(hash_at(&l, 26), 0);
	/* in place */
	add(&l, (struct growth_record){.instance = 1,
	                .hash = 3,
	                .began_ns = 7,
	                .ns = 8,
	                .gone = at(20),
	                .gone_size = 6 * GROWTH_PAGE,
	                .moved = at(20),
	                .added = at(26),
	                .added_size = GROWTH_PAGE});
	assert_int_equal(hash_at(&l, 20), 1);
	assert_int_equal(hash_at(&l, 25), 2);
	assert_int_equal(hash_at(&l, 26), 3);
	growth_ledger_free(&l);
}

/* What is no range of whole pages changes nothing. */
static void test_hostile(void **state)
{
	struct growth_ledger l = {0};

	map(&l, 0, 4, 1, 1);
	add(&l, (struct growth_record){.instance = 1, .began_ns = 2, .ns = 3, .gone = ~0ull, .gone_size = ~0ull});
	add(&l, (struct growth_record){.instance = 1, .began_ns = 2, .ns = 3, .gone = at(0), .gone_size = 77});
	add(&l, (struct growth_record){.instance = 1, .began_ns = 2, .ns = 3, .added = 1ull << 60, .added_size = 4096});
	add(&l, (struct growth_record){
	                .instance = 1, .began_ns = 2, .ns = 3, .gone = at(0), .gone_size = 4096, .moved = ~0ull << 12});
	add(&l, (struct growth_record){.instance = 2, .began_ns = 2, .ns = 3, .gone = at(0), .gone_size = 4096});
	assert_int_equal(l.n, 1);
	assert_int_equal(hash_at(&l, 3), 1);
	growth_ledger_free(&l);
}

static u64 page_at(const struct growth_ledgers *of, u64 page, u64 ns)
{
	return growth_ledger_page(of, 1, at(page), ns);
}

static void change(struct growth_ledgers *of, struct growth_record r)
{
	r.instance = 1;
	assert_null(growth_ledgers_add(of, &r));
}

/* Where a page is that was touched at a moment. */
static void test_page(void **state)
{
	struct growth_ledgers of = {0};

	change(&of, (struct growth_record){.began_ns = 10, .ns = 11, .added = at(0), .added_size = 8 * GROWTH_PAGE});
	assert_int_equal(page_at(&of, 1, 12), at(1));
	assert_int_equal(page_at(&of, 1, 9), 0); /* of what was there before */
	change(&of, (struct growth_record){.began_ns = 20, .ns = 24, .gone = at(1), .gone_size = GROWTH_PAGE});
	assert_int_equal(page_at(&of, 1, 12), 0);
	assert_int_equal(page_at(&of, 1, 22), at(1)); /* meanwhile: it is the next one's */
	assert_int_equal(page_at(&of, 2, 12), at(2));
	/* its pages were dropped */
	change(&of, (struct growth_record){
	                    .began_ns = 30, .ns = 31, .gone = at(2), .gone_size = GROWTH_PAGE, .moved = at(2)});
	assert_int_equal(page_at(&of, 2, 12), 0);
	assert_int_equal(page_at(&of, 2, 32), at(2));
	assert_int_equal(of.mapped.n, 2);
	/* moved twice */
	change(&of, (struct growth_record){
	                    .began_ns = 40, .ns = 41, .gone = at(4), .gone_size = 2 * GROWTH_PAGE, .moved = at(20)});
	change(&of, (struct growth_record){
	                    .began_ns = 50, .ns = 51, .gone = at(20), .gone_size = 2 * GROWTH_PAGE, .moved = at(16)});
	assert_int_equal(page_at(&of, 5, 12), at(17));
	assert_int_equal(page_at(&of, 20, 42), at(16));
	assert_int_equal(page_at(&of, 5, 52), at(5));
	change(&of, (struct growth_record){.began_ns = 60, .ns = 61, .gone = at(17), .gone_size = GROWTH_PAGE});
	assert_int_equal(page_at(&of, 5, 12), 0);
	assert_int_equal(page_at(&of, 4, 12), at(16));
	assert_int_equal(growth_ledger_page(&of, 2, at(4), 12), at(4));
	/* round and round at one moment */
	change(&of, (struct growth_record){
	                    .began_ns = 70, .ns = 70, .gone = at(30), .gone_size = GROWTH_PAGE, .moved = at(31)});
	change(&of, (struct growth_record){
	                    .began_ns = 70, .ns = 70, .gone = at(31), .gone_size = GROWTH_PAGE, .moved = at(30)});
	assert_int_equal(page_at(&of, 30, 1), at(31));
	growth_ledgers_free(&of);
}

static void test_many(void **state)
{
	struct growth_ledger l = {0};
	u64 truth[PAGES] = {0}, moved[PAGES];

	srand(1);
	for (u64 i = 1; i < 20000; i++) {
		u64 page = (u64)rand() % PAGES, n = 1 + (u64)rand() % (PAGES - page),
		    to = (u64)rand() % (PAGES - n + 1);
		int what = rand() % 3;

		if (what == 0) {
			map(&l, page, n, i, i);
			for (u64 k = page; k < page + n; k++)
				truth[k] = i;
		} else if (what == 1) {
			unmap(&l, page, n, i);
			memset(truth + page, 0, n * sizeof(*truth));
		} else if (to + n <= page || page + n <= to) { /* as the kernel wants it */
			add(&l, (struct growth_record){.instance = 1,
			                .began_ns = i,
			                .ns = i,
			                .gone = at(page),
			                .gone_size = n * GROWTH_PAGE,
			                .moved = at(to)});
			memcpy(moved, truth + page, n * sizeof(*truth));
			memset(truth + page, 0, n * sizeof(*truth));
			memcpy(truth + to, moved, n * sizeof(*truth));
		}
		for (u64 k = 0; k < PAGES; k++)
			assert_int_equal(hash_at(&l, k), truth[k]);
	}
	growth_ledger_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_cut),
	        cmocka_unit_test(test_meanwhile),
	        cmocka_unit_test(test_move),
	        cmocka_unit_test(test_hostile),
	        cmocka_unit_test(test_page),
	        cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
