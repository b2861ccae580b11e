/* SPDX-License-Identifier: Apache-2.0 */
#include "abbrev.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_MAX  (8ull << 20) /* bytes */
#define ALL_MOST   (1ull << 20) /* bytes of all tables that are kept */
#define TABLE_ONCE (1ull << 17) /* what most of them fit in */
#define ABBREV_MAX (1u << 16)
#define ATTRS_MAX  (1u << 20)

/* Tables are read into arrays that serve the next one, too, then copied. */
struct abbrev_maker {
	struct abbrevs a;
	u32 room, attrs_room, steps_room;
};

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

static bool add_step(struct abbrev_maker *m, struct abbrev *decl, u32 name, u32 form)
{
	struct abbrevs *a = &m->a;
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
	s = add((void **)&a->steps, &a->nsteps, &m->steps_room, sizeof(*s));
	if (!s)
		return false;
	*s = step;
	decl->nsteps++;
	return true;
}

static bool parse_attrs(struct abbrev_maker *m, struct dwarf_cursor *c, struct abbrev *decl)
{
	struct abbrevs *a = &m->a;

	while (a->nattrs < ATTRS_MAX) {
		u64 name = cursor_uleb(c), form = cursor_uleb(c);
		struct abbrev_attr *attr;

		if (!name && !form)
			return true;
		if (form_shape(form).op == FORM_UNKNOWN || name > UINT16_MAX)
			return false;
		attr = add((void **)&a->attrs, &a->nattrs, &m->attrs_room, sizeof(*attr));
		if (!attr || !add_step(m, decl, name, form))
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
static void parse(struct abbrev_maker *m, struct dwarf_cursor *c)
{
	struct abbrevs *a = &m->a;

	a->n = a->nattrs = a->nsteps = 0;
	a->dense = true;
	while (c->p < c->end && a->n < ABBREV_MAX) {
		struct abbrev decl = {.code = cursor_uleb(c), .attr = a->nattrs, .step = a->nsteps}, *slot;

		if (!decl.code)
			break;
		decl.tag = cursor_uleb(c);
		decl.children = cursor_fixed(c, 1);
		if (!parse_attrs(m, c, &decl))
			break;
		slot = add((void **)&a->list, &a->n, &m->room, sizeof(*slot));
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

void abbrev_maker_destroy(struct abbrev_maker *m)
{
	if (!m)
		return;
	free(m->a.list);
	free(m->a.attrs);
	free(m->a.steps);
	free(m);
}

/* *whole: it ends within size. */
static bool read_table(
        struct abbrev_maker *m, struct dwarf_section *s, const struct dwarf_unit *unit, u64 size, bool *whole)
{
	const u8 *bytes = section_need(s, unit->abbrevs, size);
	struct dwarf_cursor c = {bytes, bytes ? bytes + size : NULL};

	if (!bytes)
		return false;
	m->a.offset = unit->abbrevs;
	m->a.sizes = dwarf_sizes(unit);
	parse(m, &c);
	*whole = c.p < c.end;
	return true;
}

static u64 size_of(const struct abbrevs *a)
{
	return sizeof(*a) + a->n * sizeof(*a->list) + a->nattrs * sizeof(*a->attrs) + a->nsteps * sizeof(*a->steps);
}

static struct abbrevs *copy(const struct abbrevs *a)
{
	struct abbrevs *made = malloc(size_of(a));

	if (!made)
		return NULL;
	*made = *a;
	made->list = (void *)(made + 1);
	made->attrs = (void *)(made->list + a->n);
	made->steps = (void *)(made->attrs + a->nattrs);
	if (a->n)
		memcpy(made->list, a->list, a->n * sizeof(*a->list));
	if (a->nattrs)
		memcpy(made->attrs, a->attrs, a->nattrs * sizeof(*a->attrs));
	if (a->nsteps)
		memcpy(made->steps, a->steps, a->nsteps * sizeof(*a->steps));
	return made;
}

static struct abbrevs *make(struct dwarf_file *f, const struct dwarf_unit *unit)
{
	struct dwarf_section *s = &f->sections[DWARF_ABBREV];
	u64 left = unit->abbrevs < s->size ? s->size - unit->abbrevs : 0, most = left < TABLE_MAX ? left : TABLE_MAX;
	struct abbrev_maker *m = f->abbrev_maker;
	bool whole = false;

	if (!m)
		f->abbrev_maker = m = calloc(1, sizeof(*m));
	if (!m || !most)
		return NULL;
	for (u64 size = most < TABLE_ONCE ? most : TABLE_ONCE; !whole; size = most) {
		if (!read_table(m, s, unit, size, &whole))
			return NULL;
		whole = whole || size == most;
	}
	dwarf_spend(f, m->a.nattrs);
	return copy(&m->a);
}

static bool fits(const struct abbrevs *a, const struct dwarf_unit *unit)
{
	return a->offset == unit->abbrevs && a->sizes.addr == unit->addr_size && a->sizes.offset == unit->offset_size &&
	       a->sizes.version == unit->version;
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
		free(f->abbrevs[oldest]);
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
