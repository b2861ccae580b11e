/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined functions and lines from debug information made by hand: sound, in several forms, and with lies. */
#include "inlines_fake.h"

static void check(u64 addr, const char *expected)
{
	struct image *img;
	struct inlines *in = open_made(&img);

	assert_string_equal(chain_at(in, addr), expected);
	assert_string_equal(chain_at(in, addr), expected);
	inlines_close(in);
	image_put(img);
}

static void test_chain(void **state)
{
	for (u16 version = 4; version <= 5; version++) {
		make_nested(version);
		check(0x1020, "inner /src/inc/b.h:31:3|middle /src/inc/b.h:22:7|outer /src/a.c:12:5");
		check(0x102f, "inner /src/inc/b.h:31:3|middle /src/inc/b.h:22:7|outer /src/a.c:12:5");
		check(0x1030, "middle /src/a.c:12:2|outer /src/a.c:12:5");
		check(0x1010, "middle /src/a.c:10:1|outer /src/a.c:12:5");
		check(0x1005, "outer /src/a.c:10:1");
		check(0x10ff, "outer /src/a.c:12:2");
		check(0x1100, "? /src/a.c:12:2");
		check(0x1200, "");
		check(0xfff, "");
		check(UINT64_MAX, "");
	}
}

static void test_definition(void **state)
{
	const struct inline_frame *f;
	struct inlines *in;
	struct image *img;
	u32 n;

	make_nested(4);
	in = open_made(&img);
	assert_null(inlines_find(in, 0x1020, &f, &n));
	assert_int_equal(n, 3);
	assert_int_equal(f[0].definition, 30);
	assert_int_equal(f[1].definition, 20);
	assert_int_equal(f[2].definition, 10);
	inlines_close(in);
	image_put(img);
}

static void put_by_ranges(u16 version)
{
	u32 unit, inner;

	start();
	unit = start_unit(version, 0x1000, 0x200);
	inner = put_abstract("inner", 30);
	put_outer("outer", 10, 0x1000, 0x100);
	put_uleb(&info, BY_RANGES);
	put32(&info, inner);
	put32(&info, 0);
	put8(&info, 15);
	put8(&info, 0);
	end_unit(unit);
}

static void check_ranges(void)
{
	check(0x1020, "inner /src/inc/b.h:31:3|outer ?:15:0");
	check(0x1027, "inner /src/inc/b.h:31:3|outer ?:15:0");
	check(0x1028, "outer /src/inc/b.h:31:3");
	check(0x1040, "inner /src/a.c:12:2|outer ?:15:0");
	check(0x1048, "outer /src/a.c:12:2");
}

static void test_ranges(void **state)
{
	put_by_ranges(4);
	put64(&ranges, 0x20);
	put64(&ranges, 0x28);
	put64(&ranges, UINT64_MAX);
	put64(&ranges, 0x1040);
	put64(&ranges, 0);
	put64(&ranges, 8);
	put64(&ranges, 0);
	put64(&ranges, 0);
	check_ranges();
	put_by_ranges(5);
	put8(&ranges, DW_RLE_offset_pair);
	put(&ranges, "\x20\x28", 2);
	put8(&ranges, DW_RLE_start_length);
	put64(&ranges, 0x1040);
	put8(&ranges, 8);
	put8(&ranges, DW_RLE_end_of_list);
	check_ranges();
}

/* Longer than what is looked at at once; what is inlined is in the last one. */
static void test_many_ranges(void **state)
{
	put_by_ranges(4);
	for (u32 i = 0; i < 600; i++) {
		put64(&ranges, 0x80 + i % 16);
		put64(&ranges, 0x81 + i % 16);
	}
	put64(&ranges, 0x20);
	put64(&ranges, 0x28);
	put64(&ranges, 0);
	put64(&ranges, 0);
	check(0x1020, "inner /src/inc/b.h:31:3|outer ?:15:0");
	put_by_ranges(5);
	for (u32 i = 0; i < 3000; i++) {
		put8(&ranges, DW_RLE_offset_pair);
		put(&ranges, "\x70\x72", 2);
	}
	put8(&ranges, DW_RLE_start_length);
	put64(&ranges, 0x1020);
	put8(&ranges, 8);
	put8(&ranges, DW_RLE_end_of_list);
	check(0x1020, "inner /src/inc/b.h:31:3|outer ?:15:0");
}

static void test_ranges_that_lie(void **state)
{
	put_by_ranges(4);
	check(0x1020, "outer /src/inc/b.h:31:3");
	put64(&ranges, 0x28);
	put64(&ranges, 0x20);
	check(0x1020, "outer /src/inc/b.h:31:3");
	put_by_ranges(5);
	put8(&ranges, 0xee);
	check(0x1020, "outer /src/inc/b.h:31:3");
	ranges.n = 0;
	put8(&ranges, DW_RLE_startx_length);
	put(&ranges, "\xff\xff\x7f\1", 4);
	check(0x1020, "outer /src/inc/b.h:31:3");
}

/* What is inlined elsewhere is passed over DIE by DIE where no sibling is given. */
static void test_second_unit(void **state)
{
	start();
	end_unit(start_unit(4, 0x3000, 0x100));
	put_nested(4);
	check(0x1005, "outer /src/a.c:10:1");
	check(0x1030, "middle /src/a.c:12:2|outer /src/a.c:12:5");
}

/* Of a declaration in another unit, which no table of addresses names. */
static void test_another_unit(void **state)
{
	u32 unit, declared;

	start();
	unit = start_unit(4, 0x1000, 0x200);
	put_uleb(&info, SPECIFIED);
	declared = info.n;
	put32(&info, 0);
	put64(&info, 0x1000);
	put32(&info, 0x100);
	end_unit(unit);
	unit = start_unit(4, 0, 0);
	put_abstract("before", 1);
	memcpy(info.at + declared, &(u32){put_abstract("elsewhere", 7)}, 4);
	end_unit(unit);
	check(0x1005, "elsewhere /src/a.c:10:1");
	memcpy(info.at + declared, &(u32){0xfffffff0}, 4);
	check(0x1005, "? /src/a.c:10:1");
	memcpy(info.at + declared, &(u32){3}, 4);
	check(0x1005, "? /src/a.c:10:1");
}

static void test_linkage_name_behind_a_name(void **state)
{
	u32 unit, named, referred;

	start();
	unit = start_unit(4, 0x1000, 0x200);
	named = put_abstract("plain", 30);
	referred = info.n;
	put_uleb(&info, REFERRED);
	put32(&info, named);
	put_string(&info, "_Z6linkedv");
	put_outer("outer", 10, 0x1000, 0x100);
	put_inlined(referred, 0x1010, 0x40, 1, 12, 5);
	put8(&info, 0);
	put8(&info, 0);
	end_unit(unit);
	check(0x1010, "_Z6linkedv /src/a.c:10:1|outer /src/a.c:12:5");
}

/* An origin that is itself, two that are one another, and one that is the function around. */
static void test_cycles(void **state)
{
	u32 unit, own, a, b;

	start();
	unit = start_unit(4, 0x1000, 0x200);
	put_outer("outer", 10, 0x1000, 0x100);
	own = info.n;
	put_inlined(own, 0x1010, 8, 1, 1, 1);
	put8(&info, 0);
	a = info.n;
	put_inlined(0, 0x1020, 8, 1, 2, 1);
	put8(&info, 0);
	b = info.n;
	put_inlined(a, 0x1030, 8, 1, 3, 1);
	put8(&info, 0);
	memcpy(info.at + a + 1, &b, 4);
	put8(&info, 0);
	end_unit(unit);
	check(0x1010, "? /src/a.c:10:1|outer /src/a.c:1:1");
	check(0x1020, "? /src/inc/b.h:31:3|outer /src/a.c:2:1");
	check(0x1030, "? /src/a.c:12:2|outer /src/a.c:3:1");
}

/* Deeper than what is returned: no more than INLINES_MAX, the innermost are left out. */
static void test_too_deep(void **state)
{
	const struct inline_frame *f;
	struct inlines *in;
	struct image *img;
	u32 unit, inner, n;

	start();
	unit = start_unit(4, 0x1000, 0x200);
	inner = put_abstract("inner", 30);
	put_outer("outer", 10, 0x1000, 0x100);
	for (u32 i = 0; i < 400; i++)
		put_inlined(inner, 0x1000, 0x100, 1, 2, 3);
	for (u32 i = 0; i < 401; i++)
		put8(&info, 0);
	end_unit(unit);
	in = open_made(&img);
	assert_null(inlines_find(in, 0x1010, &f, &n));
	assert_int_equal(n, INLINES_MAX);
	assert_string_equal(f[n - 1].name, "outer");
	inlines_close(in);
	image_put(img);
}

/* Each byte of each section set to each of some values: anything may be found, in bounded time, and nothing crashes. */
static void test_damage(void **state)
{
	static const u8 values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct bytes *parts[] = {&info, &abbrevs, &line, &ranges};
	u32 asked = 0;

	put_by_ranges(5);
	put(&ranges, "\4\x20\x28\0", 4);
	for (size_t p = 0; p < sizeof(parts) / sizeof(*parts); p++) {
		for (size_t at = 0; at < parts[p]->n; at++) {
			u8 was = parts[p]->at[at];

			for (size_t v = 0; v < sizeof(values); v++) {
				struct image *img;
				struct inlines *in;

				parts[p]->at[at] = values[v];
				in = open_with(info.at, info.n, 0, true, &img);
				assert_non_null(in);
				for (u64 addr = 0x1000; addr < 0x1080; addr += 8)
					asked += strlen(chain_alone(in, addr)) > 0;
				chain_at(in, 0x1020);
				inlines_close(in);
				image_put(img);
			}
			parts[p]->at[at] = was;
		}
	}
	assert_true(asked > 1000);
}

/* Cut off after each byte. */
static void test_cut_off(void **state)
{
	size_t whole;

	make_nested(5);
	whole = info.n;
	for (size_t n = 1; n < whole; n++) {
		struct image *img;
		struct inlines *in = open_with(info.at, n, 0, true, &img);

		assert_non_null(in);
		assert_string_equal(chain_at(in, 0x1020), "");
		inlines_close(in);
		image_put(img);
	}
}

static void test_no_debug_information(void **state)
{
	struct image *img;
	struct inlines *in;

	elf_start(&file);
	elf_finish(&file, true);
	assert_null(image_from_memory(elf_copy(&file), file.n, "made", &img));
	assert_null(inlines_open(img, "", &in));
	assert_null(in);
	image_put(img);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_chain),
	        cmocka_unit_test(test_definition),
	        cmocka_unit_test(test_ranges),
	        cmocka_unit_test(test_many_ranges),
	        cmocka_unit_test(test_ranges_that_lie),
	        cmocka_unit_test(test_second_unit),
	        cmocka_unit_test(test_another_unit),
	        cmocka_unit_test(test_linkage_name_behind_a_name),
	        cmocka_unit_test(test_cycles),
	        cmocka_unit_test(test_too_deep),
	        cmocka_unit_test(test_damage),
	        cmocka_unit_test(test_cut_off),
	        cmocka_unit_test(test_no_debug_information),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
