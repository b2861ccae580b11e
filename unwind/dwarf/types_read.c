/* SPDX-License-Identifier: Apache-2.0 */
#include "types_read.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

#define CHAIN_MOST   64u /* of typedefs and qualifiers, of members without a name in each other */
#define MEMBERS_MOST (1u << 16)
#define CHUNK        (64u << 10)
#define POINTER      8u

struct types_chunk {
	struct types_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

struct type_list {
	struct type_member *members;
	u32 n;
};

static const struct type void_type = {.kind = TYPE_VOID, .name = "void"};

/* --- memory --- */

/* Memory that lives as long as t; zeroed. NULL: none. */
static void *types_new(struct types *t, size_t size)
{
	struct types_chunk *c = t->chunks;
	void *ret;

	size = (size + 15) & ~(size_t)15;
	if (!c || c->size - c->used < size) {
		size_t room = size > CHUNK ? size : CHUNK;

		c = calloc(1, sizeof(*c) + room);
		if (!c)
			return NULL;
		*c = (struct types_chunk){.next = t->chunks, .size = room};
		t->chunks = c;
	}
	ret = c->bytes + c->used;
	c->used += size;
	return ret;
}

const char *types_keep(struct types *t, const char *text)
{
	size_t size = strlen(text) + 1;
	char *ret = types_new(t, size);

	return ret ? memcpy(ret, text, size) : NULL;
}

void types_forget(struct types *t)
{
	for (size_t i = 0; i < t->members.capacity; i++)
		if (t->members.entries[i].key) {
			struct type_list *list = (struct type_list *)t->members.entries[i].value;

			free(list->members);
		}
	table_free(&t->members);
	table_free(&t->read);
	while (t->chunks) {
		struct types_chunk *c = t->chunks;

		t->chunks = c->next;
		free(c);
	}
}

/* Of table.h: keys are well spread already. */
static u64 spread(u64 n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15ull;
	return n ? n : 1;
}

/* --- entries --- */

bool types_die(struct types *t, u64 offset, bool alternate, Dwarf_Die *ret)
{
	return dwarf_offdie(alternate ? t->alternate : t->dwarf, offset, ret);
}

static bool is_alternate(const struct types *t, Dwarf_Die *die)
{
	return t->alternate && dwarf_cu_getdwarf(die->cu) == t->alternate;
}

static u64 number(Dwarf_Die *die, u32 attribute, u64 or_else)
{
	Dwarf_Attribute attr;
	Dwarf_Word ret;

	return dwarf_attr(die, attribute, &attr) && !dwarf_formudata(&attr, &ret) ? ret : or_else;
}

static bool referred(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr), ret);
}

bool enumerator_value(Dwarf_Die *die, bool is_signed, s64 *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Sword value;
	Dwarf_Word word;

	if (!dwarf_attr(die, DW_AT_const_value, &attr))
		return false;
	if (dwarf_whatform(&attr) == DW_FORM_sdata || dwarf_whatform(&attr) == DW_FORM_implicit_const || is_signed) {
		if (dwarf_formsdata(&attr, &value))
			return false;
		*ret = value;
		return true;
	}
	if (dwarf_formudata(&attr, &word))
		return false;
	*ret = (s64)word;
	return true;
}

/* What typedefs and qualifiers lead to. 1: found, 0: to void, -1: to nothing. alias: the last typedef, or NULL. */
static int strip(Dwarf_Die *die, const char **alias)
{
	*alias = NULL;
	for (u32 i = 0; i < CHAIN_MOST; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die next;

		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
			*alias = dwarf_diename(die);
			/* fallthrough */
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!referred(die, &next))
				return 0;
			*die = next;
			continue;
		default:
			if (dwarf_formref_die(dwarf_attr(die, DW_AT_signature, &attr), &next))
				*die = next;
			return 1;
		}
	}
	return -1;
}

/* --- types --- */

static void fill_base(struct type *type, Dwarf_Die *die)
{
	switch (number(die, DW_AT_encoding, 0)) {
	case DW_ATE_signed:
		type->is_signed = true;
		type->kind = TYPE_INT;
		break;
	case DW_ATE_signed_char:
		type->is_signed = type->is_char = true;
		type->kind = TYPE_INT;
		break;
	case DW_ATE_unsigned_char:
		type->is_char = true;
		type->kind = TYPE_INT;
		break;
	case DW_ATE_boolean:
		type->is_bool = true;
		type->kind = TYPE_INT;
		break;
	case DW_ATE_unsigned:
	case DW_ATE_UTF:
		type->kind = TYPE_INT;
		break;
	case DW_ATE_float:
		type->kind = TYPE_FLOAT;
		break;
	default:
		type->kind = TYPE_OTHER;
	}
	if (type->kind == TYPE_INT && type->size != 1 && type->size != 2 && type->size != 4 && type->size != 8)
		type->kind = TYPE_OTHER;
	if (type->kind == TYPE_FLOAT && type->size != 4 && type->size != 8)
		type->kind = TYPE_OTHER;
}

/* One dimension after the other: int a[2][3] is an array of 2 arrays. */
static bool fill_array(struct types *t, struct type *type, Dwarf_Die *die)
{
	u64 counts[8];
	u32 n = 0;
	Dwarf_Die dim;
	const struct type *element = type_referred(t, die);

	for (int err = dwarf_child(die, &dim); !err && n < 8; err = dwarf_siblingof(&dim, &dim)) {
		u64 upper;

		if (dwarf_tag(&dim) != DW_TAG_subrange_type)
			continue;
		upper = number(&dim, DW_AT_upper_bound, UINT64_MAX);
		counts[n++] = number(&dim, DW_AT_count, upper + 1);
	}
	while (element && n > 1) {
		struct type *inner = types_new(t, sizeof(*inner));

		if (!inner)
			return false;
		*inner = (struct type){.kind = TYPE_ARRAY, .name = "", .count = counts[--n], .to = element, .of = t};
		if (__builtin_mul_overflow(inner->count, element->size, &inner->size))
			return false;
		element = inner;
	}
	type->kind = TYPE_ARRAY;
	type->to = element;
	type->count = n ? counts[0] : 0;
	return element && !__builtin_mul_overflow(type->count, element->size, &type->size);
}

static const struct type *of_size(u64 size, bool is_signed)
{
	static const struct type ints[2][4] = {{{.kind = TYPE_INT, .name = "unsigned char", .size = 1},
	                                               {.kind = TYPE_INT, .name = "unsigned short", .size = 2},
	                                               {.kind = TYPE_INT, .name = "unsigned int", .size = 4},
	                                               {.kind = TYPE_INT, .name = "unsigned long", .size = 8}},
	        {{.kind = TYPE_INT, .name = "signed char", .size = 1, .is_signed = true},
	                {.kind = TYPE_INT, .name = "short", .size = 2, .is_signed = true},
	                {.kind = TYPE_INT, .name = "int", .size = 4, .is_signed = true},
	                {.kind = TYPE_INT, .name = "long", .size = 8, .is_signed = true}}};

	return size == 1   ? &ints[is_signed][0]
	       : size == 2 ? &ints[is_signed][1]
	       : size == 8 ? &ints[is_signed][3]
	                   : &ints[is_signed][2];
}

/* Its integer: what the file says, else unsigned unless a value is negative. */
static void fill_enum(struct type *type, Dwarf_Die *die)
{
	Dwarf_Die base, e;
	bool is_signed = false;
	const char *alias;

	type->kind = TYPE_ENUM;
	if (referred(die, &base) && strip(&base, &alias) == 1) {
		is_signed = number(&base, DW_AT_encoding, 0) == DW_ATE_signed;
	} else {
		for (int err = dwarf_child(die, &e); !err; err = dwarf_siblingof(&e, &e)) {
			s64 value;

			is_signed |=
			        dwarf_tag(&e) == DW_TAG_enumerator && enumerator_value(&e, true, &value) && value < 0;
		}
	}
	type->is_signed = is_signed;
	type->to = of_size(type->size, is_signed);
}

static bool fill_type(struct types *t, struct type *type, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		fill_base(type, die);
		return true;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		type->kind = TYPE_POINTER;
		type->size = POINTER;
		type->to = type_referred(t, die);
		return type->to;
	case DW_TAG_array_type:
		return fill_array(t, type, die);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		type->kind = TYPE_STRUCT;
		return true;
	case DW_TAG_union_type:
		type->kind = TYPE_UNION;
		return true;
	case DW_TAG_enumeration_type:
		fill_enum(type, die);
		return true;
	case DW_TAG_subroutine_type:
	case DW_TAG_subprogram:
		type->kind = TYPE_FUNCTION;
		type->size = 0;
		type->to = type_referred(t, die);
		return type->to;
	default:
		type->kind = TYPE_OTHER;
		return true;
	}
}

static bool is_declaration(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	bool set;

	return dwarf_attr(die, DW_AT_declaration, &attr) && !dwarf_formflag(&attr, &set) && set;
}

/* A structure by its name is the one that the index has, so that there is one of it, also behind declarations. */
static void canonical(struct types *t, Dwarf_Die *die)
{
	int tag = dwarf_tag(die), size;
	enum type_space space = tag == DW_TAG_union_type ? TYPES_UNION : TYPES_STRUCT;
	const char *name;
	const struct types_entry *e;
	Dwarf_Die other;

	if (tag != DW_TAG_structure_type && tag != DW_TAG_union_type)
		return;
	name = dwarf_diename(die);
	e = name ? types_lookup(t, space, name) : NULL;
	if (!e || !types_die(t, e->die, e->alternate, &other))
		return;
	size = dwarf_bytesize(die);
	if (is_declaration(die) ? e->defined : e->defined && size >= 0 && (u64)size == e->size)
		*die = other;
}

/* C: a structure that has a name by its typedef only is one, too, in whichever file of the program it is met. */
static void canonical_alias(struct types *t, Dwarf_Die *die, const char *alias)
{
	int tag = dwarf_tag(die);
	const struct types_entry *e;
	const char *other_alias;
	Dwarf_Die other;

	if (t->cpp || !alias || dwarf_diename(die) || (tag != DW_TAG_structure_type && tag != DW_TAG_union_type))
		return;
	e = types_lookup(t, TYPES_PLAIN, alias);
	if (e && types_die(t, e->die, e->alternate, &other) && strip(&other, &other_alias) == 1 &&
	        dwarf_tag(&other) == tag && !dwarf_diename(&other) && dwarf_bytesize(&other) == dwarf_bytesize(die))
		*die = other;
}

static u64 read_key(const struct types *t, Dwarf_Die *die)
{
	return spread(dwarf_dieoffset(die) << 1 | is_alternate(t, die));
}

/* Types lead to each other, so one is known before what it leads to is read. */
const struct type *type_of_die(struct types *t, Dwarf_Die *die)
{
	const char *name, *alias;
	int found = strip(die, &alias);
	struct type *type;
	u64 *known;

	if (found != 1)
		return found ? NULL : &void_type;
	canonical(t, die);
	canonical_alias(t, die, alias);
	known = table_get(&t->read, read_key(t, die));
	if (known)
		return (const struct type *)*known;
	type = types_new(t, sizeof(*type));
	if (!type || t->depth >= CHAIN_MOST || table_put(&t->read, read_key(t, die), (u64)type))
		return NULL;
	name = dwarf_diename(die);
	*type = (struct type){.kind = TYPE_OTHER,
	        .name = name ? name : "",
	        .alias = alias ? types_keep(t, alias) : NULL,
	        .size = dwarf_bytesize(die) < 0 ? 0 : (u64)dwarf_bytesize(die),
	        .of = t,
	        .die = dwarf_dieoffset(die),
	        .alternate = is_alternate(t, die),
	        .to = &void_type,
	        .is_declared = is_declaration(die)};
	t->depth++;
	if (!fill_type(t, type, die))
		*type = (struct type){.kind = TYPE_OTHER, .name = "", .to = &void_type, .of = t};
	t->depth--;
	return type;
}

const struct type *type_referred(struct types *t, Dwarf_Die *die)
{
	Dwarf_Die type;

	return referred(die, &type) ? type_of_die(t, &type) : &void_type;
}

/* --- members --- */

/* A bit-field's word: the one of its declared type, or the smallest that holds it. False: none does. */
static bool place_bits(struct type_member *m, u64 bit, u64 bits)
{
	u64 word = m->type->size;

	if (!bits || bits > 64)
		return false;
	if ((word != 1 && word != 2 && word != 4 && word != 8) || bit % (8 * word) + bits > 8 * word) {
		m->offset = bit / 8;
		m->shift = bit % 8;
		for (word = 1; 8 * word < m->shift + bits; word *= 2)
			;
		if (word > 8)
			return false;
	} else {
		m->offset = bit / (8 * word) * word;
		m->shift = bit % (8 * word);
	}
	m->bits = (u32)bits;
	m->word = (u32)word;
	return true;
}

static bool member_offset(Dwarf_Die *die, u64 *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	*ret = 0;
	if (!dwarf_attr(die, DW_AT_data_member_location, &attr) || !dwarf_formudata(&attr, ret))
		return true;
	if (dwarf_getlocation(&attr, &ops, &n) || n != 1 || ops->atom != DW_OP_plus_uconst)
		return false;
	*ret = ops->number;
	return true;
}

static bool fill_member(struct types *t, Dwarf_Die *die, struct type_member *m)
{
	u64 bits = number(die, DW_AT_bit_size, 0), offset, from_top;

	*m = (struct type_member){.name = dwarf_diename(die), .type = type_referred(t, die)};
	if (dwarf_tag(die) == DW_TAG_inheritance)
		m->name = NULL;
	if (!m->type || !member_offset(die, &offset))
		return false;
	m->offset = offset;
	if (!bits)
		return true;
	from_top = number(die, DW_AT_bit_offset, UINT64_MAX);
	if (from_top == UINT64_MAX)
		return place_bits(m, number(die, DW_AT_data_bit_offset, 8 * offset), bits);
	return place_bits(m, 8 * offset + 8 * number(die, DW_AT_byte_size, m->type->size) - from_top - bits, bits);
}

static bool is_member(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	return (dwarf_tag(die) == DW_TAG_member || dwarf_tag(die) == DW_TAG_inheritance) &&
	       !dwarf_attr(die, DW_AT_external, &attr); /* a static one of a class */
}

static void read_members(struct types *t, Dwarf_Die *die, struct type_list *list)
{
	Dwarf_Die child;

	for (int err = dwarf_child(die, &child); !err && list->n < MEMBERS_MOST;
	        err = dwarf_siblingof(&child, &child)) {
		if (!is_member(&child))
			continue;
		if (grow(&list->members, list->n, sizeof(*list->members)))
			return;
		list->n += fill_member(t, &child, &list->members[list->n]);
	}
}

u32 type_members(const struct type *type, const struct type_member **ret)
{
	struct types *t = type->of;
	struct type_list *list;
	Dwarf_Die die;
	u64 *known;

	if (type->members)
		return type->members(type, ret);
	if (!t || (type->kind != TYPE_STRUCT && type->kind != TYPE_UNION))
		return 0;
	known = table_get(&t->members, spread((u64)type));
	list = known ? (struct type_list *)*known : types_new(t, sizeof(*list));
	if (!list)
		return 0;
	if (!known && !table_put(&t->members, spread((u64)type), (u64)list) &&
	        types_die(t, type->die, type->alternate, &die))
		read_members(t, &die, list);
	*ret = list->members;
	return list->n;
}

/* A member of bases so far up; *deeper: there are others above them. */
static bool find_member(const struct type *type, const char *name, u32 up, bool *deeper, struct type_member *ret)
{
	const struct type_member *members;
	u32 n = type_members(type, &members);

	for (u32 i = 0; i < n; i++) {
		bool base = !members[i].name && members[i].type != type;

		if (!up && members[i].name && !strcmp(members[i].name, name)) {
			*ret = members[i];
			return true;
		}
		*deeper |= !up && base;
		if (up && base && find_member(members[i].type, name, up - 1, deeper, ret)) {
			ret->offset += members[i].offset;
			return true;
		}
	}
	return false;
}

/* The nearest: a class hides what its bases have. */
bool type_member(const struct type *type, const char *name, struct type_member *ret)
{
	bool deeper = true;

	for (u32 up = 0; deeper && up < CHAIN_MOST; up++) {
		deeper = false;
		if (find_member(type, name, up, &deeper, ret))
			return true;
	}
	return false;
}
