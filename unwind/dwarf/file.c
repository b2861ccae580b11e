/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include <dwarf.h>
#include <stdlib.h>

#include "abbrev.h"
#include "line.h"

static const char *const names[DWARF_SECTIONS] = {
        [DWARF_INFO] = ".debug_info",
        [DWARF_ABBREV] = ".debug_abbrev",
        [DWARF_LINE] = ".debug_line",
        [DWARF_STR] = ".debug_str",
        [DWARF_LINE_STR] = ".debug_line_str",
        [DWARF_RANGES] = ".debug_ranges",
        [DWARF_RNGLISTS] = ".debug_rnglists",
        [DWARF_ADDR] = ".debug_addr",
        [DWARF_STR_OFFSETS] = ".debug_str_offsets",
        [DWARF_ARANGES] = ".debug_aranges",
};

struct error *dwarf_open(struct image *img, struct dwarf_file **ret)
{
	struct dwarf_file *f = calloc(1, sizeof(*f));

	*ret = NULL;
	if (!f)
		return &error_no_memory;
	f->img = image_get(img);
	f->budget = DWARF_BUDGET_MOST;
	f->reserve = DWARF_RESERVE;
	section_open(&f->sections[DWARF_INFO], img, names[DWARF_INFO]);
	if (!f->sections[DWARF_INFO].size) {
		dwarf_close(f);
		return NULL;
	}
	for (u32 i = DWARF_INFO + 1; i < DWARF_SECTIONS; i++)
		section_open(&f->sections[i], img, names[i]);
	*ret = f;
	return NULL;
}

/* All that was made of what the sections say. */
static void forget(struct dwarf_file *f)
{
	for (u32 i = 0; i < DWARF_ABBREVS_KEPT; i++)
		free(f->abbrevs[i]);
	abbrev_maker_destroy(f->abbrev_maker);
	for (u32 i = 0; i < DWARF_LINES_KEPT; i++)
		line_table_destroy(f->lines[i]);
	for (u32 i = 0; i < f->nunits; i++) {
		free(f->units[i]->functions);
		free(f->units[i]);
	}
	free(f->spare_rows);
	free(f->units);
	free(f->ranges);
	memset(f->abbrevs, 0, sizeof(f->abbrevs));
	memset(f->lines, 0, sizeof(f->lines));
	f->last_abbrevs = NULL;
	f->abbrev_maker = NULL;
	f->spare_rows = NULL;
	f->units = NULL;
	f->ranges = NULL;
	f->spare_room = f->nunits = f->nfunctions = f->nranges = 0;
	f->ranges_read = f->ranges_all = false;
}

void dwarf_rest(struct dwarf_file *f)
{
	for (; f; f = f->alternate) {
		forget(f);
		for (u32 i = 0; i < DWARF_SECTIONS; i++)
			section_rest(&f->sections[i]);
	}
}

void dwarf_close(struct dwarf_file *f)
{
	if (!f)
		return;
	dwarf_close(f->alternate);
	forget(f);
	for (u32 i = 0; i < DWARF_SECTIONS; i++)
		section_close(&f->sections[i]);
	image_put(f->img);
	free(f);
}

/* Where the string of an index is: the table of offsets of the unit. */
static bool string_offset(struct dwarf_file *f, const struct dwarf_unit *unit, u64 index, u64 *ret)
{
	const u8 *p;

	if (index > UINT32_MAX)
		return false;
	p = section_need(
	        &f->sections[DWARF_STR_OFFSETS], unit->str_offsets_base + index * unit->offset_size, unit->offset_size);
	*ret = 0;
	if (p)
		memcpy(ret, p, unit->offset_size);
	return p;
}

struct dwarf_section *dwarf_string_at(
        struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u64 *ret_offset)
{
	*ret_offset = v->value;
	switch (v->form) {
	case DW_FORM_string:
		return &f->sections[DWARF_INFO];
	case DWARF_FORM_LINE:
		return &f->sections[DWARF_LINE];
	case DW_FORM_line_strp:
		return &f->sections[DWARF_LINE_STR];
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		return f->alternate ? &f->alternate->sections[DWARF_STR] : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return string_offset(f, unit, v->value, ret_offset) ? &f->sections[DWARF_STR] : NULL;
	case DW_FORM_strp:
		return &f->sections[DWARF_STR];
	default:
		return NULL;
	}
}

const char *dwarf_string(struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u64 *ret_len)
{
	u64 offset;
	struct dwarf_section *s = dwarf_string_at(f, unit, v, &offset);

	return s ? section_string(s, offset, DWARF_STRING_MAX, ret_len) : NULL;
}
