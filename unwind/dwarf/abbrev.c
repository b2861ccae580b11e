/* SPDX-License-Identifier: Apache-2.0 */
#include "abbrev.h"

#include <stdlib.h>

#define TABLE_MAX  (8ull << 20) /* bytes */
#define ALL_MOST   (1ull << 20) /* bytes of all tables that are kept */
#define TABLE_ONCE (1ull << 17) /* what most of them fit in */
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

static void shrink(void *array, u32 n, u32 *room, size_t size)
{
	void *smaller = n ? realloc(*(void **)array, n * size) : NULL;

	if (smaller) {
		*(void **)array = smaller;
		*room = n;
	}
}

/* *whole: it ends within size. */
static struct abbrevs *read_table(struct dwarf_section *s, const struct dwarf_unit *unit, u64 size, bool *whole)
{
	const u8 *bytes = section_need(s, unit->abbrevs, size);
	struct abbrevs *a = bytes ? calloc(1, sizeof(*a)) : NULL;
	struct dwarf_cursor c = {bytes, bytes ? bytes + size : NULL};

	if (!a)
		return NULL;
	a->offset = unit->abbrevs;
	a->sizes = dwarf_sizes(unit);
	parse(a, &c);
	*whole = c.p < c.end;
	return a;
}

static struct abbrevs *make(struct dwarf_file *f, const struct dwarf_unit *unit)
{
	struct dwarf_section *s = &f->sections[DWARF_ABBREV];
	u64 left = unit->abbrevs < s->size ? s->size - unit->abbrevs : 0, most = left < TABLE_MAX ? left : TABLE_MAX;
	struct abbrevs *a = NULL;
	bool whole = false;

	for (u64 size = most < TABLE_ONCE ? most : TABLE_ONCE; size && !whole; size = most) {
		abbrevs_destroy(a);
		a = read_table(s, unit, size, &whole);
		if (!a)
			return NULL;
		whole = whole || size == most;
	}
	if (!a)
		return NULL;
	shrink(&a->list, a->n, &a->room, sizeof(*a->list));
	shrink(&a->attrs, a->nattrs, &a->attrs_room, sizeof(*a->attrs));
	shrink(&a->steps, a->nsteps, &a->steps_room, sizeof(*a->steps));
	dwarf_spend(f, a->nattrs);
	return a;
}

static bool fits(const struct abbrevs *a, const struct dwarf_unit *unit)
{
	return a->offset == unit->abbrevs && a->sizes.addr == unit->addr_size && a->sizes.offset == unit->offset_size &&
	       a->sizes.version == unit->version;
}

static u64 size_of(const struct abbrevs *a)
{
	return sizeof(*a) + a->room * sizeof(*a->list) + a->attrs_room * sizeof(*a->attrs) +
	       a->steps_room * sizeof(*a->steps);
}

/* A free place, with memory for a table. */
static u32 make_room(struct dwarf_file *f)
{
	for (;;) {
		u32 free_at = DWARF_ABBREVS_KEPT, oldest = DWARF_ABBREVS_KEPT;
		u64 size = 0;

		for (u32 i = 0; i < DWARF_ABBREVS_KEPT; i++) {
			if (!f->abbrevs[i]) {
				free_at = i;
				continue;
			}
			size += size_of(f->abbrevs[i]);
			if (oldest == DWARF_ABBREVS_KEPT || f->abbrevs[i]->used < f->abbrevs[oldest]->used)
				oldest = i;
		}
		if (free_at < DWARF_ABBREVS_KEPT && (size < ALL_MOST || oldest == DWARF_ABBREVS_KEPT))
			return free_at;
		abbrevs_destroy(f->abbrevs[oldest]);
		f->abbrevs[oldest] = NULL;
	}
}

const struct abbrevs *abbrevs_of(struct dwarf_file *f, const struct dwarf_unit *unit)
{
	u32 at;

	if (f->last_abbrevs && fits(f->last_abbrevs, unit))
		return f->last_abbrevs;
	for (u32 i = 0; i < DWARF_ABBREVS_KEPT; i++) {
		struct abbrevs *a = f->abbrevs[i];

		if (a && fits(a, unit)) {
			a->used = ++f->clock;
			return f->last_abbrevs = a;
		}
	}
	at = make_room(f);
	f->abbrevs[at] = make(f, unit);
	if (f->abbrevs[at])
		f->abbrevs[at]->used = ++f->clock;
	return f->last_abbrevs = f->abbrevs[at];
}
