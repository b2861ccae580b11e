/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "glibc_fake.h"
#include "unwind/allocators/size_class.h"

static struct usage *read_usage(struct glibc_fake *f)
{
	struct usage *u = NULL;

	assert_null(allocators_read(&f->space, &u));
	free(f);
	return u;
}

/* What is below the malloc of glibc; 0 blocks and bytes: nothing is there. */
static struct amount amount_of(const struct usage *u, const char *arena, const char *state)
{
	for (u32 i = 1; i < u->nnodes; i++) {
		const struct usage_node *n = &u->nodes[i];

		if (!strcmp(n->name, state) && !strcmp(u->nodes[n->parent].name, arena))
			return n->total;
	}
	return (struct amount){0};
}

static const char *line_of(const struct usage *u, enum usage_remark kind)
{
	for (u32 i = 0; i < u->nlines; i++)
		if (u->lines[i].kind == kind)
			return u->lines[i].text;
	return "";
}

#define assert_amount(u, arena, state, n, bytes)                                                                       \
	do {                                                                                                           \
		struct amount amount_ = amount_of(u, arena, state);                                                    \
		assert_int_equal(amount_.blocks, n);                                                                   \
		assert_int_equal(amount_.size, bytes);                                                                 \
		assert_int_equal(amount_.resident, bytes);                                                             \
	} while (0)

/* Used, free small, used, free large, used; the top. */
static void chunks_of(struct glibc_fake *f, bool other)
{
	u64 arena = glibc_fake_begin(f, other);

	glibc_fake_chunk(f, 48, true);
	glibc_fake_chunk(f, 64, false);
	glibc_fake_chunk(f, 32, true);
	glibc_fake_chunk(f, 2048, false);
	glibc_fake_chunk(f, 1040, true);
	glibc_fake_top(f, arena, (other ? FAKE_OTHER : FAKE_HEAP) + FAKE_SIZE);
}

static void check_chunks(const struct usage *u, const char *arena)
{
	assert_amount(u, arena, "in use", 3, 48 + 32 + 1040);
	assert_amount(u, arena, "free in small bins", 1, 64);
	assert_amount(u, arena, "free in large bins", 1, 2048);
}

static void test_layouts(void **state)
{
	static const u64 bins[] = {0x18, 0x68, 0x70};

	for (u32 i = 0; i < sizeof(bins) / sizeof(*bins); i++) {
		struct glibc_fake *f = glibc_fake_create(bins[i], true);
		struct usage *u;

		chunks_of(f, false);
		chunks_of(f, true);
		u = read_usage(f);
		assert_string_equal(line_of(u, USAGE_CORRUPT), "");
		check_chunks(u, "main arena");
		check_chunks(u, "arena 1");
		assert_amount(u, "main arena", "top", 0, FAKE_SIZE - 48 - 64 - 32 - 2048 - 1040);
		assert_int_equal(u->facts.arenas, 2);
		assert_int_equal(u->nodes[0].total.size, FAKE_MAPPINGS * FAKE_SIZE);
		usage_destroy(u);
	}
}

/* A list of fast chunks, mangled or not, and an unsorted one. */
static void test_lists(void **state)
{
	for (u32 mangled = 0; mangled < 2; mangled++) {
		struct glibc_fake *f = glibc_fake_create(0x70, false);
		u64 arena = glibc_fake_begin(f, false), a = glibc_fake_chunk(f, 48, true), unsorted;
		u64 b = glibc_fake_chunk(f, 48, true), bin = arena + f->bins - 16;
		struct usage *u;

		unsorted = glibc_fake_chunk(f, 2048, false);
		glibc_fake_chunk(f, 32, true);
		glibc_fake_put(f, arena + 16 + 8, a);
		glibc_fake_put(f, a + 16, glibc_link(a + 16, b, mangled));
		glibc_fake_put(f, b + 16, glibc_link(b + 16, 0, mangled));
		glibc_fake_put(f, bin + 16, unsorted);
		glibc_fake_put(f, bin + 24, unsorted);
		glibc_fake_put(f, unsorted + 16, bin);
		glibc_fake_put(f, unsorted + 24, bin);
		glibc_fake_top(f, arena, FAKE_HEAP + FAKE_SIZE);
		u = read_usage(f);
		assert_amount(u, "main arena", "free in fast bins", 2, 96);
		assert_amount(u, "main arena", "free, unsorted", 1, 2048);
		assert_amount(u, "main arena", "in use", 1, 32);
		usage_destroy(u);
	}
}

/* A thread's cache with two blocks of 64 bytes: counts of 16 bits, a key, links that are mangled. */
static void test_cache(void **state)
{
	struct glibc_fake *f = glibc_fake_create(0x70, false);
	u64 arena = glibc_fake_begin(f, false), cache = glibc_fake_chunk(f, 0x290, true);
	u64 a = glibc_fake_chunk(f, 64, true), b = glibc_fake_chunk(f, 64, true);
	struct usage *u;

	glibc_fake_chunk(f, 64, true);
	glibc_fake_put(f, cache + 16, 2ull << 32); /* of bin 2 */
	glibc_fake_put(f, cache + 16 + 128 + 16, a + 16);
	glibc_fake_put(f, a + 16, glibc_link(a + 16, b + 16, true));
	glibc_fake_put(f, b + 16, glibc_link(b + 16, 0, true));
	glibc_fake_top(f, arena, FAKE_HEAP + FAKE_SIZE);
	u = read_usage(f);
	assert_amount(u, "main arena", "free in thread caches", 2, 128);
	assert_amount(u, "main arena", "in use", 2, 64 + 0x290);
	usage_destroy(u);
}

/* What is wrong with a chunk is said with its address and that of the last good one; the rest is not read. */
static void check_corrupt(u64 header, const char *what)
{
	struct glibc_fake *f = glibc_fake_create(0x70, false);
	u64 arena = glibc_fake_begin(f, false), good = glibc_fake_chunk(f, 48, true),
	    bad = glibc_fake_chunk(f, 64, true);
	char text[128];
	struct usage *u;

	glibc_fake_chunk(f, 48, true);
	glibc_fake_top(f, arena, FAKE_HEAP + FAKE_SIZE);
	glibc_fake_put(f, bad + 8, header);
	u = read_usage(f);
	assert_non_null(strstr(line_of(u, USAGE_CORRUPT), what));
	snprintf(text, sizeof(text), "corrupt chunk at %#llx ", (unsigned long long)bad);
	assert_non_null(strstr(line_of(u, USAGE_CORRUPT), text));
	snprintf(text, sizeof(text), "before it: %#llx, a block of 40 bytes at %#llx: ", (unsigned long long)good,
	        (unsigned long long)good + 16);
	assert_non_null(strstr(line_of(u, USAGE_CORRUPT), text));
	assert_amount(u, "main arena", "in use", 1, 48);
	assert_int_equal(amount_of(u, "main arena", "not read: corrupt or unreadable").size, FAKE_SIZE - 48);
	usage_destroy(u);
}

static void test_corrupt(void **state)
{
	check_corrupt(0, "less than a chunk can have");
	check_corrupt(64 + 8 + 1, "no multiple of 16");
	check_corrupt(1ull << 60 | 1, "behind its heap");
	check_corrupt(64 | 2 | 1, "a mapping of its own");
	check_corrupt(64 | 4 | 1, "of another arena");
	check_corrupt((FAKE_SIZE - 48) | 1, "which only the top does");
}

/* An overflow of the last block reaches the header of the top, and its text is shown. */
static void test_corrupt_top(void **state)
{
	struct glibc_fake *f = glibc_fake_create(0x70, false);
	u64 arena = glibc_fake_begin(f, false), good = glibc_fake_chunk(f, 48, true), top = f->at;
	char text[128];
	struct usage *u;

	glibc_fake_top(f, arena, FAKE_HEAP + FAKE_SIZE);
	glibc_fake_put(f, top, 0x6f636c65772d7369);     /* is-welco */
	glibc_fake_put(f, top + 8, 0x0000006c6c61656d); /* meall */
	u = read_usage(f);
	snprintf(text, sizeof(text), "corrupt chunk at %#llx ", (unsigned long long)top);
	assert_non_null(strstr(line_of(u, USAGE_CORRUPT), text));
	assert_non_null(
	        strstr(line_of(u, USAGE_CORRUPT), "6f636c65772d7369 \"is-welco\", size 0x6c6c61656d \"meall\""));
	snprintf(text, sizeof(text), "before it: %#llx, a block of 40 bytes at", (unsigned long long)good);
	assert_non_null(strstr(line_of(u, USAGE_CORRUPT), text));
	assert_amount(u, "main arena", "in use", 1, 48);
	usage_destroy(u);
}

static void test_size_classes(void **state)
{
	char name[SIZE_CLASS_NAME];

	assert_string_equal(size_class_name(size_class(32), name), "32 B");
	assert_string_equal(size_class_name(size_class(1024), name), "1 KiB");
	assert_string_equal(size_class_name(size_class(1025), name), "up to 1280 B");
	assert_string_equal(size_class_name(size_class(1280), name), "up to 1280 B");
	assert_string_equal(size_class_name(size_class(1281), name), "up to 1536 B");
	assert_string_equal(size_class_name(size_class(2048), name), "up to 2 KiB");
	assert_string_equal(size_class_name(size_class(60016), name), "up to 64 KiB");
	for (u64 size = 16, before = 0; size < 1ull << 62; size += size / 7 + 1) {
		assert_true(size_class(size) >= before && size_class(size) < SIZE_CLASSES);
		before = size_class(size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_layouts),
	        cmocka_unit_test(test_lists),
	        cmocka_unit_test(test_cache),
	        cmocka_unit_test(test_corrupt),
	        cmocka_unit_test(test_corrupt_top),
	        cmocka_unit_test(test_size_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
