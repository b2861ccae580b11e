/* SPDX-License-Identifier: Apache-2.0 */
#include "die.h"

#include <dwarf.h>

bool die_walk_start(struct die_walk *w, struct dwarf_file *f, const struct dwarf_unit *unit, u64 offset)
{
	*w = (struct die_walk){.unit = unit, .abbrevs = abbrevs_of(f, unit), .bytes = dwarf_unit_bytes(f, unit)};
	if (!w->abbrevs || !w->bytes || offset < unit->dies || offset >= unit->end)
		return false;
	w->c = (struct dwarf_cursor){w->bytes + (offset - unit->offset), w->bytes + (unit->end - unit->offset)};
	return true;
}

static inline void run_step(struct die_walk *w, const struct abbrev_step *step, struct die_head *head)
{
	struct dwarf_cursor *c = &w->c;
	u64 sibling, form;

	switch (step->op) {
	case FORM_FIXED:
		cursor_skip(c, step->n);
		break;
	case FORM_LEB:
		cursor_skip_leb(c);
		break;
	case FORM_STRING:
		cursor_skip_string(c);
		break;
	case FORM_BLOCK:
		cursor_skip(c, cursor_fixed(c, step->n));
		break;
	case FORM_EXPR:
		cursor_skip(c, cursor_uleb(c));
		break;
	case STEP_SIBLING:
		sibling = step->n ? cursor_fixed(c, step->n) : cursor_uleb(c);
		if (sibling < w->unit->end - w->unit->offset)
			head->sibling = w->unit->offset + sibling;
		break;
	case FORM_INDIRECT:
		form = cursor_uleb(c);
		form_read(c, form, form_shape(form), dwarf_sizes(w->unit));
		break;
	}
}

bool die_walk_next(struct die_walk *w, struct die_head *ret)
{
	u64 code;

	if (w->c.p >= w->c.end)
		return false;
	*ret = (struct die_head){.offset = w->unit->offset + (w->c.p - w->bytes), .depth = w->depth};
	code = cursor_uleb(&w->c);
	if (!code) {
		w->depth -= w->depth > 0;
		return true;
	}
	ret->abbrev = abbrev_find(w->abbrevs, code);
	if (!ret->abbrev)
		return false;
	for (u32 i = 0; i < ret->abbrev->nsteps; i++)
		run_step(w, &w->abbrevs->steps[ret->abbrev->step + i], ret);
	w->depth += ret->abbrev->children;
	return true;
}

bool die_walk_skip(struct die_walk *w, const struct die_head *head)
{
	u64 here = w->unit->offset + (u64)(w->c.p - w->bytes);

	if (!head->abbrev->children)
		return true;
	if (head->sibling <= here)
		return false;
	w->c.p = w->bytes + (head->sibling - w->unit->offset);
	w->depth = head->depth;
	return true;
}

/* A form that is given beside the value is given once: one more of its kind would be corrupt. */
static struct dwarf_value read_form(
        struct dwarf_cursor *c, const struct dwarf_unit *unit, const u8 *bytes, u64 form, s64 constant)
{
	struct form_shape shape = form_shape(form);
	struct dwarf_value v;

	if (shape.op == FORM_INDIRECT) {
		form = cursor_uleb(c);
		shape = form_shape(form);
	}
	if (shape.op == FORM_INDIRECT || shape.op == FORM_UNKNOWN)
		return (struct dwarf_value){0};
	v.form = form;
	v.value = unit->offset + (c->p - bytes);
	if (form == DW_FORM_string)
		cursor_skip_string(c);
	else if (form == DW_FORM_implicit_const)
		v.value = constant;
	else if (form == DW_FORM_flag_present)
		v.value = 1;
	else
		v.value = form_read(c, form, shape, dwarf_sizes(unit));
	return v;
}

static struct dwarf_value *place_of(struct dwarf_die *die, u32 name)
{
	switch (name) {
	case DW_AT_name:
		return &die->name;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return &die->linkage_name;
	case DW_AT_low_pc:
		return &die->low;
	case DW_AT_high_pc:
		return &die->high;
	case DW_AT_ranges:
		return &die->ranges;
	case DW_AT_abstract_origin:
		return &die->origin;
	case DW_AT_specification:
		return &die->specification;
	case DW_AT_decl_line:
		return &die->decl_line;
	case DW_AT_call_file:
		return &die->call_file;
	case DW_AT_call_line:
		return &die->call_line;
	case DW_AT_call_column:
		return &die->call_column;
	case DW_AT_comp_dir:
		return &die->comp_dir;
	case DW_AT_stmt_list:
		return &die->line;
	case DW_AT_producer:
		return &die->producer;
	case DW_AT_str_offsets_base:
		return &die->str_offsets_base;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return &die->addr_base;
	case DW_AT_rnglists_base:
		return &die->rnglists_base;
	default:
		return NULL;
	}
}

bool die_read(const struct die_walk *w, u64 offset, struct dwarf_die *ret)
{
	const struct abbrev_attr *attr, *end;
	const struct abbrev *abbrev;
	struct dwarf_cursor c = {w->bytes + (offset - w->unit->offset), w->c.end};

	*ret = (struct dwarf_die){.offset = offset};
	abbrev = abbrev_find(w->abbrevs, cursor_uleb(&c));
	if (!abbrev)
		return false;
	ret->tag = abbrev->tag;
	if (!abbrev->nattrs)
		return true;
	attr = w->abbrevs->attrs + abbrev->attr;
	for (end = attr + abbrev->nattrs; attr < end; attr++) {
		struct dwarf_value v = read_form(&c, w->unit, w->bytes, attr->form, attr->constant);
		struct dwarf_value *place = place_of(ret, attr->name);

		if (place)
			*place = v;
	}
	return true;
}

bool die_follow(struct dwarf_file **f, struct dwarf_unit **unit, const struct dwarf_value *ref, u64 *offset)
{
	switch (ref->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*offset = (*unit)->offset + ref->value;
		return ref->value < (*unit)->end - (*unit)->offset && *offset >= (*unit)->dies;
	case DW_FORM_ref_addr:
		break;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*f = (*f)->alternate;
		break;
	default:
		return false;
	}
	*offset = ref->value;
	*unit = *f ? dwarf_unit_of(*f, *offset) : NULL;
	return *unit && *offset >= (*unit)->dies;
}

/* GCC puts no code below types and declarations, and records where they end. */
static bool is_gnu(struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *producer)
{
	u64 len;
	const char *text = dwarf_string(f, unit, producer, &len);

	return text && len >= 4 && !memcmp(text, "GNU ", 4);
}

bool dwarf_unit_root(struct dwarf_file *f, struct dwarf_unit *unit)
{
	struct dwarf_die root;
	struct die_walk w;

	if (unit->root_read)
		return true;
	if (!die_walk_start(&w, f, unit, unit->dies) || !die_read(&w, unit->dies, &root))
		return false;
	unit->root_read = true;
	unit->low = root.low;
	unit->high = root.high;
	unit->ranges = root.ranges;
	unit->comp_dir = root.comp_dir;
	unit->line = root.line;
	unit->str_offsets_base = root.str_offsets_base.value;
	unit->addr_base = root.addr_base.value;
	unit->rnglists_base = root.rnglists_base.value;
	if (!dwarf_address(f, unit, &root.low, &unit->low_pc))
		unit->low_pc = 0;
	unit->is_gnu = is_gnu(f, unit, &root.producer);
	return true;
}
