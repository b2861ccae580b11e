/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <dwarf.h>
#include <stdlib.h>

#include "grow.h"
#include "search.h"

#define FUNCTIONS_MAX  (1u << 22)
#define FUNCTIONS_KEPT (1u << 15) /* of all units together */

struct index {
	struct dwarf_file *f;
	struct dwarf_unit *unit;
	u64 die;
};

static bool add_function(void *ctx, u64 low, u64 high)
{
	struct index *x = ctx;
	struct dwarf_unit *unit = x->unit;

	if (unit->nfunctions == FUNCTIONS_MAX || grow(&unit->functions, unit->nfunctions, sizeof(*unit->functions)))
		return false;
	unit->functions[unit->nfunctions++] = (struct dwarf_function){low, high, x->die, 0};
	x->f->nfunctions++;
	return true;
}

static int compare(const void *left, const void *right)
{
	const struct dwarf_function *a = left, *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return (a->die > b->die) - (a->die < b->die);
}

static void sort(struct dwarf_unit *unit)
{
	u64 reach = 0;

	if (unit->nfunctions)
		qsort(unit->functions, unit->nfunctions, sizeof(*unit->functions), compare);
	for (u32 i = 0; i < unit->nfunctions; i++) {
		reach = unit->functions[i].high > reach ? unit->functions[i].high : reach;
		unit->functions[i].reach = reach;
	}
}

static bool is_type(u32 tag)
{
	switch (tag) {
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_interface_type:
		return true;
	default:
		return false;
	}
}

/* At the first look: code of other functions is not searched in functions, and with GCC not in types. */
static bool may_skip(const struct dwarf_unit *unit, const struct die_head *head)
{
	if (head->abbrev->tag == DW_TAG_subprogram)
		return head->abbrev->has_code || unit->is_gnu;
	return unit->is_gnu && is_type(head->abbrev->tag);
}

static void read_function(struct index *x, const struct die_walk *w, const struct die_head *head)
{
	struct dwarf_die die;

	x->die = head->offset;
	if (die_read(w, head->offset, &die))
		dwarf_each_range(x->f, x->unit, &die.low, &die.high, &die.ranges, add_function, x);
}

static void forget(struct dwarf_file *f, struct dwarf_unit *unit)
{
	f->nfunctions -= unit->nfunctions;
	free(unit->functions);
	unit->functions = NULL;
	unit->nfunctions = 0;
	unit->indexed = unit->indexed_deep = false;
}

/* Addresses come by unit, as a rule: what other units have is dropped as a whole. */
static void make_room(struct dwarf_file *f)
{
	bool full = f->nfunctions > FUNCTIONS_KEPT;

	for (u32 i = 0; i < f->nunits && full; i++)
		forget(f, f->units[i]);
}

static void make_index(struct dwarf_file *f, struct dwarf_unit *unit, bool deep)
{
	struct index x = {.f = f, .unit = unit};
	bool skipped = false;
	struct die_head head;
	struct die_walk w;

	make_room(f);
	forget(f, unit);
	unit->indexed = true;
	if (!dwarf_unit_root(f, unit) || !die_walk_start(&w, f, unit, unit->dies))
		return;
	while (die_walk_next(&w, &head) && dwarf_spend(f, 1)) {
		if (!head.abbrev)
			continue;
		if (head.abbrev->tag == DW_TAG_subprogram && head.abbrev->has_code)
			read_function(&x, &w, &head);
		if (!deep && may_skip(unit, &head) && head.abbrev->children)
			skipped = die_walk_skip(&w, &head) || skipped;
	}
	unit->indexed_deep = !skipped;
	sort(unit);
}

static bool find(struct dwarf_file *f, const struct dwarf_unit *unit, u64 addr, u64 *ret)
{
	u32 at = SEARCH(unit->nfunctions, k, unit->functions[k].low <= addr);

	while (at-- && unit->functions[at].reach > addr && dwarf_spend(f, 1)) {
		*ret = unit->functions[at].die;
		if (unit->functions[at].high > addr)
			return true;
	}
	return false;
}

static bool find_function(struct dwarf_file *f, struct dwarf_unit *unit, u64 addr, u64 *ret)
{
	if (!unit->indexed)
		make_index(f, unit, false);
	if (find(f, unit, addr, ret))
		return true;
	if (unit->indexed_deep)
		return false;
	make_index(f, unit, true);
	return find(f, unit, addr, ret);
}

struct covering {
	u64 addr, low;
	bool found;
};

static bool covers(void *ctx, u64 low, u64 high)
{
	struct covering *c = ctx;

	if (c->addr >= low && c->addr < high && (!c->found || low >= c->low)) {
		c->found = true;
		c->low = low;
	}
	return true;
}

struct scope {
	u64 die;
	u32 depth;
	bool subprogram;
};

struct search {
	struct dwarf_file *f;
	struct die_walk w;
	u64 addr, low;
	struct scope stack[CHAIN_MAX];
	u32 nstack;
	u64 best[CHAIN_MAX]; /* innermost first */
	u32 nbest;
};

static void keep_best(struct search *s)
{
	s->nbest = 0;
	for (u32 i = s->nstack; i-- > 0;) {
		s->best[s->nbest++] = s->stack[i].die;
		if (s->stack[i].subprogram)
			break;
	}
}

static bool push(struct search *s, const struct die_head *head)
{
	if (s->nstack == CHAIN_MAX)
		return false;
	s->stack[s->nstack++] = (struct scope){head->offset, head->depth, head->abbrev->tag == DW_TAG_subprogram};
	return true;
}

/* What is not inlined here has nothing inlined in it here. */
static void look_at(struct search *s, const struct die_head *head)
{
	struct covering c = {.addr = s->addr};
	struct dwarf_die die;

	if (!push(s, head) || !head->abbrev->has_code || !die_read(&s->w, head->offset, &die))
		return;
	dwarf_each_range(s->f, s->w.unit, &die.low, &die.high, &die.ranges, covers, &c);
	if (c.found && (!s->nbest || c.low >= s->low)) {
		s->low = c.low;
		keep_best(s);
	} else if (!c.found && head->abbrev->tag == DW_TAG_inlined_subroutine) {
		die_walk_skip(&s->w, head);
	}
}

static bool has_no_functions(u32 tag)
{
	return is_type(tag) || tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site;
}

static void search_function(struct search *s)
{
	struct die_head head;

	while (die_walk_next(&s->w, &head) && dwarf_spend(s->f, 1)) {
		while (s->nstack && s->stack[s->nstack - 1].depth >= head.depth)
			s->nstack--;
		if (head.abbrev &&
		        (head.abbrev->tag == DW_TAG_subprogram || head.abbrev->tag == DW_TAG_inlined_subroutine))
			look_at(s, &head);
		else if (head.abbrev && s->w.unit->is_gnu && has_no_functions(head.abbrev->tag))
			die_walk_skip(&s->w, &head);
		if (!s->w.depth)
			return;
	}
}

u32 dwarf_chain(struct dwarf_file *f, struct dwarf_unit *unit, u64 addr, struct dwarf_die chain[CHAIN_MAX])
{
	struct search s = {.f = f, .addr = addr};
	u64 function;
	u32 n = 0;

	if (!find_function(f, unit, addr, &function) || !die_walk_start(&s.w, f, unit, function))
		return 0;
	search_function(&s);
	while (n < s.nbest && die_read(&s.w, s.best[n], &chain[n]))
		n++;
	return n;
}
