/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "jemalloc_fake.h"
#include "usage_of.h"

static const struct jemalloc_layout layouts[] = {
        {"5.3", 17, 3, 20, 28},
        {"5.1 or 5.2", 16, 2, 18, 26},
        {"5.0", 15, 2, 17, 25},
};

/* Of Redis's own: quantum 8. */
static void test_sizes(void **state)
{
	static const struct {
		u32 class;
		u64 of_16, of_8;
	} known[] = {{0, 8, 8}, {1, 16, 16}, {2, 32, 24}, {3, 48, 32}, {4, 64, 40}, {8, 128, 80}, {32, 8192, 5120},
	        {36, 16384, 10240}, {60, 1 << 20, 640 << 10}};

	for (u32 i = 0; i < sizeof(known) / sizeof(*known); i++) {
		assert_int_equal(jemalloc_class_size(known[i].class, 4), known[i].of_16);
		assert_int_equal(jemalloc_class_size(known[i].class, 3), known[i].of_8);
	}
	assert_int_equal(jemalloc_class_size(JEMALLOC_CLASSES, 4), 0);
	assert_int_equal(jemalloc_slab_size(8), 4096);
	assert_int_equal(jemalloc_slab_size(48), 3 * 4096);
	assert_int_equal(jemalloc_slab_size(14336), 7 * 4096);
	assert_int_equal(jemalloc_slab_size(16384), 0);
}

static void check_layout(const struct jemalloc_layout *layout)
{
	struct jemalloc_fake *f = jemalloc_fake_create(layout);
	struct amount a;
	struct usage *u;

	jemalloc_fake_extent(f, 0, JEMALLOC_ACTIVE, 3, true, 56, 3 * PAGES_SIZE); /* 48 B: 256 in three pages */
	jemalloc_fake_put(f, FAKE_BASE + 64 + FAKE_NODE - 8, 235ull << 48);       /* what 5.1 leaves behind */
	jemalloc_fake_extent(f, 0, JEMALLOC_DIRTY, JEMALLOC_CLASSES, false, 0, 5 * PAGES_SIZE);
	jemalloc_fake_extent(f, 2, JEMALLOC_ACTIVE, 36, false, 0, 5 * PAGES_SIZE);
	jemalloc_fake_extent(f, 2, JEMALLOC_RETAINED, JEMALLOC_CLASSES, false, 0, 64 * PAGES_SIZE);
	u = read_usage(&f->space);
	a = amount_of(u, "in use, or kept for threads", "48 B");
	assert_int_equal(a.blocks, 200);
	assert_int_equal(a.size, 200 * 48);
	assert_int_equal(amount_of(u, "free in slabs", "48 B").blocks, 56);
	assert_int_equal(amount_of(u, "in use, or kept for threads", "16 KiB").blocks, 1);
	assert_int_equal(amount_of(u, "arena 0", "free pages, dirty").size, 5 * PAGES_SIZE);
	assert_int_equal(amount_of(u, "arena 2", "addresses without memory").size, 64 * PAGES_SIZE);
	assert_int_equal(u->facts.torn, 0);
	assert_int_equal(u->nodes[0].total.size, FAKE_MAPPINGS * FAKE_SIZE);
	usage_destroy(u);
	jemalloc_fake_destroy(f);
}

static void test_layouts(void **state)
{
	for (u32 i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		check_layout(&layouts[i]);
}

/* Slabs that were given back, and are kept: the leaf has the class that they had (5.3). Most of a heap may be so. */
static void test_given_back(void **state)
{
	for (u32 k = 0; k < sizeof(layouts) / sizeof(*layouts); k++) {
		struct jemalloc_fake *f = jemalloc_fake_create(&layouts[k]);
		struct usage *u;

		jemalloc_fake_extent(f, 0, JEMALLOC_ACTIVE, 3, true, 56, 3 * PAGES_SIZE);
		for (u32 i = 0; i < 10; i++) {
			u64 page = f->at / PAGES_SIZE % JEMALLOC_NODE, extent = f->extent;

			jemalloc_fake_extent(f, 0, JEMALLOC_DIRTY, JEMALLOC_CLASSES, true, 0, PAGES_SIZE);
			jemalloc_fake_put(f, FAKE_BASE + 64 + page * 8, 28ull << 48 | extent | 5);
		}
		u = read_usage(&f->space);
		assert_int_equal(amount_of(u, "in use, or kept for threads", "48 B").blocks, 200);
		assert_int_equal(amount_of(u, "arena 0", "free pages, dirty").size, 10 * PAGES_SIZE);
		usage_destroy(u);
		jemalloc_fake_destroy(f);
	}
}

/* One that overlaps its neighbour, and one that is being changed, count as torn, and nowhere else. */
static void test_torn(void **state)
{
	struct jemalloc_fake *f = jemalloc_fake_create(&layouts[0]);
	struct usage *u;

	for (u32 i = 0; i < 40; i++)
		jemalloc_fake_extent(f, 0, JEMALLOC_ACTIVE, 36, false, 0, 5 * PAGES_SIZE);
	jemalloc_fake_put(f, FAKE_EXTENTS + 30 * 128 + 16, 7 * PAGES_SIZE);
	jemalloc_fake_put(f, FAKE_EXTENTS + 20 * 128, 4ull << layouts[0].state_at);
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, "in use, or kept for threads", "16 KiB").blocks, 38);
	assert_int_equal(u->facts.torn, 2);
	usage_destroy(u);
	jemalloc_fake_destroy(f);
}

/* What the extents say is not what the leaf says: no layout. */
static void test_unknown_layout(void **state)
{
	static const struct jemalloc_layout other = {"6", 21, 3, 24, 32};
	struct jemalloc_fake *f = jemalloc_fake_create(&other);
	struct usage *u;

	jemalloc_fake_extent(f, 0, JEMALLOC_ACTIVE, 3, true, 56, 3 * PAGES_SIZE);
	u = read_usage(&f->space);
	assert_int_equal(u->nlines, 1);
	assert_non_null(strstr(u->lines[0].text, "unknown layout"));
	usage_destroy(u);
	jemalloc_fake_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_sizes),
	        cmocka_unit_test(test_layouts),
	        cmocka_unit_test(test_given_back),
	        cmocka_unit_test(test_torn),
	        cmocka_unit_test(test_unknown_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
