/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "unwind/process/regions_fit.h"

#define N 12

enum what { FILE_CODE, RUNTIME, MADE, NOTHING };

/* A region of each, one after the other with a gap behind every second. */
static u32 make(struct region *items, const enum what *what, u32 n)
{
	for (u32 i = 0; i < n; i++)
		items[i] = (struct region){.start = 0x1000 * i,
		        .end = 0x1000 * i + (i % 2 ? 0x800 : 0x1000),
		        .module = what[i] == FILE_CODE,
		        .runtime = what[i] == RUNTIME,
		        .table = what[i] == MADE || what[i] == FILE_CODE ? 64 : 0};
	return n;
}

static void check_order(const struct region *items, u32 n)
{
	for (u32 i = 1; i < n; i++)
		assert_true(items[i - 1].end <= items[i].start);
}

static void test_enough_room(void **state)
{
	static const enum what what[] = {NOTHING, NOTHING, FILE_CODE, MADE};
	struct region items[4], before[4];
	struct regions_lost lost;

	make(items, what, 4);
	make(before, what, 4);
	assert_int_equal(regions_fit(items, 4, 4, &lost), 4);
	assert_memory_equal(items, before, sizeof(items));
	assert_int_equal(lost.rows + lost.regions, 0);
	assert_int_equal(regions_fit(NULL, 0, 4, &lost), 0);
}

static void test_neighbours_become_one(void **state)
{
	static const enum what what[] = {NOTHING, NOTHING, NOTHING, FILE_CODE, NOTHING, MADE, NOTHING, NOTHING};
	struct region items[8];
	struct regions_lost lost;

	assert_int_equal(regions_fit(items, make(items, what, 8), 5, &lost), 5);
	assert_int_equal(lost.rows + lost.regions, 0);
	assert_int_equal(items[0].start, 0);
	assert_int_equal(items[0].end, 0x3000);
	assert_true(items[0].unmapped); /* there is a gap in it */
	assert_int_equal(items[1].module, 1);
	assert_false(items[2].unmapped); /* alone */
	assert_int_equal(items[3].table, 64);
	assert_int_equal(items[4].end, 0x7800);
	assert_false(items[4].unmapped); /* no gap */
	check_order(items, 5);
}

static void test_rows_go_next(void **state)
{
	static const enum what what[] = {MADE, NOTHING, MADE, FILE_CODE, MADE, RUNTIME, MADE, MADE};
	struct region items[8];
	struct regions_lost lost;

	assert_int_equal(regions_fit(items, make(items, what, 8), 5, &lost), 5);
	assert_int_equal(lost.rows, 5);
	assert_int_equal(lost.regions, 0);
	assert_int_equal(items[1].module, 1);
	assert_int_equal(items[1].table, 64);
	assert_int_equal(items[3].runtime, 1);
	check_order(items, 5);
}

static void test_files_stay(void **state)
{
	static const enum what what[] = {RUNTIME, NOTHING, RUNTIME, NOTHING, RUNTIME, NOTHING, RUNTIME, NOTHING,
	        RUNTIME, FILE_CODE, NOTHING, FILE_CODE};
	struct region items[N];
	struct regions_lost lost;

	assert_int_equal(regions_fit(items, make(items, what, N), 4, &lost), 4);
	assert_int_equal(lost.regions, 8);
	assert_int_equal(items[0].runtime, 1);
	assert_int_equal(items[1].runtime, 1);
	assert_int_equal(items[2].module, 1);
	assert_int_equal(items[3].module, 1);
	check_order(items, 4);
	assert_int_equal(regions_fit(items, make(items, what, N), 1, &lost), 1);
	assert_int_equal(items[0].module, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_enough_room),
	        cmocka_unit_test(test_neighbours_become_one),
	        cmocka_unit_test(test_rows_go_next),
	        cmocka_unit_test(test_files_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
