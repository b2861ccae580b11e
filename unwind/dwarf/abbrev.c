/* SPDX-License-Identifier: Apache-2.0 */
#include "abbrev.h"

#include <stdlib.h>

#define TABLE_MAX  (8ull << 20) /* bytes */
#define ABBREV_MAX (1u << 16)
#define ATTRS_MAX  (1u << 20)

/* One more in a growing array. */
static void *add(void **array, u32 *n, u32 *room, size_t size)
{
	u32 more = *room ? *room * 2 : 64;
	void *grown;

	if (*n == *room) {
		grown = realloc(*array, more * size);
		if (!grown)
			return NULL;
		*array = grown;
		*room = more;
	}
	return (u8 *)*array + (*n)++ * size;
}

static bool is_sibling(u32 name, u32 form)
{
	return name == DW_AT_sibling && form >= DW_FORM_ref1 && form <= DW_FORM_ref_udata;
}

static bool add_step(struct abbrevs *a, struct abbrev *decl, u32 name, u32 form)
{
	struct form_shape shape = form_shape(form);
	struct abbrev_step step = {shape.op, form_bytes(shape, a->sizes)}, *s;
	struct abbrev_step *last = decl->nsteps ? &a->steps[a->nsteps - 1] : NULL;

	if (is_sibling(name, form)) {
		step.op = STEP_SIBLING;
		decl->has_sibling = true;
	}
	if (step.op == FORM_FIXED && !step.n)
		return true;
	if (last && last->op == FORM_FIXED && step.op == FORM_FIXED) {
		last->n += step.n;
		return true;
	}
	s = add((void **)&a->steps, &a->nsteps, &a->steps_room, sizeof(*s));
	if (!s)
		return false;
	*s = step;
	decl->nsteps++;
	return true;
}

static bool parse_attrs(struct abbrevs *a, struct dwarf_cursor *c, struct abbrev *decl)
{
	while (a->nattrs < ATTRS_MAX) {
		u64 name = cursor_uleb(c), form = cursor_uleb(c);
		struct abbrev_attr *attr;

		if (!name && !form)
			return true;
		if (form_shape(form).op == FORM_UNKNOWN || name > UINT16_MAX)
			return false;
		attr = add((void **)&a->attrs, &a->nattrs, &a->attrs_room, sizeof(*attr));
		if (!attr || !add_step(a, decl, name, form))
			return false;
		*attr = (struct abbrev_attr){name, form, form == DW_FORM_implicit_const ? cursor_sleb(c) : 0};
		decl->nattrs++;
		decl->has_code = decl->has_code || name == DW_AT_low_pc || name == DW_AT_ranges;
	}
	return false;
}

static int compare(const void *left, const void *right)
{
	const struct abbrev *a = left, *b = right;

	return (a->code > b->code) - (a->code < b->code);
}

/* What comes before the first that makes no sense. */
static void parse(struct abbrevs *a, struct dwarf_cursor *c)
{
	a->dense = true;
	while (c->p < c->end && a->n < ABBREV_MAX) {
		struct abbrev decl = {.code = cursor_uleb(c), .attr = a->nattrs, .step = a->nsteps}, *slot;

		if (!decl.code)
			break;
		decl.tag = cursor_uleb(c);
		decl.children = cursor_fixed(c, 1);
		if (!parse_attrs(a, c, &decl))
			break;
		slot = add((void **)&a->list, &a->n, &a->room, sizeof(*slot));
		if (!slot)
			break;
		*slot = decl;
		a->dense = a->dense && decl.code == a->n;
	}
	if (!a->dense)
		qsort(a->list, a->n, sizeof(*a->list), compare);
}

const struct abbrev *abbrev_search(const struct abbrevs *a, u64 code)
{
	struct abbrev key = {.code = code};

	return a->n ? bsearch(&key, a->list, a->n, sizeof(*a->list), compare) : NULL;
}

void abbrevs_destroy(struct abbrevs *a)
{
	if (!a)
		return;
	free(a->list);
	free(a->attrs);
	free(a->steps);
	free(a);
}

static struct abbrevs *make(struct dwarf_file *f, const struct dwarf_unit *unit)
{
	struct dwarf_section *s = &f->sections[DWARF_ABBREV];
	u64 left = unit->abbrevs < s->size ? s->size - unit->abbrevs : 0, size = left < TABLE_MAX ? left : TABLE_MAX;
	const u8 *bytes = size ? section_need(s, unit->abbrevs, size) : NULL;
	struct abbrevs *a = bytes ? calloc(1, sizeof(*a)) : NULL;
	struct dwarf_cursor c = {bytes, bytes ? bytes + size : NULL};

	if (!a)
		return NULL;
	a->offset = unit->abbrevs;
	a->sizes = dwarf_sizes(unit);
	parse(a, &c);
	dwarf_spend(f, a->nattrs);
	return a;
}

static bool fits(const struct abbrevs *a, const struct dwarf_unit *unit)
{
	return a->offset == unit->abbrevs && a->sizes.addr == unit->addr_size && a->sizes.offset == unit->offset_size &&
	       a->sizes.version == unit->version;
}

const struct abbrevs *abbrevs_of(struct dwarf_file *f, const struct dwarf_unit *unit)
{
	u32 oldest = 0;

	if (f->last_abbrevs && fits(f->last_abbrevs, unit))
		return f->last_abbrevs;
	for (u32 i = 0; i < DWARF_ABBREVS_KEPT; i++) {
		struct abbrevs *a = f->abbrevs[i];

		if (a && fits(a, unit)) {
			a->used = ++f->clock;
			return f->last_abbrevs = a;
		}
		if (f->abbrevs[oldest] && (!a || a->used < f->abbrevs[oldest]->used))
			oldest = i;
	}
	abbrevs_destroy(f->abbrevs[oldest]);
	f->abbrevs[oldest] = make(f, unit);
	if (f->abbrevs[oldest])
		f->abbrevs[oldest]->used = ++f->clock;
	return f->last_abbrevs = f->abbrevs[oldest];
}
