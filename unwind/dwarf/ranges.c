/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of code: low and high, .debug_ranges, .debug_rnglists; and the addresses they are made of. */
#include <dwarf.h>

#include "file.h"

#define LIST_MAX  (1ull << 20) /* bytes of one list */
#define WINDOW    (1ull << 12) /* what is looked at at once */
#define ENTRY_MAX 32u          /* bytes */

struct range_list {
	struct dwarf_file *f;
	const struct dwarf_unit *unit;
	u64 base;
	struct dwarf_section *s;
	u64 at, left; /* what lies behind the window */
	bool (*add)(void *ctx, u64 low, u64 high);
	void *ctx;
};

/* Keeps an entry within the window c. False: the list ends, or it cannot be read. */
static bool look(struct range_list *l, struct dwarf_cursor *c)
{
	u64 seen = cursor_left(c), size = seen + l->left < WINDOW ? seen + l->left : WINDOW;

	if (seen < ENTRY_MAX && l->left) {
		c->p = section_need(l->s, l->at - seen, size);
		c->end = c->p ? c->p + size : NULL;
		l->at += size - seen;
		l->left = c->p ? l->left - (size - seen) : 0;
	}
	return c->p < c->end;
}

static bool address_at(struct dwarf_file *f, const struct dwarf_unit *unit, u64 index, u64 *ret)
{
	const u8 *p;

	if (index > UINT32_MAX)
		return false;
	p = section_need(&f->sections[DWARF_ADDR], unit->addr_base + index * unit->addr_size, unit->addr_size);
	*ret = 0;
	if (p)
		memcpy(ret, p, unit->addr_size);
	return p;
}

bool dwarf_address(struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u64 *ret)
{
	switch (v->form) {
	case DW_FORM_addr:
		*ret = v->value;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return address_at(f, unit, v->value, ret);
	default:
		return false;
	}
}

static bool add_one(const struct range_list *l, u64 low, u64 high)
{
	return low >= high || l->add(l->ctx, low, high);
}

/* Version 2 to 4: pairs of addresses; all ones before a new base; zeroes at the end. */
static bool read_pairs(struct range_list *l)
{
	struct dwarf_cursor c = {0};
	u32 size = l->unit->addr_size;
	u64 ones = size == 8 ? UINT64_MAX : UINT32_MAX;

	while (look(l, &c) && cursor_left(&c) >= 2 * size && dwarf_spend(l->f, 1)) {
		u64 low = cursor_fixed(&c, size), high = cursor_fixed(&c, size);

		if (!low && !high)
			return true;
		if (low == ones)
			l->base = high;
		else if (!add_one(l, l->base + low, l->base + high))
			return true;
	}
	return false;
}

/* One entry of version 5. False: the end, or nothing more is wanted; *bad says which. */
static bool read_entry(struct range_list *l, struct dwarf_cursor *c, bool *bad)
{
	u64 low = 0, high = 0;
	u8 kind = cursor_fixed(c, 1);

	switch (kind) {
	case DW_RLE_end_of_list:
		return false;
	case DW_RLE_base_addressx:
		*bad = !address_at(l->f, l->unit, cursor_uleb(c), &l->base);
		return !*bad;
	case DW_RLE_startx_endx:
		*bad = !address_at(l->f, l->unit, cursor_uleb(c), &low) ||
		       !address_at(l->f, l->unit, cursor_uleb(c), &high);
		return !*bad && add_one(l, low, high);
	case DW_RLE_startx_length:
		*bad = !address_at(l->f, l->unit, cursor_uleb(c), &low);
		high = low + cursor_uleb(c);
		return !*bad && add_one(l, low, high);
	case DW_RLE_offset_pair:
		low = l->base + cursor_uleb(c);
		high = l->base + cursor_uleb(c);
		return add_one(l, low, high);
	case DW_RLE_base_address:
		l->base = cursor_fixed(c, l->unit->addr_size);
		return true;
	case DW_RLE_start_end:
		low = cursor_fixed(c, l->unit->addr_size);
		high = cursor_fixed(c, l->unit->addr_size);
		return add_one(l, low, high);
	case DW_RLE_start_length:
		low = cursor_fixed(c, l->unit->addr_size);
		high = low + cursor_uleb(c);
		return add_one(l, low, high);
	default:
		*bad = true;
		return false;
	}
}

static bool read_entries(struct range_list *l)
{
	struct dwarf_cursor c = {0};
	bool bad = false;

	while (look(l, &c) && dwarf_spend(l->f, 1))
		if (!read_entry(l, &c, &bad))
			return !bad;
	return false;
}

/* The offset of a list: given directly, or by an index into a table of offsets behind the base. */
static bool list_offset(struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u64 *ret)
{
	u64 offset = 0;
	const u8 *p;

	*ret = v->value;
	if (v->form != DW_FORM_rnglistx)
		return true;
	if (v->value > UINT32_MAX)
		return false;
	p = section_need(
	        &f->sections[DWARF_RNGLISTS], unit->rnglists_base + v->value * unit->offset_size, unit->offset_size);
	if (p)
		memcpy(&offset, p, unit->offset_size);
	*ret = unit->rnglists_base + offset;
	return p;
}

static bool each_of_list(struct range_list *l, const struct dwarf_value *ranges)
{
	struct dwarf_section *s = &l->f->sections[l->unit->version >= 5 ? DWARF_RNGLISTS : DWARF_RANGES];

	if (!list_offset(l->f, l->unit, ranges, &l->at) || l->at >= s->size)
		return false;
	l->s = s;
	l->left = s->size - l->at < LIST_MAX ? s->size - l->at : LIST_MAX;
	return l->unit->version >= 5 ? read_entries(l) : read_pairs(l);
}

bool dwarf_each_range(struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *low,
        const struct dwarf_value *high, const struct dwarf_value *ranges, bool (*add)(void *ctx, u64 low, u64 high),
        void *ctx)
{
	struct range_list l = {.f = f, .unit = unit, .base = unit->low_pc, .add = add, .ctx = ctx};
	u64 start, end;

	if (dwarf_address(f, unit, low, &start) && high->form) {
		if (!dwarf_address(f, unit, high, &end))
			end = start + high->value;
		add_one(&l, start, end);
		return true;
	}
	return ranges->form && each_of_list(&l, ranges);
}
