/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "mimalloc_fake.h"
#include "usage_of.h"

static void destroy(struct mimalloc_fake *f, struct usage *u)
{
	usage_destroy(u);
	mimalloc_fake_destroy(f);
}

/* 100 of 48 B out, 300 made, room for 1,365; one large block; free slices. */
static void segment(struct mimalloc_fake *f, const struct mimalloc_layout *l)
{
	mimalloc_fake_segment(f, l);
	mimalloc_fake_slices(f, l, 1, 48, 100, 300, 1365);
	mimalloc_fake_slices(f, l, 10, 600000, 1, 1, 1);
	mimalloc_fake_slices(f, l, 500, 0, 0, 0, 0);
}

static void check_segment(const struct mimalloc_layout *l, const char *name)
{
	struct mimalloc_fake *f = mimalloc_fake_create();
	struct usage *u;

	segment(f, l);
	u = read_usage(&f->space);
	assert_int_equal(amount_of(u, "in use", "48 B").blocks, 100);
	assert_int_equal(amount_of(u, "free in pages", "48 B").blocks, 200);
	assert_int_equal(amount_of(u, name, "never used so far").size, MIMALLOC_SLICE - 300 * 48);
	assert_int_equal(amount_of(u, name, "blocks with pages of their own").size, 10 * MIMALLOC_SLICE);
	assert_int_equal(amount_of(u, name, "free pages").size, 500 * MIMALLOC_SLICE);
	assert_int_equal(amount_of(u, name, "metadata").size, MIMALLOC_SLICE);
	assert_int_equal(u->facts.torn, 0);
	destroy(f, u);
}

static void test_segment(void **state)
{
	check_segment(&mimalloc_fake_late, "malloc of mimalloc 2.1.9 or later");
	check_segment(&mimalloc_fake_early, "malloc of mimalloc 2.0.9 to 2.1.2");
}

/* A list that leads back to itself, one that leads out of the page, and one of three blocks. */
static void test_given_back(void **state)
{
	static const u64 heads[] = {0x10000, 0x20000, 0x10000};
	static const u64 words[] = {0x10000, 0, 0x10040};
	static const u32 left[] = {0, 100, 97};

	for (u32 i = 0; i < 3; i++) {
		struct mimalloc_fake *f = mimalloc_fake_create();
		struct usage *u;

		segment(f, &mimalloc_fake_late);
		mimalloc_fake_put(f, FAKE_SEGMENT + 288 + 96 + 56, (FAKE_SEGMENT + heads[i]) | 1);
		mimalloc_fake_put(f, FAKE_SEGMENT + heads[i], words[i] ? FAKE_SEGMENT + words[i] : 0);
		mimalloc_fake_put(f, FAKE_SEGMENT + 0x10040, FAKE_SEGMENT + 0x10080);
		u = read_usage(&f->space);
		assert_int_equal(amount_of(u, "in use", "48 B").blocks, left[i]);
		destroy(f, u);
	}
}

/* Runs that do not end at the segment's end, more blocks out than made, a size that overflows: nothing is believed. */
static void test_broken_segment(void **state)
{
	static const struct {
		u32 at;
		u64 word;
	} broken[] = {{288, 2}, {288 + 96 * 2, 0}, {288 + 96 * 2, 11}, {288 + 96 + 32, 301},
	        {288 + 96 + 40, 1ull << 60}, {288 + 96 + 8, 0xffffull << 32 | 0x10000000000ull},
	        {288 - 40, 1ull << 40}};

	for (u32 i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		struct mimalloc_fake *f = mimalloc_fake_create();
		struct usage *u;

		segment(f, &mimalloc_fake_late);
		mimalloc_fake_put(f, FAKE_SEGMENT + broken[i].at, broken[i].word);
		u = read_usage(&f->space);
		assert_int_equal(amount_of(u, "in use", "48 B").blocks, 0);
		assert_int_equal(u->facts.in_use, 0);
		destroy(f, u);
	}
}

#define MALLOC "malloc of mimalloc 3"

static void arena(struct mimalloc_fake *f, bool old)
{
	mimalloc_fake_arena(f);
	mimalloc_fake_page(f, old, 1, 48, 100, 300, 1365);
	f->slice += 2;
	mimalloc_fake_page(f, old, 10, 600000, 1, 1, 1);
}

static void test_map(void **state)
{
	for (u32 old = 0; old < 2; old++) {
		struct mimalloc_fake *f = mimalloc_fake_create();
		struct usage *u;

		arena(f, old);
		u = read_usage(&f->space);
		assert_int_equal(amount_of(u, "in use", "48 B").blocks, 100);
		assert_int_equal(amount_of(u, "free in pages", "48 B").blocks, 200);
		assert_int_equal(amount_of(u, MALLOC, "blocks with pages of their own").size, 10 * MIMALLOC_SLICE);
		assert_int_equal(amount_of(u, MALLOC, "free pages").size, (64 - 12) * MIMALLOC_SLICE);
		assert_int_equal(amount_of(u, MALLOC, "metadata").size, MIMALLOC_SLICE);
		assert_int_equal(u->facts.torn, 0);
		destroy(f, u);
	}
}

/* What does not fit is left out: no size, one that overflows, more blocks made than there is room for; overlaps. */
static void test_torn_map(void **state)
{
	static const struct {
		u32 at;
		u64 word;
	} broken[] = {{40, 0}, {40, 1ull << 60}, {40, (1ull << 46)}, {16, 100 | 300ull << 16}};

	for (u32 i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		struct mimalloc_fake *f = mimalloc_fake_create();
		struct usage *u;

		arena(f, false);
		mimalloc_fake_page(f, false, 1, 64, 5, 10, 1024);
		mimalloc_fake_put(f, FAKE_META + FAKE_PAGE + broken[i].at, broken[i].word);
		u = read_usage(&f->space);
		assert_int_equal(amount_of(u, "in use", "48 B").blocks, 0);
		assert_int_equal(amount_of(u, "in use", "64 B").blocks, 5);
		destroy(f, u);
	}
}

/* An arena of more slices than there are addresses, or that is all its own; a map that leads to itself. */
static void test_hostile_map(void **state)
{
	static const u64 words[][2] = {{FAKE_ARENA + 40, 1ull << 60}, {FAKE_ARENA + 48, 64}, {FAKE_PART, FAKE_MAP},
	        {FAKE_MAP, FAKE_MAP}, {FAKE_ARENA + 40, 0}};

	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct mimalloc_fake *f = mimalloc_fake_create();
		struct usage *u;

		arena(f, true);
		mimalloc_fake_put(f, words[i][0], words[i][1]);
		u = read_usage(&f->space);
		assert_int_equal(amount_of(u, MALLOC, "metadata").size, 0);
		destroy(f, u);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_segment),
	        cmocka_unit_test(test_given_back),
	        cmocka_unit_test(test_broken_segment),
	        cmocka_unit_test(test_map),
	        cmocka_unit_test(test_torn_map),
	        cmocka_unit_test(test_hostile_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
