/* SPDX-License-Identifier: Apache-2.0 */
#include "types.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "hash_text.h"
#include "table.h"
#include "types_read.h"

#define NAME_MOST     4096u
#define NESTED_MOST   16u /* namespaces and classes in each other */
#define VISITS_A_BYTE 16u

/* --- the index --- */

static bool visit(struct types *t)
{
	return t->visits && t->visits--;
}

static u64 key_of(enum type_space space, const char *name)
{
	u64 key = hash_add_text(space + 1, name);

	return key ? key : 1;
}

static u64 bytes_of(Dwarf_Die *die)
{
	int size = dwarf_bytesize(die);

	return size < 0 ? 0 : (u64)size;
}

/* A definition after a declaration replaces it; another definition is noted where it differs. */
static void meet_again(struct types_entry *e, const struct types_entry *other)
{
	if (!e->defined && other->defined) {
		const char *name = e->name;

		*e = *other;
		e->name = name;
	} else if (e->defined && other->defined) {
		e->several |= e->space == TYPES_VARIABLE || e->space == TYPES_FUNCTION || e->size != other->size;
	}
}

static bool add_entry(struct types *t, struct types_entry e)
{
	u64 key = key_of(e.space, e.name), *at = table_get(&t->names, key);

	if (at) {
		if (!strcmp(t->entries[*at].name, e.name))
			meet_again(&t->entries[*at], &e);
		return true;
	}
	e.name = types_keep(t, e.name);
	if (!e.name || grow(&t->entries, t->nentries, sizeof(*t->entries)) || table_put(&t->names, key, t->nentries))
		return false;
	t->entries[t->nentries++] = e;
	return true;
}

static bool flag(Dwarf_Die *die, u32 attribute)
{
	Dwarf_Attribute attr;
	bool set;

	return dwarf_attr(die, attribute, &attr) && !dwarf_formflag(&attr, &set) && set;
}

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
}

/* "prefix::name", or the name itself where there is no prefix. NULL: it would be too long. */
static const char *full_name(const char *prefix, const char *name, char room[NAME_MOST])
{
	int n;

	if (!*prefix)
		return strlen(name) < NAME_MOST ? name : NULL;
	n = snprintf(room, NAME_MOST, "%s::%s", prefix, name);
	return n < (int)NAME_MOST ? room : NULL;
}

/* of: "" or what stands before its "::" in C++. */
static bool add_enumerators(struct types *t, Dwarf_Die *list, const char *of, bool alternate)
{
	char room[NAME_MOST];
	Dwarf_Die e;

	for (int err = dwarf_child(list, &e); !err && visit(t); err = dwarf_siblingof(&e, &e)) {
		const char *name = dwarf_tag(&e) == DW_TAG_enumerator ? dwarf_diename(&e) : NULL;

		name = name ? full_name(of, name, room) : NULL;
		if (name && !add_entry(t, (struct types_entry){.name = name,
		                                  .space = TYPES_ENUMERATOR,
		                                  .die = dwarf_dieoffset(&e),
		                                  .parent = dwarf_dieoffset(list),
		                                  .alternate = alternate}))
			return false;
	}
	return true;
}

/* C++: ns::Enum::NAME, and ns::NAME unless the enumeration is scoped; by itself, too, where that is clear. */
static bool index_enumerators(struct types *t, Dwarf_Die *list, const char *prefix, const char *full, bool alternate)
{
	if (!add_enumerators(t, list, "", alternate))
		return false;
	if (full != prefix && t->cpp && !add_enumerators(t, list, full, alternate))
		return false;
	return !*prefix || flag(list, DW_AT_enum_class) || add_enumerators(t, list, prefix, alternate);
}

/* C++: a class's variable has its place outside of the class: DW_AT_specification leads to where it has its name. */
static bool remember_static(struct types *t, Dwarf_Die *die, const char *full)
{
	u64 *at = table_get(&t->names, key_of(TYPES_VARIABLE, full));

	return !at || !table_put(&t->statics, dwarf_dieoffset(die), *at);
}

static const char *name_of_static(struct types *t, Dwarf_Die *die, const char *full)
{
	Dwarf_Attribute attr;
	Dwarf_Die declared;
	const u64 *at;

	if (!dwarf_attr(die, DW_AT_specification, &attr) || !dwarf_formref_die(&attr, &declared))
		return full;
	at = table_get(&t->statics, dwarf_dieoffset(&declared));
	return at ? t->entries[*at].name : full;
}

static int space_of(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return TYPES_STRUCT;
	case DW_TAG_union_type:
		return TYPES_UNION;
	case DW_TAG_enumeration_type:
		return TYPES_ENUM;
	case DW_TAG_typedef:
	case DW_TAG_base_type:
	case DW_TAG_unspecified_type:
		return TYPES_PLAIN;
	case DW_TAG_variable:
	case DW_TAG_member: /* until DWARF 4, where it has no place of its own */
		return TYPES_VARIABLE;
	case DW_TAG_subprogram:
		return TYPES_FUNCTION;
	default:
		return -1;
	}
}

static bool is_defined(Dwarf_Die *die, enum type_space space)
{
	Dwarf_Attribute attr;

	if (space == TYPES_VARIABLE)
		return dwarf_attr(die, DW_AT_location, &attr);
	if (space == TYPES_FUNCTION)
		return dwarf_attr(die, DW_AT_low_pc, &attr) || dwarf_attr(die, DW_AT_ranges, &attr);
	return !flag(die, DW_AT_declaration);
}

static bool index_children(struct types *t, Dwarf_Die *parent, const char *prefix, bool alternate, u32 depth);

/* C++ also names a class without its "struct". */
static bool index_named(
        struct types *t, Dwarf_Die *die, enum type_space space, const char *name, bool alternate, bool cpp, u32 depth)
{
	struct types_entry e = {.name = name,
	        .space = space,
	        .die = dwarf_dieoffset(die),
	        .alternate = alternate,
	        .defined = is_defined(die, space)};

	if (space <= TYPES_ENUM)
		e.size = bytes_of(die);
	if (!add_entry(t, e))
		return false;
	if (cpp && space == TYPES_VARIABLE && !e.defined && !alternate)
		return remember_static(t, die, name);
	if (!cpp || space > TYPES_ENUM)
		return true;
	e.space = TYPES_PLAIN;
	return add_entry(t, e) && (space == TYPES_ENUM || index_children(t, die, name, alternate, depth + 1));
}

static bool index_one(struct types *t, Dwarf_Die *die, const char *prefix, bool alternate, bool cpp, u32 depth)
{
	int tag = dwarf_tag(die), space = space_of(tag);
	char room[NAME_MOST];
	const char *name, *full;

	if ((space < 0 && tag != DW_TAG_namespace) || (tag == DW_TAG_member && !flag(die, DW_AT_external)))
		return true;
	name = name_of(die);
	full = name ? full_name(prefix, name, room) : prefix;
	if (!full)
		return true;
	if (tag == DW_TAG_enumeration_type && !index_enumerators(t, die, prefix, full, alternate))
		return false;
	if (cpp && space == TYPES_VARIABLE && !alternate)
		full = name_of_static(t, die, full);
	if (tag == DW_TAG_namespace)
		return index_children(t, die, full, alternate, depth + 1);
	return !name || index_named(t, die, (enum type_space)space, full, alternate, cpp, depth);
}

static bool index_children(struct types *t, Dwarf_Die *parent, const char *prefix, bool alternate, u32 depth)
{
	bool cpp = t->cpp;
	Dwarf_Die die;

	if (depth > NESTED_MOST)
		return true;
	for (int err = dwarf_child(parent, &die); !err && visit(t); err = dwarf_siblingof(&die, &die))
		if (!index_one(t, &die, prefix, alternate, cpp, depth))
			return false;
	return true;
}

static bool is_cpp(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_Rust:
		return true;
	default:
		return false;
	}
}

static bool index_units(struct types *t, Dwarf *dwarf, bool alternate)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, split;
	uint8_t kind;

	while (visit(t) && !dwarf_get_units(dwarf, cu, &cu, NULL, &kind, &unit, &split)) {
		Dwarf_Die *root = kind == DW_UT_skeleton && split.addr ? &split : &unit;

		t->cpp = is_cpp(root);
		if (!index_children(t, root, "", alternate, 0))
			return false;
	}
	return true;
}

static bool index_all(struct types *t)
{
	if (!t->indexed) {
		t->indexed = true;
		t->failed = !index_units(t, t->dwarf, false) || (t->alternate && !index_units(t, t->alternate, true));
	}
	return !t->failed;
}

const struct types_entry *types_lookup(struct types *t, enum type_space space, const char *name)
{
	const u64 *at = index_all(t) ? table_get(&t->names, key_of(space, name)) : NULL;
	const struct types_entry *e = at ? &t->entries[*at] : NULL;

	return e && e->space == space && !strcmp(e->name, name) ? e : NULL;
}

/* --- questions --- */

const struct type *types_find(struct types *t, enum type_space space, const char *name)
{
	const struct types_entry *e = types_lookup(t, space, name);
	Dwarf_Die die;

	return e && types_die(t, e->die, e->alternate, &die) ? type_of_die(t, &die) : NULL;
}

bool types_disagree(struct types *t, enum type_space space, const char *name)
{
	const struct types_entry *e = types_lookup(t, space, name);

	return e && e->several;
}

/* The address that a variable's location says. False: it is none that never changes. */
static bool location(Dwarf_Die *die, struct type_variable *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Block block;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &attr))
		return false;
	/* Go has a block of DWARF 5 in the form of DWARF 3, which libdw does not take for a location */
	if (!dwarf_formblock(&attr, &block) && block.length == 9 && *block.data == DW_OP_addr) {
		memcpy(&ret->addr, block.data + 1, 8);
		return true;
	}
	if (dwarf_getlocation(&attr, &ops, &n) || !n)
		return false;
	if (n == 2 && ops->atom >= DW_OP_const1u && ops->atom <= DW_OP_consts &&
	        (ops[1].atom == DW_OP_GNU_push_tls_address || ops[1].atom == DW_OP_form_tls_address)) {
		ret->thread = true;
		ret->addr = ops->number;
		return false;
	}
	if (n == 1 && ops->atom == DW_OP_addr) {
		ret->addr = ops->number;
		return true;
	}
	if (n == 1 && (ops->atom == DW_OP_addrx || ops->atom == DW_OP_GNU_addr_index)) {
		Dwarf_Attribute value;

		return !dwarf_getlocation_attr(&attr, ops, &value) && !dwarf_formaddr(&value, &ret->addr);
	}
	return false;
}

bool types_variable(struct types *t, const char *name, struct type_variable *ret)
{
	const struct types_entry *e = types_lookup(t, TYPES_VARIABLE, name);
	Dwarf_Die die;

	if (!e || !types_die(t, e->die, e->alternate, &die))
		return false;
	*ret = (struct type_variable){.type = type_referred(t, &die), .several = e->several};
	ret->defined = location(&die, ret);
	return ret->type;
}

u64 type_attribute(const struct type *type, u32 attribute)
{
	Dwarf_Attribute attr;
	Dwarf_Word number;
	Dwarf_Addr addr;
	Dwarf_Die die;

	if (!type->of || !type->die || !types_die(type->of, type->die, type->alternate, &die) ||
	        !dwarf_attr(&die, attribute, &attr))
		return 0;
	return !dwarf_formaddr(&attr, &addr) ? addr : !dwarf_formudata(&attr, &number) ? number : 0;
}

bool types_function(struct types *t, const char *name, struct type_function *ret)
{
	const struct types_entry *e = types_lookup(t, TYPES_FUNCTION, name);
	Dwarf_Addr addr;
	Dwarf_Die die;

	if (!e || !types_die(t, e->die, e->alternate, &die))
		return false;
	*ret = (struct type_function){.type = type_of_die(t, &die), .several = e->several};
	ret->addr = dwarf_entrypc(&die, &addr) ? 0 : addr;
	return ret->type;
}

/* Calls each() with a function's parameters until it says that this is the one: true. */
static bool each_parameter(
        struct types *t, const char *function, bool (*each)(void *ctx, u32 n, Dwarf_Die *die), void *ctx)
{
	const struct types_entry *e = types_lookup(t, TYPES_FUNCTION, function);
	Dwarf_Die die, child;
	u32 n = 0;

	if (!e || !types_die(t, e->die, e->alternate, &die))
		return false;
	for (int end = dwarf_child(&die, &child); !end && visit(t); end = dwarf_siblingof(&child, &child))
		if (dwarf_tag(&child) == DW_TAG_formal_parameter && each(ctx, n++, &child))
			return true;
	return false;
}

struct wanted_parameter {
	struct types *t;
	const char *name;
	int n;
	const struct type *type;
	void (*each)(void *ctx, const char *name);
	void *ctx;
};

static bool is_wanted(void *ctx, u32 n, Dwarf_Die *die)
{
	struct wanted_parameter *w = ctx;
	const char *name = dwarf_diename(die);

	if (!name || strcmp(name, w->name) != 0)
		return false;
	w->n = (int)n;
	w->type = type_referred(w->t, die);
	return true;
}

int types_parameter(struct types *t, const char *function, const char *name, const struct type **type)
{
	struct wanted_parameter w = {.t = t, .name = name, .n = -1};

	each_parameter(t, function, is_wanted, &w);
	*type = w.type;
	return w.type ? w.n : -1;
}

static bool is_result(void *ctx, u32 n, Dwarf_Die *die)
{
	struct wanted_parameter *w = ctx;
	Dwarf_Attribute attr;
	bool result;

	if (dwarf_formflag(dwarf_attr(die, DW_AT_variable_parameter, &attr), &result) || !result)
		return false;
	w->type = type_referred(w->t, die);
	return true;
}

const struct type *types_result(struct types *t, const char *function)
{
	static const struct type nothing = {.kind = TYPE_VOID, .name = "void"};
	struct wanted_parameter w = {.t = t};

	return each_parameter(t, function, is_result, &w) && w.type ? w.type : &nothing;
}

static bool tell(void *ctx, u32 n, Dwarf_Die *die)
{
	struct wanted_parameter *w = ctx;
	const char *name = dwarf_diename(die);

	if (name)
		w->each(w->ctx, name);
	return false;
}

void types_parameters(struct types *t, const char *function, void (*each)(void *ctx, const char *name), void *ctx)
{
	struct wanted_parameter w = {.each = each, .ctx = ctx};

	each_parameter(t, function, tell, &w);
}

bool types_enumerator(struct types *t, const char *name, s64 *value, const struct type **type)
{
	const struct types_entry *e = types_lookup(t, TYPES_ENUMERATOR, name);
	Dwarf_Die die, list;

	if (!e || !types_die(t, e->die, e->alternate, &die) || !types_die(t, e->parent, e->alternate, &list))
		return false;
	*type = type_of_die(t, &list);
	return *type && enumerator_value(&die, (*type)->is_signed, value);
}

void types_names(struct types *t, enum type_space space, void (*each)(void *ctx, const char *name), void *ctx)
{
	if (!index_all(t))
		return;
	for (u32 i = 0; i < t->nentries; i++)
		if (t->entries[i].space == space)
			each(ctx, t->entries[i].name);
}

/* --- the file --- */

struct error *types_open(struct image *img, struct types **ret)
{
	struct types *t = calloc(1, sizeof(*t));
	Dwarf_CU *cu;

	*ret = NULL;
	if (!t)
		return &error_no_memory;
	t->image = image_get(img);
	t->elf = image_open_elf(img);
	t->dwarf = t->elf ? dwarf_begin_elf(t->elf, DWARF_C_READ, NULL) : NULL;
	if (!t->dwarf || dwarf_get_units(t->dwarf, NULL, &cu, NULL, NULL, NULL, NULL)) {
		types_close(t);
		return NULL;
	}
	t->alternate = dwarf_getalt(t->dwarf);
	t->visits = img->size * VISITS_A_BYTE;
	*ret = t;
	return NULL;
}

const struct image *types_image(const struct types *t)
{
	return t->image;
}

void types_close(struct types *t)
{
	if (!t)
		return;
	types_forget(t);
	table_free(&t->names);
	table_free(&t->statics);
	free(t->entries);
	dwarf_end(t->dwarf);
	elf_end(t->elf);
	image_put(t->image);
	free(t);
}
