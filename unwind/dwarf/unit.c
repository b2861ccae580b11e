/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of units, and the list of those that were met. */
#include <dwarf.h>
#include <stdlib.h>

#include "file.h"
#include "grow.h"
#include "search.h"

#define HEADER_MAX 40u
#define DWARF64    0xffffffffu
#define RESERVED   0xfffffff0u
#define UNITS_MAX  (1u << 20)

static bool read_version_5(struct dwarf_unit *unit, struct dwarf_cursor *c)
{
	unit->type = cursor_fixed(c, 1);
	unit->addr_size = cursor_fixed(c, 1);
	unit->abbrevs = cursor_fixed(c, unit->offset_size);
	if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile)
		cursor_skip(c, 8);
	else if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
		cursor_skip(c, 8 + unit->offset_size);
	return unit->type >= DW_UT_compile && unit->type <= DW_UT_split_type;
}

static bool read_header(struct dwarf_unit *unit, struct dwarf_cursor c, u64 left)
{
	const u8 *start = c.p;
	u64 length = cursor_fixed(&c, 4);

	unit->offset_size = length == DWARF64 ? 8 : 4;
	if (length == DWARF64)
		length = cursor_fixed(&c, 8);
	else if (length >= RESERVED)
		return false;
	if (length > left - (u64)(c.p - start))
		return false;
	unit->end = unit->offset + (c.p - start) + length;
	unit->version = cursor_fixed(&c, 2);
	if (unit->version == 5) {
		if (!read_version_5(unit, &c))
			return false;
	} else {
		unit->abbrevs = cursor_fixed(&c, unit->offset_size);
		unit->addr_size = cursor_fixed(&c, 1);
	}
	unit->dies = unit->offset + (c.p - start);
	return unit->version >= 2 && unit->version <= 5 && (unit->addr_size == 4 || unit->addr_size == 8) &&
	       unit->dies < unit->end;
}

/* The number of units that start at or before offset. */
static u32 upper_bound(const struct dwarf_file *f, u64 offset)
{
	u32 at = SEARCH(f->nunits, k, f->units[k]->offset <= offset);

	return at;
}

static bool insert(struct dwarf_file *f, u32 at, struct dwarf_unit *unit)
{
	if (f->nunits == UNITS_MAX || grow(&f->units, f->nunits, sizeof(*f->units)))
		return false;
	memmove(f->units + at + 1, f->units + at, (f->nunits - at) * sizeof(*f->units));
	f->units[at] = unit;
	f->nunits++;
	return true;
}

struct dwarf_unit *dwarf_unit_at(struct dwarf_file *f, u64 offset)
{
	struct dwarf_section *info = &f->sections[DWARF_INFO];
	u64 left = offset < info->size ? info->size - offset : 0, size = left < HEADER_MAX ? left : HEADER_MAX;
	u32 at = upper_bound(f, offset);
	struct dwarf_unit *unit;
	const u8 *bytes;

	if (at && f->units[at - 1]->offset == offset)
		return f->units[at - 1];
	bytes = size ? section_need(info, offset, size) : NULL;
	unit = bytes ? calloc(1, sizeof(*unit)) : NULL;
	if (!unit)
		return NULL;
	unit->offset = offset;
	if (read_header(unit, (struct dwarf_cursor){bytes, bytes + size}, left) && insert(f, at, unit))
		return unit;
	free(unit);
	return NULL;
}

struct dwarf_unit *dwarf_unit_of(struct dwarf_file *f, u64 offset)
{
	u32 at = upper_bound(f, offset);
	struct dwarf_unit *unit = at ? f->units[at - 1] : dwarf_unit_at(f, 0);

	while (unit && unit->end <= offset && dwarf_spend(f, 1))
		unit = dwarf_unit_at(f, unit->end);
	return unit && unit->offset <= offset && offset < unit->end ? unit : NULL;
}

const u8 *dwarf_unit_bytes(struct dwarf_file *f, const struct dwarf_unit *unit)
{
	return section_need(&f->sections[DWARF_INFO], unit->offset, unit->end - unit->offset);
}
