/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address to its unit. First by .debug_aranges, which need not name all units. Only for an address that is not
 * there are all units read, once, and their own ranges are added to the table. Nearly each stack has such an address:
 * _start() has no debug information. So it is worth to remember that a file's table names all of them.
 */
#include <stdlib.h>

#include "die.h"
#include "file.h"
#include "grow.h"
#include "search.h"

#define RANGES_MAX (1u << 24)
#define DWARF64    0xffffffffu

static bool add(struct dwarf_file *f, u64 low, u64 high, u64 unit)
{
	if (low >= high || f->nranges == RANGES_MAX)
		return low >= high;
	if (grow(&f->ranges, f->nranges, sizeof(*f->ranges)))
		return false;
	f->ranges[f->nranges++] = (struct dwarf_range){low, high, unit, 0};
	return true;
}

static int compare(const void *left, const void *right)
{
	const struct dwarf_range *a = left, *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return (a->unit > b->unit) - (a->unit < b->unit);
}

static void sort(struct dwarf_file *f)
{
	u64 reach = 0;

	if (f->nranges)
		qsort(f->ranges, f->nranges, sizeof(*f->ranges), compare);
	for (u32 i = 0; i < f->nranges; i++) {
		reach = f->ranges[i].high > reach ? f->ranges[i].high : reach;
		f->ranges[i].reach = reach;
	}
}

/* One set: of one unit. False: it cannot be read. */
static bool read_set(struct dwarf_file *f, struct dwarf_cursor *c)
{
	const u8 *start = c->p;
	u32 offset_size = 4, addr_size, pad;
	u64 length = cursor_fixed(c, 4), unit;
	struct dwarf_cursor set;

	if (length == DWARF64) {
		offset_size = 8;
		length = cursor_fixed(c, 8);
	}
	if (length > cursor_left(c))
		return false;
	set = (struct dwarf_cursor){c->p, c->p + length};
	c->p += length;
	cursor_skip(&set, 2);
	unit = cursor_fixed(&set, offset_size);
	addr_size = cursor_fixed(&set, 1);
	if (cursor_fixed(&set, 1) || (addr_size != 4 && addr_size != 8))
		return true;
	pad = (set.p - start) % (2 * addr_size);
	cursor_skip(&set, pad ? 2 * addr_size - pad : 0);
	while (cursor_left(&set) >= 2 * addr_size) {
		u64 low = cursor_fixed(&set, addr_size), size = cursor_fixed(&set, addr_size);

		if (!add(f, low, low + size, unit))
			return false;
	}
	return true;
}

static void read_aranges(struct dwarf_file *f)
{
	struct dwarf_section *s = &f->sections[DWARF_ARANGES];
	const u8 *bytes = s->size ? section_need(s, 0, s->size) : NULL;
	struct dwarf_cursor c = {bytes, bytes ? bytes + s->size : NULL};

	f->ranges_read = true;
	while (c.p < c.end && read_set(f, &c))
		;
	sort(f);
}

struct adding {
	struct dwarf_file *f;
	u64 unit;
	bool any;
};

static bool add_range(void *ctx, u64 low, u64 high)
{
	struct adding *a = ctx;

	a->any = true;
	return add(a->f, low, high, a->unit);
}

static int compare_units(const void *left, const void *right)
{
	const u64 *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Which units the table has already, sorted. */
static u64 *known_units(const struct dwarf_file *f)
{
	u64 *units = malloc((f->nranges + 1) * sizeof(*units));

	for (u32 i = 0; units && i < f->nranges; i++)
		units[i] = f->ranges[i].unit;
	if (units && f->nranges)
		qsort(units, f->nranges, sizeof(*units), compare_units);
	return units;
}

static void read_units(struct dwarf_file *f)
{
	u64 *known = known_units(f);
	u32 nknown = f->nranges;
	struct adding a = {.f = f};
	struct dwarf_unit *unit;
	bool read = true;
	u64 end = 0;

	f->ranges_all = true;
	for (unit = known ? dwarf_unit_at(f, 0) : NULL; unit && dwarf_spend(f, 1); unit = dwarf_unit_at(f, end)) {
		end = unit->end;
		a.unit = unit->offset;
		if (nknown && bsearch(&unit->offset, known, nknown, sizeof(*known), compare_units))
			continue;
		if (dwarf_unit_root(f, unit))
			dwarf_each_range(f, unit, &unit->low, &unit->high, &unit->ranges, add_range, &a);
		else
			read = false;
	}
	f->aranges_whole = read && !a.any && f->budget && end == f->sections[DWARF_INFO].size;
	free(known);
	sort(f);
}

/* Of several that cover addr, the first in the file. */
static bool find(struct dwarf_file *f, u64 addr, u64 *ret)
{
	u32 at = SEARCH(f->nranges, k, f->ranges[k].low <= addr);
	bool found = false;

	while (at-- && f->ranges[at].reach > addr && dwarf_spend(f, 1)) {
		if (f->ranges[at].high <= addr || (found && f->ranges[at].unit > *ret))
			continue;
		*ret = f->ranges[at].unit;
		found = true;
	}
	return found;
}

u64 dwarf_unit_guess(struct dwarf_file *f, u64 addr)
{
	u64 offset;

	if (!f->ranges_read)
		read_aranges(f);
	return find(f, addr, &offset) ? offset : UINT64_MAX;
}

struct dwarf_unit *dwarf_unit_by_address(struct dwarf_file *f, u64 addr)
{
	u64 offset = dwarf_unit_guess(f, addr);

	if (offset != UINT64_MAX)
		return dwarf_unit_at(f, offset);
	if (f->aranges_whole)
		return NULL;
	if (!f->ranges_all)
		read_units(f);
	return find(f, addr, &offset) ? dwarf_unit_at(f, offset) : NULL;
}
