/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of structures, unions and enumerations, and typedefs: what the target's debug information does not say. Laid
 * out as the System V ABI for x86-64 says (3.1.2, "Aggregates and Unions", "Bit-Fields"), as gcc does.
 */
#include <string.h>

#include "parse.h"

#define BODY_SIZE_MOST (1ul << 30)
#define FROM           "the program"

struct y_own_type {
	struct type type; /* first: found again from it */
	enum type_space space;
	struct type_member *members;
	u32 n;
	u64 align;
	const char *name;
	const struct type *is; /* of a typedef: what it stands for; else type */
	struct y_own_type *next;
};

/* --- types of the program --- */

static u32 members_of(const struct type *type, const struct type_member **ret)
{
	const struct y_own_type *own = (const struct y_own_type *)type;

	*ret = own->members;
	return own->n;
}

static struct y_own_type *find(const struct y_parser *p, enum type_space space, const char *name)
{
	for (struct y_own_type *own = p->types; own; own = own->next)
		if (own->space == space && *name && !strcmp(own->name, name))
			return own;
	return NULL;
}

const struct type *y_own_type(const struct y_parser *p, enum type_space space, const char *name)
{
	const struct y_own_type *own = find(p, space, name);

	return own ? own->is : NULL;
}

static struct y_own_type *add(struct y_parser *p, enum type_space space, const char *name)
{
	struct y_own_type *own = y_new(p->s, sizeof(*own));

	*own = (struct y_own_type){.space = space, .name = name, .is = &own->type, .align = 1, .next = p->types};
	own->type = (struct type){.kind = space == TYPES_UNION ? TYPE_UNION : TYPE_STRUCT,
	        .name = name,
	        .is_declared = true,
	        .to = &y_void,
	        .members = members_of};
	p->types = own;
	return own;
}

const struct type *y_opaque_type(struct y_parser *p, enum type_space space, const char *name)
{
	return &add(p, space, name)->type;
}

/* --- constants --- */

static s64 fold(struct y_parser *p, const struct y_node *n)
{
	s64 a, b;

	if (n->kind == Y_N_NUMBER)
		return (s64)n->value;
	if (n->kind == Y_N_SIZEOF && n->type)
		return (s64)n->type->size;
	if (n->kind == Y_N_UNARY && strchr("+-~", *n->op) && !n->op[1]) {
		a = fold(p, n->a);
		return *n->op == '~' ? ~a : *n->op == '-' ? (s64) - (u64)a : a;
	}
	if (n->kind == Y_N_BINARY && strlen(n->op) <= 2) {
		a = fold(p, n->a);
		b = fold(p, n->b);
		if (!strcmp(n->op, "<<"))
			return (s64)((u64)a << (b & 63));
		if (!strcmp(n->op, ">>"))
			return a >> (b & 63);
		if (!n->op[1] && strchr("/", *n->op) && b && b != -1)
			return a / b;
		if (!n->op[1] && strchr("+-*|&", *n->op))
			return (s64)(*n->op == '+'   ? (u64)a + (u64)b
			             : *n->op == '-' ? (u64)a - (u64)b
			             : *n->op == '*' ? (u64)a * (u64)b
			             : *n->op == '|' ? (u64)a | (u64)b
			                             : (u64)a & (u64)b);
	}
	y_error(p->s, n->pos, n->macro,
	        "a constant is needed here: numbers, enumerators and sizeof of types, with + - * / "
	        "<< >> & | ~");
}

static s64 constant(struct y_parser *p)
{
	return fold(p, y_parse_conditional(p));
}

/* --- members --- */

static u64 align_within(const struct type *type, u32 depth)
{
	const struct type_member *members;
	u64 align = 1, own;
	u32 n;

	while (type->kind == TYPE_ARRAY)
		type = type->to;
	if (type->kind != TYPE_STRUCT && type->kind != TYPE_UNION)
		return type->size ? type->size : 1;
	if (type->members == members_of)
		return ((const struct y_own_type *)type)->align;
	n = depth < Y_NESTED_MOST ? type_members(type, &members) : 0; /* the target's: what is in it says it */
	for (u32 i = 0; i < n; i++) {
		own = align_within(members[i].type, depth + 1);
		align = own > align ? own : align;
	}
	return align;
}

static u64 align_of(const struct type *type)
{
	return align_within(type, 0);
}

static u64 round_up(u64 n, u64 to)
{
	return (n + to - 1) / to * to;
}

struct layout {
	struct y_own_type *own;
	u64 bits; /* where the next member may begin */
	bool packed;
};

static void place(struct y_parser *p, struct layout *l, struct type_member m, const struct y_token *at)
{
	struct y_own_type *own = l->own;
	u64 align = l->packed ? 1 : align_of(m.type), unit = 8 * align;
	u64 begin = own->space == TYPES_UNION ? 0 : l->bits, end;

	if (m.bits)
		begin = begin / unit != (begin + m.bits - 1) / unit ? round_up(begin, unit) : begin;
	else
		begin = round_up(begin, unit);
	end = begin + (m.bits ? m.bits : 8 * m.type->size);
	if (m.type->size > BODY_SIZE_MOST || end > 8 * BODY_SIZE_MOST)
		y_error(p->s, at->pos, at->macro, "a structure of more than %lu bytes", BODY_SIZE_MOST);
	m.offset = m.bits ? begin / unit * align : begin / 8;
	m.shift = m.bits ? (u32)(begin % unit) : 0;
	m.word = m.bits ? (u32)m.type->size : 0;
	m.from = FROM;
	own->members = y_grow(p->s, own->members, own->n, sizeof(*own->members));
	own->members[own->n++] = m;
	l->bits = end > l->bits ? end : l->bits;
	own->align = align > own->align ? align : own->align;
}

/* "[2][3]", from the last on. */
static const struct type *array_of(struct y_parser *p, const struct type *of)
{
	const struct y_token *at = p->t;
	struct type *array;
	s64 n = 0;

	if (!y_take(p, "["))
		return of;
	if (!y_is(p->t, "]"))
		n = constant(p);
	y_expect(p, "]", "behind an array's size");
	y_deeper(p);
	of = array_of(p, of);
	p->depth--;
	if (n < 0 || (of->size && (u64)n > BODY_SIZE_MOST / of->size))
		y_error(p->s, at->pos, at->macro, "an array of %ld elements", n);
	array = y_new(p->s, sizeof(*array));
	*array = (struct type){.kind = TYPE_ARRAY, .name = "", .size = (u64)n * of->size, .count = (u64)n, .to = of};
	return array;
}

static void skip_parentheses(struct y_parser *p)
{
	u32 depth = 0;

	do {
		depth += y_is(p->t, "(");
		depth -= y_is(p->t, ")");
		if (p->t->kind == Y_T_END)
			y_fail_here(p, "a ')' is missing");
		p->t = p->t->next;
	} while (depth);
}

/* What stands behind a base type: a name, pointers, arrays; "(*name)(…)" is an address. */
static const struct type *declared(struct y_parser *p, const struct type *base, const char **name)
{
	const struct type *type = y_parse_pointers(p, base);

	if (y_is(p->t, "(") && y_is(p->t->next, "*")) {
		p->t = p->t->next->next;
		*name = y_take_name(p, "a pointer to a function");
		y_expect(p, ")", "behind the name of a pointer to a function");
		if (!y_is(p->t, "("))
			y_fail_here(p, "pointers to arrays are not supported; `void *` holds any address");
		skip_parentheses(p);
		return y_pointer_to(p->s, &y_void);
	}
	*name = y_take_name(p, "a member");
	return array_of(p, type);
}

static void check_member(struct y_parser *p, const struct type *type, const struct y_token *at)
{
	if (type == &y_string_type || type->kind == TYPE_VOID || type->kind == TYPE_FUNCTION)
		y_error(p->s, at->pos, at->macro, "a member of type %s", y_type_text(p->s, type));
	if (type->is_declared)
		y_error(p->s, at->pos, at->macro, "nothing says what is in %s: a member may be a pointer to it",
		        y_type_text(p->s, type));
}

static void bit_field(struct y_parser *p, struct layout *l, struct type_member m, const struct y_token *at)
{
	s64 bits = constant(p);

	if ((m.type->kind != TYPE_INT && m.type->kind != TYPE_ENUM) || bits < 0 || (u64)bits > 8 * m.type->size ||
	        (!bits && m.name))
		y_error(p->s, at->pos, at->macro, "%ld bits of a %s", bits, y_type_text(p->s, m.type));
	if (l->packed)
		y_error(p->s, at->pos, at->macro, "bit-fields of packed structures are not supported");
	m.bits = (u32)bits;
	if (!bits)
		l->bits = round_up(l->bits, 8 * align_of(m.type));
	else if (m.name)
		place(p, l, m, at);
	else
		l->bits += m.bits;
}

static void member(struct y_parser *p, struct layout *l)
{
	const struct y_token *at = p->t;
	const struct type *base = y_parse_base(p);

	if (y_take(p, ";")) { /* members of a structure without a name are the outer one's */
		if (base->kind != TYPE_STRUCT && base->kind != TYPE_UNION)
			y_error(p->s, at->pos, at->macro, "the name of a member is missing");
		if (!*base->name)
			place(p, l, (struct type_member){.type = base}, at);
		return;
	}
	do {
		struct type_member m = {.type = base};

		at = p->t;
		if (!y_is(p->t, ":"))
			m.type = declared(p, base, &m.name);
		check_member(p, m.type, at);
		if (y_take(p, ":"))
			bit_field(p, l, m, at);
		else
			place(p, l, m, at);
	} while (y_take(p, ","));
	y_expect(p, ";", "behind a member");
}

/* --- bodies --- */

static bool take_packed(struct y_parser *p)
{
	static const char *const words[] = {"__attribute__", "(", "(", "packed", ")", ")"};

	if (!y_is(p->t, *words))
		return false;
	for (u32 i = 0; i < sizeof(words) / sizeof(*words); i++)
		y_expect(p, words[i], "of __attribute__((packed)), the only attribute that is known here");
	return true;
}

/* Is "__attribute__" behind the '}' of a body that begins here? What it says is needed for the first member. */
static bool ends_packed(const struct y_token *t)
{
	u32 depth = 0;

	do {
		depth += y_is(t, "{");
		depth -= y_is(t, "}");
		t = t->next;
	} while (depth && t->kind != Y_T_END);
	return y_is(t, "__attribute__");
}

static const struct type *enumeration(struct y_parser *p, const char *name)
{
	struct type *type = y_new(p->s, sizeof(*type));
	s64 value = 0;

	*type = (struct type){.kind = TYPE_ENUM, .name = name, .size = 4, .to = &y_uint};
	y_expect(p, "{", "of an enumeration");
	while (!y_is(p->t, "}")) {
		struct y_name *one;
		const char *own = y_take_name(p, "an enumerator");

		if (y_take(p, "="))
			value = constant(p);
		if (value < 0)
			type->to = &y_int;
		one = y_declare(p, own);
		one->is_constant = true;
		one->value = value++;
		if (!y_take(p, ","))
			break;
	}
	y_expect(p, "}", "behind the enumerators");
	add(p, TYPES_ENUM, name)->is = type;
	return type;
}

const struct type *y_parse_body(struct y_parser *p, enum type_space space, const char *name, const struct y_token *at)
{
	struct y_own_type *own = find(p, space, name);
	struct layout l = {.packed = ends_packed(p->t)};

	if (own && !own->is->is_declared)
		y_error(p->s, at->pos, at->macro, "%s has a body already", y_type_text(p->s, own->is));
	if (space == TYPES_ENUM)
		return enumeration(p, name);
	y_deeper(p);
	p->in_types++;
	l.own = own ? own : add(p, space, name);
	y_expect(p, "{", "of a structure");
	while (!y_is(p->t, "}")) {
		if (p->t->kind == Y_T_END)
			y_fail_here(p, "a '}' is missing: the structure of line %u does not end", at->pos.line);
		member(p, &l);
	}
	p->t = p->t->next;
	take_packed(p);
	l.own->type.size = round_up((l.bits + 7) / 8, l.own->align);
	l.own->type.is_declared = false;
	p->in_types--;
	p->depth--;
	return &l.own->type;
}

void y_parse_typedef(struct y_parser *p)
{
	const struct type *base;
	const char *name;

	p->in_types++;
	base = y_parse_base(p);
	do {
		const struct type *type = declared(p, base, &name);
		struct y_own_type *own;

		own = add(p, TYPES_PLAIN, name);
		own->is = type;
		if (type->kind != TYPE_INT && !*type->name && !type->alias)
			((struct type *)type)->alias = name;
	} while (y_take(p, ","));
	y_expect(p, ";", "behind typedef");
	p->in_types--;
}
