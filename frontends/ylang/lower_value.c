/* SPDX-License-Identifier: Apache-2.0 */
/* Values: loads, conversions, members, stores. */
#include "lower.h"

#include <string.h>

bool is_integer(const struct type *type)
{
	return type->kind == TYPE_INT || type->kind == TYPE_ENUM;
}

bool is_arithmetic(const struct type *type)
{
	return is_integer(type) || type->kind == TYPE_FLOAT;
}

static enum y_type integer_type(u64 size, bool is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? Y_I8 : Y_U8;
	case 2:
		return is_signed ? Y_I16 : Y_U16;
	case 4:
		return is_signed ? Y_I32 : Y_U32;
	default:
		return is_signed ? Y_I64 : Y_U64;
	}
}

static _Noreturn void no_value(const struct lower *l, const struct y_node *at)
{
	char lacks[Y_LACKS];

	if (at->kind == Y_N_MEMBER)
		at = at->a;
	if (!l->untyped || at->kind != Y_N_NAME || strcmp(at->name, l->untyped) != 0)
		FAIL(l, at, "this has no value");
	FAIL(l, at, "the type of %s is not known: *(long *)&%s says what it is%s", l->untyped, l->untyped,
	        y_target_lacks(l->target, l->untyped_module, lacks));
}

enum y_type type_of_value(const struct lower *l, const struct y_node *at, const struct type *type)
{
	if (type == &y_string_type)
		return Y_STR;
	if (y_is_stack(type))
		return Y_STACK;
	switch (type->kind) {
	case TYPE_INT:
	case TYPE_ENUM:
		return integer_type(type->size, type->is_signed);
	case TYPE_FLOAT:
		return type->size == 4 ? Y_F32 : Y_F64;
	case TYPE_POINTER:
		return Y_U64;
	case TYPE_VOID:
		no_value(l, at);
	case TYPE_STRUCT:
	case TYPE_UNION:
		FAIL(l, at, "a whole %s is no value here: use its members, or & for its address",
		        y_type_text(l->s, type));
	default:
		FAIL(l, at, "values of type %s are not supported", y_type_text(l->s, type));
	}
}

bool same_type(const struct type *a, const struct type *b)
{
	if (a == b)
		return true;
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case TYPE_POINTER:
		return same_type(a->to, b->to);
	case TYPE_ARRAY:
		return a->count == b->count && same_type(a->to, b->to);
	case TYPE_INT:
	case TYPE_FLOAT:
		return a->size == b->size && (a->is_signed == b->is_signed || (a->is_char && b->is_char));
	case TYPE_VOID:
	case TYPE_FUNCTION:
		return true;
	case TYPE_OTHER:
		return false;
	default:
		if (!*a->name && !*b->name)
			return a->alias && b->alias && a->size == b->size && !strcmp(a->alias, b->alias);
		return *a->name && a->size == b->size && !strcmp(a->name, b->name);
	}
}

struct value constant(const struct type *type, u64 value)
{
	return (struct value){.kind = V_CONST, .type = type, .imm = value, .slot = Y_NONE};
}

struct value in_slot(const struct type *type, u32 slot)
{
	return (struct value){.kind = V_SLOT, .type = type, .slot = slot};
}

u64 size_of_type(struct lower *l, const struct y_node *at, const struct type *type)
{
	if (type->kind == TYPE_VOID || type->kind == TYPE_FUNCTION)
		return 1; /* GNU's */
	if (type->is_declared || (type->kind == TYPE_ARRAY && !type->size && !type->count))
		FAIL(l, at, "the size of %s is not known in the target", y_type_text(l->s, type));
	if (type->kind == TYPE_STRUCT && !type->size && type->members && !type->kernel)
		FAIL(l, at, "the size of %s is not known: yrt's own layout has only some of its members",
		        y_type_text(l->s, type));
	if (type == &y_string_type || y_is_stack(type))
		FAIL(l, at, "%s has no size in the target; _len(s) is a string's length", type->name);
	return type->size;
}

/* --- reading --- */

u32 address_slot(struct lower *l, const struct y_node *at, struct value v)
{
	u32 dst;
	struct y_insn *i;

	if (v.slot == Y_NONE) {
		dst = new_slot(l, Y_U64);
		i = emit(l, at, Y_OP_ADDRESS, Y_U64);
		i->dst = dst;
		i->a = add_module(l, v.module);
		i->imm = v.imm;
		return dst;
	}
	if (!v.imm)
		return v.slot;
	return emit_binary(l, at, Y_OP_ADD, Y_U64, v.slot, emit_const(l, Y_U64, v.imm));
}

static u32 load(struct lower *l, const struct y_node *at, struct value v, enum y_type type)
{
	u32 address = v.slot == Y_NONE ? address_slot(l, at, v) : v.slot, dst = new_slot(l, type);
	struct y_insn *i = emit(l, at, Y_OP_LOAD, type);

	i->dst = dst;
	i->a = address;
	i->imm = v.slot == Y_NONE ? 0 : v.imm;
	i->c = v.type->kernel ? Y_KERNEL : Y_NONE;
	return dst;
}

static u32 shift_by(struct lower *l, enum y_op op, enum y_type type, u32 slot, u64 by)
{
	return emit_binary(l, NULL, op, type, slot, emit_const(l, type, by));
}

static u32 convert_slot(struct lower *l, u32 slot, enum y_type from, enum y_type to)
{
	u32 dst = new_slot(l, to);
	struct y_insn *i = emit(l, NULL, Y_OP_CONVERT, to);

	i->dst = dst;
	i->a = slot;
	i->imm = from;
	return dst;
}

/* Promoted to int where int holds all of its values, as C has it. */
static struct value load_bits(struct lower *l, const struct y_node *at, struct value v)
{
	enum y_type word = integer_type(v.word, false), wide = v.type->is_signed ? Y_I64 : Y_U64, own;
	u32 slot = load(l, at, v, word);
	const struct type *type = v.bits < 32 || (v.bits == 32 && v.type->is_signed) ? &y_int
	                          : v.bits == 32                                     ? &y_uint
	                                                                             : v.type;

	own = type_of_value(l, at, type);
	slot = convert_slot(l, slot, word, wide);
	slot = shift_by(l, Y_OP_SHL, wide, slot, 64 - v.shift - v.bits);
	slot = shift_by(l, Y_OP_SHR, wide, slot, 64 - v.bits);
	return in_slot(type, own == wide ? slot : convert_slot(l, slot, wide, own));
}

static struct value read_target(struct lower *l, const struct y_node *at, struct value v)
{
	switch (v.type->kind) {
	case TYPE_ARRAY:
		return in_slot(y_pointer_to(l->s, v.type->to), address_slot(l, at, v));
	case TYPE_FUNCTION:
		return in_slot(y_pointer_to(l->s, v.type), address_slot(l, at, v));
	default:
		if (v.bits)
			return load_bits(l, at, v);
		return in_slot(v.type, load(l, at, v, type_of_value(l, at, v.type)));
	}
}

static struct value read_map(struct lower *l, const struct y_node *at, struct value v)
{
	const struct y_map *m = &l->p->maps[v.imm];
	enum y_type type = m->value;
	u32 dst;
	struct y_insn *i;

	if (v.nkeys < m->nkeys)
		FAIL(l, at, "%s is a whole %s: name an element, or use _foreach or _print", m->name,
		        m->is_agg ? "aggregate" : "map");
	if (m->is_agg)
		FAIL(l, at, "an aggregate has no single value: _count, _sum, _min, _max or _avg of it");
	dst = new_slot(l, type);
	i = emit(l, at, Y_OP_MAP_GET, type);
	i->dst = dst;
	i->imm = v.imm;
	i->args = add_args(l, v.keys, v.nkeys);
	i->nargs = v.nkeys;
	if (type == Y_STR || type == Y_F64 || v.type->size == 8)
		return in_slot(v.type, dst);
	return in_slot(v.type, convert_slot(l, dst, type, type_of_value(l, at, v.type)));
}

struct value rvalue(struct lower *l, const struct y_node *at, struct value v)
{
	struct y_insn *i;
	enum y_type type;
	u32 dst;

	switch (v.kind) {
	case V_NOTHING:
		FAIL(l, at, "this has no value");
	case V_CONST:
	case V_SLOT:
		return v;
	case V_TARGET:
		return read_target(l, at, v);
	case V_MAP:
		return read_map(l, at, v);
	case V_ARRAY:
		FAIL(l, at, "an array of the tracer is no value: name an element");
	default:
		break;
	}
	type = type_of_value(l, at, v.type);
	dst = new_slot(l, type);
	i = emit(l, at, v.kind == V_LOCAL ? Y_OP_MOVE : v.kind == V_GLOBAL ? Y_OP_GLOBAL_GET : Y_OP_ARRAY_GET, type);
	i->dst = dst;
	i->a = v.kind == V_GLOBAL ? Y_NONE : v.slot;
	i->imm = v.kind == V_LOCAL ? 0 : v.imm;
	return in_slot(v.type, dst);
}

u32 to_slot(struct lower *l, const struct y_node *at, struct value v)
{
	v = rvalue(l, at, v);
	return v.kind == V_CONST ? emit_const(l, type_of_value(l, at, v.type), v.imm) : v.slot;
}

/* --- conversions --- */

struct value as_asked(struct lower *l, struct value v, const struct type *type)
{
	if (v.kind != V_SLOT || v.type != &y_long || !l->probe || l->probe->point != Y_CALL ||
	        (type != &y_string_type && type->kind != TYPE_FLOAT))
		return v;
	for (u32 k = l->f->ninsns; k--;) {
		struct y_insn *i = &l->f->insns[k];
		bool text = type == &y_string_type;
		u32 dst;

		if (i->op != Y_OP_ARGUMENT || i->dst != v.slot)
			continue;
		dst = new_slot(l, text ? Y_STR : Y_F64);
		i->type = text ? Y_STR : Y_F64;
		i->dst = dst;
		return in_slot(text ? &y_string_type : &y_double, dst);
	}
	return v;
}

static struct value to_bool(struct lower *l, const struct y_node *at, struct value v, const struct type *type)
{
	enum y_type from = type_of_value(l, at, v.type);
	u32 is;

	if (v.kind == V_CONST && !y_type_is_float(from))
		return constant(type, v.imm != 0);
	v.slot = to_slot(l, at, v);
	is = emit_binary(l, NULL, Y_OP_NE, from, v.slot, emit_const(l, from, 0));
	return in_slot(type, convert_slot(l, is, Y_I32, Y_U8));
}

struct value cast_to(struct lower *l, const struct y_node *at, struct value v, const struct type *type)
{
	enum y_type from, to;

	if (type->kind == TYPE_VOID)
		return (struct value){.kind = V_NOTHING, .type = &y_void};
	v = as_asked(l, rvalue(l, at, v), type);
	if ((v.type == &y_string_type) != (type == &y_string_type) ||
	        ((y_is_stack(v.type) || y_is_stack(type)) && v.type != type))
		FAIL(l, at, "%s cannot be cast to %s%s", y_type_text(l->s, v.type), y_type_text(l->s, type),
		        type == &y_string_type ? "; _str(p) reads a string" : "");
	from = type_of_value(l, at, v.type);
	to = type_of_value(l, at, type);
	if ((type->kind == TYPE_POINTER && v.type->kind == TYPE_FLOAT) ||
	        (type->kind == TYPE_FLOAT && v.type->kind == TYPE_POINTER))
		FAIL(l, at, "a floating-point number is no address");
	if (type->is_bool && !v.type->is_bool)
		return to_bool(l, at, v, type);
	if (v.kind == V_CONST)
		return constant(type, y_convert(to, from, v.imm));
	if (from == to) {
		v.type = type;
		return v;
	}
	return in_slot(type, convert_slot(l, v.slot, from, to));
}

static bool is_null(struct value v)
{
	return v.kind == V_CONST && is_integer(v.type) && !v.imm;
}

static bool pointers_agree(const struct type *a, const struct type *b)
{
	return a->to->kind == TYPE_VOID || b->to->kind == TYPE_VOID || same_type(a->to, b->to);
}

struct value convert_to(
        struct lower *l, const struct y_node *at, struct value v, const struct type *type, const char *what)
{
	bool fits;

	v = as_asked(l, rvalue(l, at, v), type);
	if (type == &y_string_type || y_is_stack(type) || v.type == &y_string_type || y_is_stack(v.type))
		fits = v.type == type;
	else if (type->kind == TYPE_POINTER)
		fits = v.type->kind == TYPE_POINTER ? pointers_agree(v.type, type) : is_null(v);
	else
		fits = is_arithmetic(type) &&
		       (is_arithmetic(v.type) || (type->is_bool && v.type->kind == TYPE_POINTER));
	if (!fits && type == &y_string_type && v.type->kind == TYPE_POINTER)
		FAIL(l, at, "%s is a _str, this is an address in the target: _str(p) reads it", what);
	if (!fits)
		FAIL(l, at, "%s has type %s, this has type %s%s", what, y_type_text(l->s, type),
		        y_type_text(l->s, v.type),
		        y_is_stack(type) || y_is_stack(v.type) ? "" : "; a cast would say that it is meant");
	return cast_to(l, at, v, type);
}

/* A value's type behind C's integer promotions. */
const struct type *promoted(struct value v)
{
	if (v.type->kind == TYPE_ENUM)
		return v.type->to->size < 4 ? &y_int : v.type->to;
	if (v.type->kind == TYPE_INT && v.type->size < 4)
		return &y_int;
	return v.type;
}

const struct type *common_type(const struct type *a, const struct type *b)
{
	if (a->kind == TYPE_FLOAT || b->kind == TYPE_FLOAT) {
		if (a->kind == TYPE_FLOAT && b->kind == TYPE_FLOAT)
			return a->size > b->size ? a : b;
		return a->kind == TYPE_FLOAT ? a : b;
	}
	if (a->size != b->size)
		return a->size > b->size ? a : b;
	return !a->is_signed ? a : b;
}

/* --- members and elements --- */

static void no_member(struct lower *l, const struct y_node *at, const struct type *type, const char *name)
{
	const struct type_member *members;
	struct y_near near = {.name = name};
	u32 n = type_members(type, &members), shown = 0;
	const char *list = "";

	if (type->is_declared || !n)
		FAIL(l, at, "%s is only declared in the target's debug information: its members are not known",
		        y_type_text(l->s, type));
	for (u32 i = 0; i < n; i++)
		if (members[i].name)
			y_near_offer(&near, members[i].name);
	for (u32 i = 0; i < n && shown < 8; i++)
		if (members[i].name)
			list = y_format(l->s, "%s%s%s", list, shown++ ? ", " : "", members[i].name);
	FAIL(l, at, "%s has no member '%s' (it has: %s%s)%s; ##ifdeffield would ask", y_type_text(l->s, type), name,
	        list, n > shown ? ", …" : "", y_near_text(l->s, &near));
}

struct value member_of(struct lower *l, const struct y_node *at, struct value v, const char *name)
{
	struct type_member m;

	if (at->kind == Y_N_MEMBER && v.kind == V_TARGET && v.type->kind == TYPE_VOID && at->a->kind == Y_N_NAME)
		no_value(l, at);
	if (v.kind != V_TARGET || (v.type->kind != TYPE_STRUCT && v.type->kind != TYPE_UNION))
		FAIL(l, at, "'%s' is asked of a %s, which has no members%s", name, y_type_text(l->s, v.type),
		        v.type->kind == TYPE_POINTER ? "; -> follows a pointer" : "");
	if (!type_member(v.type, name, &m))
		no_member(l, at, v.type, name);
	if (l->explain)
		fprintf(l->explain, "%s.%s: offset %lu, %s, from %s\n", y_type_text(l->s, v.type), name, m.offset,
		        y_type_text(l->s, m.type),
		        m.from       ? m.from
		        : v.type->of ? types_image(v.type->of)->path
		                     : "the kernel's BTF");
	v.type = m.type;
	v.imm += m.offset;
	v.bits = m.bits;
	v.shift = m.shift;
	v.word = m.word;
	return v;
}

/* array: a pointer's slot, or what lies in the target. */
struct value element_of(struct lower *l, const struct y_node *at, struct value array, struct value index)
{
	const struct type *element = array.type->to;
	u64 size = size_of_type(l, at, element);
	struct value ret = {.kind = V_TARGET, .type = element, .module = array.module};
	u32 offset, base;

	index = rvalue(l, at, index);
	if (!is_integer(index.type))
		FAIL(l, at, "an index of type %s", y_type_text(l->s, index.type));
	index = cast_to(l, at, index, index.type->is_signed ? &y_long : &y_ulong);
	if (index.kind == V_CONST) {
		ret.slot = array.slot;
		ret.imm = array.imm + index.imm * size;
		if (array.kind == V_CONST)
			ret = (struct value){.kind = V_TARGET, .type = element, .slot = emit_const(l, Y_U64, ret.imm)};
		return ret;
	}
	base = array.kind == V_TARGET ? address_slot(l, at, array) : to_slot(l, at, array);
	offset = emit_binary(l, NULL, Y_OP_MUL, Y_U64, index.slot, emit_const(l, Y_U64, size));
	ret.slot = emit_binary(l, NULL, Y_OP_ADD, Y_U64, base, offset);
	return ret;
}

/* --- writing --- */

static void store_map(struct lower *l, const struct y_node *at, struct value to, struct value v)
{
	const struct y_map *m = &l->p->maps[to.imm];
	struct y_insn *i;
	u32 slot;

	if (m->is_agg)
		FAIL(l, at, "an aggregate takes values by <<<: %s <<< x", m->name);
	if (to.nkeys < m->nkeys)
		FAIL(l, at, "a whole map cannot be assigned to");
	v = convert_to(l, at, v, to.type, "an element of the map");
	if (m->value != Y_STR && m->value != Y_F64)
		v = cast_to(l, at, v, m->value == Y_I64 ? &y_long : &y_ulong);
	else if (m->value == Y_F64)
		v = cast_to(l, at, v, &y_double);
	slot = to_slot(l, at, v);
	i = emit(l, at, Y_OP_MAP_SET, m->value);
	i->a = slot;
	i->imm = to.imm;
	i->args = add_args(l, to.keys, to.nkeys);
	i->nargs = to.nkeys;
}

void store(struct lower *l, const struct y_node *at, struct value to, struct value v)
{
	struct y_insn *i;
	u32 slot;

	switch (to.kind) {
	case V_TARGET:
		FAIL(l, at, "this lies in the target, and Y only reads it");
	case V_MAP:
		store_map(l, at, to, v);
		return;
	case V_LOCAL:
	case V_GLOBAL:
	case V_ELEMENT:
		break;
	default:
		FAIL(l, at, "nothing can be assigned to this");
	}
	slot = to_slot(l, at, convert_to(l, at, v, to.type, "the variable"));
	if (to.kind == V_LOCAL) {
		emit_move(l, to.slot, slot);
		return;
	}
	i = emit(l, at, to.kind == V_GLOBAL ? Y_OP_GLOBAL_SET : Y_OP_ARRAY_SET, type_of_value(l, at, to.type));
	i->a = to.kind == V_GLOBAL ? slot : to.slot;
	i->b = to.kind == V_GLOBAL ? Y_NONE : slot;
	i->imm = to.imm;
}
