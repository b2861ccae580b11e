/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug information of one ELF file (DWARF 2 to 5): sections, units, and what is cached of them. Read on demand and
 * within bounds; every offset in it is untrusted. Facts: DWARF 4 and 5, sections 7.5 (units, abbreviations, forms),
 * 2.17 (ranges), 6.1.2 (.debug_aranges); GNU extensions as in elfutils 0.188's dwarf.h.
 *
 * Offsets are into sections; addresses are the file's own.
 */
#ifndef YRT_DWARF_FILE_H
#define YRT_DWARF_FILE_H

#include <types.h>

#include "cursor.h"
#include "form.h"
#include "section.h"
#include "error.h"
#include "binary/image.h"

enum dwarf_section_id {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_LINE,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ADDR,
	DWARF_STR_OFFSETS,
	DWARF_ARANGES,
	DWARF_SECTIONS
};

#define DWARF_STRING_MAX (64u << 10)
#define DWARF_FORM_LINE  0xffffu /* a string at an offset of .debug_line, where DW_FORM_string means .debug_info */

/* A value of an attribute. form is DW_FORM_*, 0: the attribute is absent. Inline strings are given by their offset. */
struct dwarf_value {
	u32 form;
	u64 value;
};

struct dwarf_function { /* a range of a subprogram's code */
	u64 low, high;
	u64 die;
	u64 reach; /* the highest high up to here */
};

struct dwarf_unit {
	u64 offset, end, dies; /* in .debug_info; dies: of the root */
	u64 abbrevs;
	u16 version;
	u8 type;        /* DW_UT_*, 0 below version 5 */
	u8 addr_size;   /* 4 or 8 */
	u8 offset_size; /* 4 or 8 */
	bool root_read, is_gnu;
	u64 low_pc, str_offsets_base, addr_base, rnglists_base;
	struct dwarf_value low, high, ranges, comp_dir, line;
	struct dwarf_function *functions; /* sorted by low, then as in the file */
	u32 nfunctions;
	bool indexed, indexed_deep;
};

struct dwarf_range { /* of a unit */
	u64 low, high;
	u64 unit;
	u64 reach; /* the highest high up to here */
};

struct abbrevs; /* abbrev.h */
struct abbrev_maker;
struct line_table; /* line.h */
struct line_row;

#define DWARF_ABBREVS_KEPT 64u
#define DWARF_LINES_KEPT   16u

struct dwarf_file {
	struct image *img;
	struct dwarf_section sections[DWARF_SECTIONS];
	struct dwarf_file *alternate; /* of dwz; NULL: none */
	struct dwarf_unit **units;    /* sorted by offset; those that were met */
	u32 nunits;
	u32 nfunctions;             /* of all units together */
	struct dwarf_range *ranges; /* sorted by low; see aranges.c */
	u32 nranges;
	bool ranges_read, ranges_all;
	bool aranges_whole; /* .debug_aranges names all units with code: all were read, or somebody knows it */
	struct abbrevs *abbrevs[DWARF_ABBREVS_KEPT], *last_abbrevs;
	struct abbrev_maker *abbrev_maker;
	struct line_table *lines[DWARF_LINES_KEPT];
	struct line_row *spare_rows; /* of a table that was dropped, for the next one */
	u32 spare_room;
	u64 clock;   /* of what was used last */
	u64 budget;  /* steps left for this query: what bounds loops that lie */
	u64 reserve; /* for all queries, besides what each gets anyway */
};

/* Steps are entries, ranges, units. A large unit has some 10^6, all of libjvm 2 * 10^7; a second is some 10^8. */
#define DWARF_BUDGET_EACH (1ull << 16)
#define DWARF_BUDGET_MOST (1ull << 26)
#define DWARF_RESERVE     (1ull << 32)

/* img: referenced. *ret is NULL if there is no .debug_info in it. */
struct error *dwarf_open(struct image *img, struct dwarf_file **ret);
void dwarf_close(struct dwarf_file *f);
/* Gives back all memory for what was read; it can be read again. Units that it gave are gone. */
void dwarf_rest(struct dwarf_file *f);

/* unit.c. The unit that starts at offset, or that covers it; NULL: none, or of a form that is not supported. */
struct dwarf_unit *dwarf_unit_at(struct dwarf_file *f, u64 offset);
struct dwarf_unit *dwarf_unit_of(struct dwarf_file *f, u64 offset);
/* All of a unit's bytes; NULL: they cannot be read. */
const u8 *dwarf_unit_bytes(struct dwarf_file *f, const struct dwarf_unit *unit);

/* aranges.c. The unit whose code addr is; NULL: none. */
struct dwarf_unit *dwarf_unit_by_address(struct dwarf_file *f, u64 addr);
/* Its offset by the file's own table alone, without a look at any unit; UINT64_MAX: not there. */
u64 dwarf_unit_guess(struct dwarf_file *f, u64 addr);

/* ranges.c. Calls back for each range, until it says false. False: there is no list or it is corrupt. */
bool dwarf_each_range(struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *low,
        const struct dwarf_value *high, const struct dwarf_value *ranges, bool (*add)(void *ctx, u64 low, u64 high),
        void *ctx);
/* An address, direct or by index. */
bool dwarf_address(struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u64 *ret);

/* Where a string value is: its section; NULL: absent. */
struct dwarf_section *dwarf_string_at(
        struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u64 *ret_offset);
/* The bytes of a string value (valid until the next read) and their number; NULL: absent. */
const char *dwarf_string(
        struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u64 *ret_len);

static inline struct form_sizes dwarf_sizes(const struct dwarf_unit *unit)
{
	return (struct form_sizes){unit->addr_size, unit->offset_size, unit->version};
}

/* Before each query. */
static inline void dwarf_refill(struct dwarf_file *f)
{
	for (; f; f = f->alternate) {
		u64 want = DWARF_BUDGET_MOST - f->budget, got = want < f->reserve ? want : f->reserve;

		f->reserve -= got;
		f->budget += got;
		if (f->budget < DWARF_BUDGET_EACH)
			f->budget = DWARF_BUDGET_EACH;
	}
}

/* False: the budget is used up. */
static inline bool dwarf_spend(struct dwarf_file *f, u64 steps)
{
	f->budget = f->budget > steps ? f->budget - steps : 0;
	return f->budget;
}

#endif
