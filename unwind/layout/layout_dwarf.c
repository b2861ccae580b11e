/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts from debug information. All of it is untrusted: chains of types, and their number, are bounded. */
#include "layout.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "symbols/symbols.h"

#define CHAIN_MAX      16   /* of typedefs, of unnamed members in each other */
#define LIST_MAX       4096 /* values of an enumeration */
#define ENUMERATOR_MAX 64   /* bytes of its name, what a data file can hold */

/* Entries that are looked at, for each byte of the file: it may be compressed, and each is met more than once. */
#define VISITS_A_BYTE 16

struct wanted { /* a field's name: of the type, and what follows */
	const char *type, *rest;
	size_t len; /* of type */
};

struct reader {
	struct layout *layout;
	struct wanted *wanted; /* by field */
	enum layout_source source;
	u64 visits; /* of entries: what is left. Links to siblings may lead in circles */
	bool *seen; /* fields that a definition here has filled */
};

static const char no_member[] = "the type has no such member";
static const char bit_field[] = "a bit-field, or at no constant offset";
static const char too_large[] = "beyond 64 KiB";
static const char disagree[] = "its definitions disagree";
static const char no_list[] = "no enumerator of it has the prefix";

static bool visit(struct reader *r)
{
	return r->visits && r->visits--;
}

static bool is_named(Dwarf_Die *die, const char *name, size_t len)
{
	const char *n = dwarf_diename(die);

	return n && !strncmp(n, name, len) && !n[len];
}

static bool type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return dwarf_formref_die(dwarf_attr(die, DW_AT_type, &attr), ret);
}

/* -fdebug-types-section: here is only a declaration, with the number of the unit that defines it. */
static void follow_signature(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die definition;

	if (dwarf_formref_die(dwarf_attr(die, DW_AT_signature, &attr), &definition))
		*die = definition;
}

/* What is behind typedefs and qualifiers. */
static bool strip_qualifiers(Dwarf_Die *die, Dwarf_Die *ret)
{
	*ret = *die;
	for (u32 i = 0; i < CHAIN_MAX; i++) {
		Dwarf_Die next;

		switch (dwarf_tag(ret)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			break;
		default:
			follow_signature(ret);
			return true;
		}
		if (!type_of(ret, &next))
			return false;
		*ret = next;
	}
	return false;
}

/* Elements of an array, of all dimensions; 0 where it is open (a flexible member). */
static u64 elements(struct reader *r, Dwarf_Die *array)
{
	u64 n = 1;
	Dwarf_Die dim;

	for (int e = dwarf_child(array, &dim); !e && visit(r); e = dwarf_siblingof(&dim, &dim)) {
		Dwarf_Attribute attr;
		Dwarf_Word count = 0, bound;

		if (dwarf_tag(&dim) != DW_TAG_subrange_type)
			continue;
		if (!dwarf_formudata(dwarf_attr(&dim, DW_AT_upper_bound, &attr), &bound))
			count = bound + 1;
		else
			dwarf_formudata(dwarf_attr(&dim, DW_AT_count, &attr), &count);
		if (__builtin_mul_overflow(n, count, &n))
			return 0;
	}
	return n;
}

static bool size_of(struct reader *r, Dwarf_Die *type, u64 *ret)
{
	u64 n = 1;
	Dwarf_Die t = *type;

	for (u32 i = 0; i < CHAIN_MAX; i++) {
		Dwarf_Die at, element;
		int size;

		if (!strip_qualifiers(&t, &at))
			return false;
		size = dwarf_bytesize(&at);
		if (dwarf_tag(&at) == DW_TAG_pointer_type && size < 0)
			size = sizeof(u64);
		if (size >= 0)
			return !__builtin_mul_overflow(n, (u64)size, ret);
		if (dwarf_tag(&at) != DW_TAG_array_type || !type_of(&at, &element) ||
		        __builtin_mul_overflow(n, elements(r, &at), &n))
			return false;
		t = element;
	}
	return false;
}

/* The offset of a member of a struct; members of a union say nothing and have 0. */
static bool offset_of(Dwarf_Die *member, u64 *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	*ret = 0;
	if (dwarf_hasattr(member, DW_AT_bit_size))
		return false;
	if (!dwarf_attr(member, DW_AT_data_member_location, &attr))
		return true;
	if (!dwarf_formudata(&attr, ret))
		return true;
	if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops->atom != DW_OP_plus_uconst)
		return false;
	*ret = ops->number;
	return true;
}

/* Adds to *at, leaves the type in *type; the problem if it is not so. */
static const char *find_member(
        struct reader *r, Dwarf_Die *type, const char *name, size_t len, u32 depth, u64 *at, Dwarf_Die *ret)
{
	const char *problem = no_member;
	Dwarf_Die member;

	for (int e = dwarf_child(type, &member); !e && visit(r); e = dwarf_siblingof(&member, &member)) {
		bool unnamed = !dwarf_diename(&member);
		Dwarf_Die inner;
		u64 offset;

		if (dwarf_tag(&member) != DW_TAG_member || (!unnamed && !is_named(&member, name, len)))
			continue;
		if (!type_of(&member, &inner) || !strip_qualifiers(&inner, ret) || !offset_of(&member, &offset)) {
			if (unnamed)
				continue;
			return bit_field;
		}
		if (!unnamed) {
			*at += offset;
			return NULL;
		}
		inner = *ret;
		problem = depth < CHAIN_MAX ? find_member(r, &inner, name, len, depth + 1, at, ret) : no_member;
		if (!problem)
			*at += offset;
		if (problem != no_member)
			return problem;
	}
	return problem;
}

/* path: "gc.total" */
static const char *find_path(struct reader *r, Dwarf_Die *type, const char *path, struct layout_member *ret)
{
	Dwarf_Die t = *type, next;
	u64 at = 0, size;

	for (u32 i = 0; i < CHAIN_MAX; i++) {
		size_t len = strcspn(path, ".");
		const char *problem = find_member(r, &t, path, len, 0, &at, &next);

		if (problem)
			return problem;
		t = next;
		path += len;
		if (!*path++)
			break;
	}
	if (!size_of(r, &t, &size))
		return "of a type without a size";
	if (at > UINT16_MAX || size > UINT16_MAX)
		return too_large;
	*ret = (struct layout_member){at, size};
	return NULL;
}

static const char *find_size(struct reader *r, Dwarf_Die *type, struct layout_member *ret)
{
	u64 size;

	if (!size_of(r, type, &size) || !size)
		return "its size is not given";
	if (size > UINT16_MAX)
		return too_large;
	*ret = (struct layout_member){size, size};
	return NULL;
}

static void fill(struct reader *r, u32 field, const char *problem, struct layout_member value)
{
	struct layout_fill *f = &r->layout->fills[field];
	struct layout_member *old = layout_member(r->layout, field);

	if (problem == no_member && r->layout->schema->fields[field].optional)
		problem = NULL;
	if (r->seen[field] && (f->problem != problem || memcmp(old, &value, sizeof(value))))
		problem = disagree;
	if (problem) {
		*old = (struct layout_member){0};
		*f = (struct layout_fill){LAYOUT_UNKNOWN, problem};
	} else {
		layout_set(r->layout, field, value, r->source);
	}
	r->seen[field] = true;
}

/* names: LIST_MAX of them, by value; the number in use. */
static u32 enumerators(struct reader *r, Dwarf_Die *type, const char *prefix, const char **names)
{
	size_t len = strlen(prefix);
	u32 n = 0;
	Dwarf_Die e;

	for (int err = dwarf_child(type, &e); !err && visit(r); err = dwarf_siblingof(&e, &e)) {
		const char *name = dwarf_diename(&e);
		Dwarf_Attribute attr;
		Dwarf_Word value;

		if (dwarf_tag(&e) != DW_TAG_enumerator || !name || strncmp(name, prefix, len) || name[len] == '_' ||
		        !name[len] || dwarf_formudata(dwarf_attr(&e, DW_AT_const_value, &attr), &value) ||
		        value >= LIST_MAX || strlen(name + len) > ENUMERATOR_MAX)
			continue;
		if (!names[value])
			names[value] = name + len;
		if (value >= n)
			n = value + 1;
	}
	return n;
}

static bool same_names(const struct layout_list *list, const char **names, u32 n)
{
	if (list->n != n)
		return false;
	for (u32 i = 0; i < n; i++)
		if (strcmp(list->names[i], names[i] ? names[i] : ""))
			return false;
	return true;
}

static struct error *fill_list(struct reader *r, u32 field, Dwarf_Die *type, const char *prefix)
{
	cleanup(free) const char **names = calloc(LIST_MAX, sizeof(*names));
	struct layout_fill *f = &r->layout->fills[field];
	u32 n;

	if (!names)
		return &error_no_memory;
	n = dwarf_tag(type) == DW_TAG_enumeration_type ? enumerators(r, type, prefix, names) : 0;
	if (r->seen[field]) {
		if (!f->problem && !same_names(layout_list(r->layout, field), names, n))
			*f = (struct layout_fill){LAYOUT_UNKNOWN, disagree};
		return NULL;
	}
	r->seen[field] = true;
	if (n)
		return layout_set_list(r->layout, field, names, n, r->source);
	*f = (struct layout_fill){LAYOUT_UNKNOWN, no_list};
	return NULL;
}

static struct wanted split_name(const char *name)
{
	static const char size[] = "sizeof ", list[] = "enum ";
	size_t len;

	if (!strncmp(name, size, sizeof(size) - 1))
		name += sizeof(size) - 1;
	else if (!strncmp(name, list, sizeof(list) - 1))
		name += sizeof(list) - 1;
	len = strchr(name, ':') ? strcspn(name, ":") : strcspn(name, ". ");
	return (struct wanted){.type = name, .rest = name + len + (name[len] != 0), .len = len};
}

static bool is_wanted(const struct wanted *w, const char *own)
{
	return *own == *w->type && !strncmp(own, w->type, w->len) && !own[w->len];
}

/* A definition: fills what asks for a type of its name. */
static struct error *read_type(struct reader *r, Dwarf_Die *die)
{
	const struct layout_schema *schema = r->layout->schema;
	const char *own = dwarf_diename(die);
	struct error *err = NULL;

	for (u32 i = 0; !err && i < schema->n; i++) {
		const char *rest = r->wanted[i].rest, *problem;
		struct layout_member value = {0};
		Dwarf_Die type;

		if (!is_wanted(&r->wanted[i], own) || (r->layout->fills[i].source != LAYOUT_UNKNOWN && !r->seen[i]) ||
		        !strip_qualifiers(die, &type) || dwarf_hasattr(&type, DW_AT_declaration))
			continue;
		if (schema->fields[i].list) {
			err = fill_list(r, i, &type, rest);
			continue;
		}
		problem = *rest ? find_path(r, &type, rest, &value) : find_size(r, &type, &value);
		fill(r, i, problem, value);
	}
	return err;
}

static struct error *read_unit(struct reader *r, Dwarf_Die *unit)
{
	struct error *err = NULL;
	Dwarf_Die die;

	for (int e = dwarf_child(unit, &die); !err && !e && visit(r); e = dwarf_siblingof(&die, &die)) {
		switch (dwarf_tag(&die)) {
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
		case DW_TAG_typedef:
			if (dwarf_diename(&die))
				err = read_type(r, &die);
		}
	}
	return err;
}

static struct error *read_units(struct reader *r, Dwarf *dwarf)
{
	struct error *err = NULL;
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, split;
	uint8_t type;

	while (!err && visit(r) && !dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, &split))
		err = read_unit(r, type == DW_UT_skeleton ? &split : &unit);
	return err;
}

struct error *layout_from_dwarf(struct image *img, enum layout_source source, struct layout *l)
{
	cleanup(free) bool *seen = calloc(l->schema->n, sizeof(*seen));
	cleanup(free) struct wanted *wanted = calloc(l->schema->n, sizeof(*wanted));
	struct reader r = {
	        .layout = l, .wanted = wanted, .source = source, .visits = img->size * VISITS_A_BYTE, .seen = seen};
	struct error *err;
	Dwarf *dwarf, *alternate;
	Elf *elf; /* of its own: libelf keeps what it has unpacked */

	if (!seen || !wanted)
		return &error_no_memory;
	for (u32 i = 0; i < l->schema->n; i++)
		wanted[i] = split_name(l->schema->fields[i].name);
	elf = image_open_elf(img);
	dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	if (!dwarf) {
		elf_end(elf);
		return NULL;
	}
	err = read_units(&r, dwarf);
	alternate = err ? NULL
	                : dwarf_getalt(
	                          dwarf); /* of dwz: definitions that several files have in common; closed with dwarf */
	if (alternate)
		err = read_units(&r, alternate);
	dwarf_end(dwarf);
	elf_end(elf);
	if (!err && !l->details[source] && source != LAYOUT_DWARF)
		err = layout_detail(l, source, "%s", img->path);
	return err;
}

struct error *layout_from_debug(struct image *img, const char *root, struct layout *l)
{
	struct image *debug = NULL;
	struct error *err = layout_from_dwarf(img, LAYOUT_DWARF, l), *incomplete;

	if (err)
		return err;
	incomplete = layout_complete(l, img->path);
	if (!incomplete || incomplete == &error_no_memory)
		return incomplete;
	error_free(incomplete);
	err = symbols_debug_file(img, root, &debug);
	if (!err && debug) {
		err = layout_from_dwarf(debug, LAYOUT_DEBUG_FILE, l);
		image_put(debug);
	}
	return err;
}

struct error *layout_whole_from_debug(
        const struct layout_schema *schema, struct image *img, const char *root, struct layout **ret)
{
	struct layout *l = NULL;
	struct error *err = layout_cache_load(schema, img, &l), *incomplete;

	if (err || l) {
		*ret = l;
		return err;
	}
	err = layout_create(schema, &l);
	if (err)
		return err;
	err = layout_from_debug(img, root, l);
	incomplete = err ? NULL : layout_complete(l, img->path);
	if (!err && !incomplete) {
		layout_cache_store(img, l);
		*ret = l;
		return NULL;
	}
	error_free(incomplete);
	layout_destroy(l);
	return err;
}
