/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information made by hand, section by section: a program of nested inlined functions and its lines. */
#ifndef YRT_INLINES_FAKE_H
#define YRT_INLINES_FAKE_H

#include <dwarf.h>

#include "unit.h"

#include "elf_file.h"
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

static inline void put_abbrev(const struct abbrev *a)
{
	put_uleb(&abbrevs, a->number);
	put_uleb(&abbrevs, a->tag);
	put8(&abbrevs, a->children);
	for (u32 i = 0; a->attrs[i]; i++)
		put_uleb(&abbrevs, a->attrs[i]);
	put16(&abbrevs, 0);
}

static inline void make_abbrevs(void)
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

static inline void put_string(struct bytes *b, const char *s)
{
	put(b, s, strlen(s) + 1);
}

/* The unit's offset; its length is filled in by end_unit(). */
static inline u32 start_unit(u16 version, u64 low, u64 size)
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

static inline void end_unit(u32 at)
{
	u32 length;

	put8(&info, 0);
	length = info.n - at - 4;
	memcpy(info.at + at, &length, 4);
}

static inline u32 put_abstract(const char *name, u8 decl_line)
{
	u32 at = info.n;

	put_uleb(&info, ABSTRACT);
	put_string(&info, name);
	put8(&info, decl_line);
	return at;
}

static inline void put_outer(const char *name, u8 decl_line, u64 low, u32 size)
{
	put_uleb(&info, OUTER);
	put_string(&info, name);
	put8(&info, decl_line);
	put64(&info, low);
	put32(&info, size);
}

static inline void put_inlined(u32 origin, u64 low, u32 size, u8 call_file, u8 call_line, u8 call_column)
{
	put_uleb(&info, INLINED);
	put32(&info, origin);
	put64(&info, low);
	put32(&info, size);
	put8(&info, call_file);
	put8(&info, call_line);
	put8(&info, call_column);
}

static inline void put_row(u64 advance, s64 lines, u8 column)
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
static inline void make_line(void)
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

static inline void start(void)
{
	make_abbrevs();
	make_line();
	info.n = ranges.n = 0;
}

/* What the file says now. */
static inline struct inlines *open_with(const void *bytes, size_t n, u64 flags, bool version_5, struct image **img)
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

static inline struct inlines *open_made(struct image **img)
{
	struct inlines *in = open_with(info.at, info.n, 0, info.at[4] == 5, img);

	assert_non_null(in);
	return in;
}

#define CHAIN_ROOM 4096

static struct error *write_chain(void *ctx, u32 index, const struct inline_frame *f, u32 n)
{
	char *text = (char *)ctx + index * CHAIN_ROOM;
	size_t at = 0;

	text[0] = 0;
	for (u32 i = 0; i < n; i++)
		at += snprintf(text + at, CHAIN_ROOM - at, "%s%s %s:%u:%u", i ? "|" : "", f[i].name ? f[i].name : "?",
		        f[i].file ? f[i].file : "?", f[i].line, f[i].column);
	return NULL;
}

/* The functions at an address, innermost first, as one line: "inner /src/inc/b.h:31:3|middle …". */
static inline const char *chain_alone(struct inlines *in, u64 addr)
{
	static char text[CHAIN_ROOM];
	const struct inline_frame *f;
	u32 n;

	assert_null(inlines_find(in, addr, &f, &n));
	write_chain(text, 0, f, n);
	return text;
}

/* The same, which it must be as well if it is looked up with others, and after a rest. */
static inline const char *chain_at(struct inlines *in, u64 addr)
{
	static char all[2][CHAIN_ROOM];
	const char *text = chain_alone(in, addr);

	for (u32 i = 0; i < 2; i++) {
		assert_null(inlines_find_all(in, (u64[]){addr, 0x1010}, 2, write_chain, all));
		assert_string_equal(all[0], text);
		inlines_rest(in);
	}
	return text;
}

static inline u32 put_nested(u16 version)
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

static inline u32 make_nested(u16 version)
{
	start();
	return put_nested(version);
}

#endif
