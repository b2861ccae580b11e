/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined functions and lines from debug information made by hand: sound, in several forms, and with lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dwarf.h>
#include <zlib.h>

#include "elf_file.h"
#include "unwind/dwarf/section.h"
#include "unwind/symbols/inlines.h"

/*
 * outer [0x1000, 0x1100) line 10, in it a block, in that middle [0x1010, 0x1050) called at 1:12:5, in that inner
 * [0x1020, 0x1030) called at 2:22:7. Abbreviations by number:
 */
enum { UNIT = 1, OUTER, ABSTRACT, INLINED, BY_RANGES, SPECIFIED, BLOCK, REFERRED };

static struct elf_file file;
static struct bytes abbrevs, info, line, ranges;

struct abbrev {
	u64 number, tag;
	bool children;
	u16 attrs[16]; /* name, form, … 0 */
};

static void put_abbrev(const struct abbrev *a)
{
	put_uleb(&abbrevs, a->number);
	put_uleb(&abbrevs, a->tag);
	put8(&abbrevs, a->children);
	for (u32 i = 0; a->attrs[i]; i++)
		put_uleb(&abbrevs, a->attrs[i]);
	put16(&abbrevs, 0);
}

static void make_abbrevs(void)
{
	static const struct abbrev list[] = {
	        {UNIT, DW_TAG_compile_unit, true,
	                {DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_comp_dir, DW_FORM_string, DW_AT_low_pc,
	                        DW_FORM_addr, DW_AT_high_pc, DW_FORM_data8}},
	        {OUTER, DW_TAG_subprogram, true,
	                {DW_AT_name, DW_FORM_string, DW_AT_decl_line, DW_FORM_data1, DW_AT_low_pc, DW_FORM_addr,
	                        DW_AT_high_pc, DW_FORM_data4}},
	        {ABSTRACT, DW_TAG_subprogram, false, {DW_AT_name, DW_FORM_string, DW_AT_decl_line, DW_FORM_data1}},
	        {INLINED, DW_TAG_inlined_subroutine, true,
	                {DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,
	                        DW_AT_call_file, DW_FORM_data1, DW_AT_call_line, DW_FORM_data1, DW_AT_call_column,
	                        DW_FORM_data1}},
	        {BY_RANGES, DW_TAG_inlined_subroutine, false,
	                {DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_ranges, DW_FORM_sec_offset, DW_AT_call_line,
	                        DW_FORM_data1}},
	        {SPECIFIED, DW_TAG_subprogram, false,
	                {DW_AT_specification, DW_FORM_ref_addr, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
	                        DW_FORM_data4}},
	        {BLOCK, DW_TAG_lexical_block, true, {0}},
	        {REFERRED, DW_TAG_subprogram, false,
	                {DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_linkage_name, DW_FORM_string}},
	};

	abbrevs.n = 0;
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		put_abbrev(&list[i]);
	put8(&abbrevs, 0);
}

static void put_string(struct bytes *b, const char *s)
{
	put(b, s, strlen(s) + 1);
}

/* The unit's offset; its length is filled in by end_unit(). */
static u32 start_unit(u16 version, u64 low, u64 size)
{
	u32 at = info.n;

	put32(&info, 0);
	put16(&info, version);
	if (version == 5) {
		put8(&info, DW_UT_compile);
		put8(&info, 8);
		put32(&info, 0);
	} else {
		put32(&info, 0);
		put8(&info, 8);
	}
	put_uleb(&info, UNIT);
	put32(&info, 0);
	put_string(&info, "/src");
	put64(&info, low);
	put64(&info, size);
	return at;
}

static void end_unit(u32 at)
{
	u32 length;

	put8(&info, 0);
	length = info.n - at - 4;
	memcpy(info.at + at, &length, 4);
}

static u32 put_abstract(const char *name, u8 decl_line)
{
	u32 at = info.n;

	put_uleb(&info, ABSTRACT);
	put_string(&info, name);
	put8(&info, decl_line);
	return at;
}

static void put_outer(const char *name, u8 decl_line, u64 low, u32 size)
{
	put_uleb(&info, OUTER);
	put_string(&info, name);
	put8(&info, decl_line);
	put64(&info, low);
	put32(&info, size);
}

static void put_inlined(u32 origin, u64 low, u32 size, u8 call_file, u8 call_line, u8 call_column)
{
	put_uleb(&info, INLINED);
	put32(&info, origin);
	put64(&info, low);
	put32(&info, size);
	put8(&info, call_file);
	put8(&info, call_line);
	put8(&info, call_column);
}

static void put_row(u64 advance, s64 lines, u8 column)
{
	put8(&line, DW_LNS_advance_pc);
	put_uleb(&line, advance);
	put8(&line, DW_LNS_advance_line);
	put_sleb(&line, lines);
	put8(&line, DW_LNS_set_column);
	put_uleb(&line, column);
	put8(&line, DW_LNS_copy);
}

/* Files a.c (in /src) and b.h (in inc); rows 0x1000: 10:1, 0x1020: 31:3 in b.h, 0x1030: 12:2 in a.c; ends at 0x1200. */
static void make_line(void)
{
	static const u8 lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1};
	u32 length, header;

	line.n = 0;
	put32(&line, 0);
	put16(&line, 4);
	put32(&line, 0);
	header = line.n;
	put(&line, "\1\1\1\xff\4\xa", 6);
	put(&line, lengths, sizeof(lengths));
	put_string(&line, "inc");
	put8(&line, 0);
	put(&line, "a.c\0\0\0\0b.h\0\1\0\0", 14);
	put8(&line, 0);
	length = line.n - header;
	memcpy(line.at + header - 4, &length, 4);
	put(&line, "\0\x9\x2", 3);
	put64(&line, 0x1000);
	put_row(0, 9, 1);
	put8(&line, DW_LNS_set_file);
	put8(&line, 2);
	put_row(0x20, 21, 3);
	put8(&line, DW_LNS_set_file);
	put8(&line, 1);
	put_row(0x10, -19, 2);
	put8(&line, DW_LNS_advance_pc);
	put_uleb(&line, 0x1d0);
	put(&line, "\0\1\1", 3);
	length = line.n - 4;
	memcpy(line.at, &length, 4);
}

static void start(void)
{
	make_abbrevs();
	make_line();
	info.n = ranges.n = 0;
}

/* What the file says now. */
static struct inlines *open_with(const void *bytes, size_t n, u64 flags, bool version_5, struct image **img)
{
	struct inlines *in = NULL;

	elf_start(&file);
	elf_section(&file, ".debug_info", SHT_PROGBITS, flags, bytes, n);
	elf_section(&file, ".debug_abbrev", SHT_PROGBITS, 0, abbrevs.at, abbrevs.n);
	elf_section(&file, ".debug_line", SHT_PROGBITS, 0, line.at, line.n);
	elf_section(&file, version_5 ? ".debug_rnglists" : ".debug_ranges", SHT_PROGBITS, 0, ranges.at, ranges.n);
	elf_finish(&file, true);
	assert_null(image_from_memory(elf_copy(&file), file.n, "made", img));
	assert_null(inlines_open(*img, "", &in));
	return in;
}

static struct inlines *open_made(struct image **img)
{
	struct inlines *in = open_with(info.at, info.n, 0, info.at[4] == 5, img);

	assert_non_null(in);
	return in;
}

/* "inner /src/inc/b.h:31:3|middle …", as one line. */
static const char *told(struct inlines *in, u64 addr)
{
	static char text[4096];
	const struct inline_frame *f;
	size_t at = 0;
	u32 n;

	text[0] = 0;
	assert_null(inlines_find(in, addr, &f, &n));
	for (u32 i = 0; i < n; i++)
		at += snprintf(text + at, sizeof(text) - at, "%s%s %s:%u:%u", i ? "|" : "", f[i].name ? f[i].name : "?",
		        f[i].file ? f[i].file : "?", f[i].line, f[i].column);
	return text;
}

static void check(u64 addr, const char *expected)
{
	struct image *img;
	struct inlines *in = open_made(&img);

	assert_string_equal(told(in, addr), expected);
	assert_string_equal(told(in, addr), expected);
	inlines_close(in);
	image_put(img);
}

static u32 put_nested(u16 version)
{
	u32 unit, inner, middle;

	unit = start_unit(version, 0x1000, 0x200);
	inner = put_abstract("inner", 30);
	middle = put_abstract("middle", 20);
	put_outer("outer", 10, 0x1000, 0x100);
	put_uleb(&info, BLOCK);
	put_inlined(middle - unit, 0x1010, 0x40, 1, 12, 5);
	put_inlined(inner - unit, 0x1020, 0x10, 2, 22, 7);
	put8(&info, 0);
	put8(&info, 0);
	put8(&info, 0);
	put8(&info, 0);
	end_unit(unit);
	return unit;
}

static u32 make_nested(u16 version)
{
	start();
	return put_nested(version);
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
					asked += strlen(told(in, addr)) > 0;
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
		assert_string_equal(told(in, 0x1020), "");
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

/* content compressed as SHF_COMPRESSED says; the result is malloc'd. */
static u8 *compressed(const u8 *content, size_t size, size_t *ret)
{
	uLongf room = compressBound(size);
	u8 *out = malloc(sizeof(Elf64_Chdr) + room);

	assert_non_null(out);
	memcpy(out, &(Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = size, .ch_addralign = 1}, sizeof(Elf64_Chdr));
	assert_int_equal(compress2(out + sizeof(Elf64_Chdr), &room, content, size, 1), Z_OK);
	*ret = sizeof(Elf64_Chdr) + room;
	return out;
}

static void test_compressed(void **state)
{
	struct image *img;
	struct inlines *in;
	size_t n;
	u8 *packed;

	make_nested(4);
	packed = compressed(info.at, info.n, &n);
	in = open_with(packed, n, SHF_COMPRESSED, false, &img);
	assert_non_null(in);
	assert_string_equal(told(in, 0x1030), "middle /src/a.c:12:2|outer /src/a.c:12:5");
	inlines_close(in);
	image_put(img);
	for (size_t at = 0; at < n; at++) {
		packed[at] ^= 0x55;
		in = open_with(packed, n, SHF_COMPRESSED, false, &img);
		if (in)
			told(in, 0x1030);
		inlines_close(in);
		image_put(img);
		packed[at] ^= 0x55;
	}
	free(packed);
}

#define LARGE (70ull << 20) /* more chunks than are kept, and several saved states */

static u32 content_at(u64 offset)
{
	return (u32)((offset / 4) * 2654435761u) & 0xffff;
}

static void check_section(struct dwarf_section *s, u64 offset)
{
	const u8 *p = section_need(s, offset, 4);
	u32 v;

	assert_non_null(p);
	memcpy(&v, p, 4);
	assert_int_equal(v, content_at(offset));
}

/* From start to end, from end to start, and here and there; with a thread that unpacks ahead and without. */
static void check_walks(struct image *img, bool sequential)
{
	struct dwarf_section s;

	section_open(&s, img, ".debug_info");
	assert_int_equal(s.size, LARGE);
	if (sequential)
		section_sequential(&s);
	for (u64 at = 0; at < LARGE; at += 1 << 18)
		check_section(&s, at);
	for (u64 at = LARGE - 4; at > 1 << 19; at -= 1 << 19)
		check_section(&s, at);
	srandom(1);
	for (u32 i = 0; i < 200; i++)
		check_section(&s, (u64)random() % (LARGE / 4) * 4);
	assert_true(s.present <= SECTION_CHUNKS + 1);
	assert_null(section_need(&s, LARGE - 2, 4));
	assert_null(section_need(&s, UINT64_MAX, 1));
	section_close(&s);
}

static void test_large_section(void **state)
{
	u32 *content = malloc(LARGE);
	struct image *img;
	size_t n;
	u8 *packed, *whole;

	assert_non_null(content);
	for (u64 at = 0; at < LARGE; at += 4)
		content[at / 4] = content_at(at);
	packed = compressed((u8 *)content, LARGE, &n);
	elf_start(&file);
	elf_section(&file, ".debug_info", SHT_PROGBITS, SHF_COMPRESSED, "x", 1);
	file.sh[1].sh_size = n;
	file.sh[1].sh_offset = ELF_SIZE_MAX;
	elf_finish(&file, true);
	whole = calloc(1, ELF_SIZE_MAX + n);
	assert_non_null(whole);
	memcpy(whole, file.at, file.n);
	memcpy(whole + ELF_SIZE_MAX, packed, n);
	assert_null(image_from_memory(whole, ELF_SIZE_MAX + n, "large", &img));
	check_walks(img, false);
	check_walks(img, true);
	image_put(img);
	free(packed);
	free(content);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_chain),
	        cmocka_unit_test(test_definition),
	        cmocka_unit_test(test_ranges),
	        cmocka_unit_test(test_ranges_that_lie),
	        cmocka_unit_test(test_second_unit),
	        cmocka_unit_test(test_another_unit),
	        cmocka_unit_test(test_linkage_name_behind_a_name),
	        cmocka_unit_test(test_cycles),
	        cmocka_unit_test(test_too_deep),
	        cmocka_unit_test(test_damage),
	        cmocka_unit_test(test_cut_off),
	        cmocka_unit_test(test_no_debug_information),
	        cmocka_unit_test(test_compressed),
	        cmocka_unit_test(test_large_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
