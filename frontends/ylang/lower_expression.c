/* SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

#include <string.h>

#include "regex.h"

static bool is(const struct y_node *n, const char *op)
{
	return !strcmp(n->op, op);
}

struct value lower_rvalue(struct lower *l, const struct y_node *n)
{
	return rvalue(l, n, lower_expression(l, n));
}

/* What an expression would be, without code for it. */
const struct type *type_of_expression(struct lower *l, const struct y_node *n)
{
	struct y_function saved = *l->f;
	struct lower before = *l;
	u32 literals = l->p->nliterals, places = l->p->nplaces, regexes = l->p->nregexes, formats = l->p->nformats,
	    modules = l->p->nmodules, n_blocks = 0;
	struct value v;

	/* the block that is open counts its instructions */
	if (l->block != Y_NONE)
		n_blocks = l->f->blocks[l->block].n;
	l->explain = NULL;
	v = lower_expression(l, n);
	if (v.kind == V_TARGET && v.bits)
		v.type = v.bits < 32 ? &y_int : v.type;
	saved.slots = l->f->slots;
	saved.insns = l->f->insns;
	saved.blocks = l->f->blocks;
	saved.args = l->f->args;
	*l->f = saved;
	*l = before;
	if (l->block != Y_NONE)
		l->f->blocks[l->block].n = n_blocks;
	l->p->nliterals = literals;
	l->p->nplaces = places;
	l->p->nregexes = regexes;
	l->p->nformats = formats;
	l->p->nmodules = modules;
	return v.type;
}

s64 lower_constant(struct lower *l, const struct y_node *n, const char *what)
{
	struct value v = lower_expression(l, n);

	if (v.kind != V_CONST || !is_integer(v.type))
		FAIL(l, n, "%s is an integer constant", what);
	return (s64)v.imm;
}

/* --- operators --- */

static enum y_op op_of(const char *op, bool *swap, bool *compares)
{
	static const struct {
		const char *text;
		enum y_op op;
		bool swap, compares;
	} all[] = {{"+", Y_OP_ADD, 0, 0}, {"-", Y_OP_SUB, 0, 0}, {"*", Y_OP_MUL, 0, 0}, {"/", Y_OP_DIV, 0, 0},
	        {"%", Y_OP_MOD, 0, 0}, {"&", Y_OP_AND, 0, 0}, {"|", Y_OP_OR, 0, 0}, {"^", Y_OP_XOR, 0, 0},
	        {"<<", Y_OP_SHL, 0, 0}, {">>", Y_OP_SHR, 0, 0}, {"==", Y_OP_EQ, 0, 1}, {"!=", Y_OP_NE, 0, 1},
	        {"<", Y_OP_LT, 0, 1}, {">", Y_OP_LT, 1, 1}, {"<=", Y_OP_LE, 0, 1}, {">=", Y_OP_LE, 1, 1}};

	for (u32 i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i].text, op)) {
			*swap = all[i].swap;
			*compares = all[i].compares;
			return all[i].op;
		}
	return Y_OPS_N;
}

/* Both operands have the type already. */
static struct value compute(struct lower *l, const struct y_node *n, enum y_op op, const struct type *type,
        struct value a, struct value b, const struct type *result)
{
	enum y_type t = type_of_value(l, n, type);
	u32 x, y, dst;
	struct y_insn *i;
	u64 folded;

	if (a.kind == V_CONST && b.kind == V_CONST && y_compute(op, t, a.imm, b.imm, &folded) == Y_OK)
		return constant(result, folded);
	x = to_slot(l, n, a);
	y = to_slot(l, n, b);
	dst = new_slot(l, type_of_value(l, n, result));
	i = emit(l, op == Y_OP_DIV || op == Y_OP_MOD ? n : NULL, op, t);
	i->dst = dst;
	i->a = x;
	i->b = y;
	return in_slot(result, dst);
}

static void bad_operands(struct lower *l, const struct y_node *n, const char *op, struct value a, struct value b)
{
	FAIL(l, n, "'%s' of %s and %s", op, y_type_text(l->s, a.type), y_type_text(l->s, b.type));
}

/* p + n, p - n: elements; p - q. */
static struct value add_pointer(struct lower *l, const struct y_node *n, const char *op, struct value a, struct value b)
{
	struct value v;
	u64 size;

	if (!strcmp(op, "-") && b.type->kind == TYPE_POINTER) {
		if (a.type->kind != TYPE_POINTER || !same_type(a.type->to, b.type->to))
			bad_operands(l, n, op, a, b);
		size = size_of_type(l, n, a.type->to);
		v = compute(l, n, Y_OP_SUB, &y_long, cast_to(l, n, a, &y_long), cast_to(l, n, b, &y_long), &y_long);
		if (!size)
			FAIL(l, n, "a difference of pointers to what has no size");
		return size == 1 ? v : compute(l, n, Y_OP_DIV, &y_long, v, constant(&y_long, size), &y_long);
	}
	if (!strcmp(op, "+") && a.type->kind != TYPE_POINTER) {
		v = a;
		a = b;
		b = v;
	}
	if (!is_integer(b.type))
		bad_operands(l, n, op, a, b);
	size = size_of_type(l, n, a.type->to);
	b = cast_to(l, n, b, b.type->is_signed ? &y_long : &y_ulong);
	b = compute(l, n, Y_OP_MUL, &y_ulong, cast_to(l, n, b, &y_ulong), constant(&y_ulong, size), &y_ulong);
	v = compute(l, n, !strcmp(op, "+") ? Y_OP_ADD : Y_OP_SUB, &y_ulong, cast_to(l, n, a, &y_ulong), b, &y_ulong);
	v.type = a.type;
	return v;
}

static bool pointers_compare(struct value a, struct value b)
{
	if (a.type->kind != TYPE_POINTER || b.type->kind != TYPE_POINTER)
		return (a.kind == V_CONST && !a.imm && is_integer(a.type)) ||
		       (b.kind == V_CONST && !b.imm && is_integer(b.type));
	return a.type->to->kind == TYPE_VOID || b.type->to->kind == TYPE_VOID || same_type(a.type->to, b.type->to);
}

static struct value compare(
        struct lower *l, const struct y_node *n, const char *text, enum y_op op, struct value a, struct value b)
{
	const struct type *type;

	if (y_is_stack(a.type) || y_is_stack(b.type))
		FAIL(l, n, "a stack is no operand: it is a key, or printed");
	a = as_asked(l, a, b.type);
	b = as_asked(l, b, a.type);
	if (a.type == &y_string_type && b.type == &y_string_type)
		return compute(l, n, op, &y_string_type, in_slot(a.type, to_slot(l, n, a)),
		        in_slot(b.type, to_slot(l, n, b)), &y_int);
	if (a.type->kind == TYPE_POINTER || b.type->kind == TYPE_POINTER) {
		if (!pointers_compare(a, b))
			FAIL(l, n, "'%s' of %s and %s%s", text, y_type_text(l->s, a.type), y_type_text(l->s, b.type),
			        a.type == &y_string_type || b.type == &y_string_type
			                ? "; _str(p) reads a string"
			                : "; a cast would say that it is meant");
		return compute(l, n, op, &y_ulong, cast_to(l, n, a, &y_ulong), cast_to(l, n, b, &y_ulong), &y_int);
	}
	if (!is_arithmetic(a.type) || !is_arithmetic(b.type))
		bad_operands(l, n, text, a, b);
	type = common_type(promoted(a), promoted(b));
	return compute(l, n, op, type, cast_to(l, n, a, type), cast_to(l, n, b, type), &y_int);
}

static struct value binary(struct lower *l, const struct y_node *n, const char *text, struct value a, struct value b)
{
	bool swap = false, compares = false, shifts = !strcmp(text, "<<") || !strcmp(text, ">>");
	enum y_op op = op_of(text, &swap, &compares);
	const struct type *type;

	a = rvalue(l, n, a);
	b = rvalue(l, n, b);
	if (compares)
		return compare(l, n, text, op, swap ? b : a, swap ? a : b);
	if ((a.type->kind == TYPE_POINTER || b.type->kind == TYPE_POINTER) && (op == Y_OP_ADD || op == Y_OP_SUB))
		return add_pointer(l, n, text, a, b);
	if (a.type == &y_string_type && op == Y_OP_ADD)
		FAIL(l, n, "strings are joined by _cat(a, b)");
	if (!is_arithmetic(a.type) || !is_arithmetic(b.type))
		bad_operands(l, n, text, a, b);
	type = shifts ? promoted(a) : common_type(promoted(a), promoted(b));
	if (type->kind == TYPE_FLOAT && op > Y_OP_DIV)
		bad_operands(l, n, text, a, b);
	if (shifts && !is_integer(b.type))
		bad_operands(l, n, text, a, b);
	return compute(l, n, op, type, cast_to(l, n, a, type), cast_to(l, n, b, type), type);
}

/* --- conditions --- */

static u32 truth(struct lower *l, const struct y_node *n, struct value v)
{
	v = rvalue(l, n, v);
	if (v.type == &y_string_type)
		FAIL(l, n, "a string is no condition: compare it, or its _len()");
	if (!is_arithmetic(v.type) && v.type->kind != TYPE_POINTER)
		FAIL(l, n, "a %s is no condition", y_type_text(l->s, v.type));
	if (v.type->kind == TYPE_FLOAT)
		v = binary(l, n, "!=", v, constant(&y_int, 0));
	return to_slot(l, n, v);
}

void lower_condition(struct lower *l, const struct y_node *n, u32 yes, u32 no)
{
	if (n->kind == Y_N_BINARY && (is(n, "&&") || is(n, "||"))) {
		u32 second = new_block(l);

		lower_condition(l, n->a, is(n, "&&") ? second : yes, is(n, "&&") ? no : second);
		place_block(l, second);
		lower_condition(l, n->b, yes, no);
	} else if (n->kind == Y_N_UNARY && is(n, "!")) {
		lower_condition(l, n->a, no, yes);
	} else {
		struct value v = lower_rvalue(l, n);

		if (v.kind == V_CONST && is_integer(v.type))
			emit_jump(l, v.imm ? yes : no);
		else
			emit_branch(l, truth(l, n, v), yes, no);
	}
}

static void set_const(struct lower *l, u32 dst, u64 value)
{
	struct y_insn *i = emit(l, NULL, Y_OP_CONST, l->f->slots[dst]);

	i->dst = dst;
	i->imm = value;
}

/* 1 or 0 by a condition. */
static struct value logical(struct lower *l, const struct y_node *n)
{
	u32 dst = new_slot(l, Y_I32), yes = new_block(l), no = new_block(l), end = new_block(l);

	lower_condition(l, n, yes, no);
	place_block(l, yes);
	set_const(l, dst, 1);
	emit_jump(l, end);
	place_block(l, no);
	set_const(l, dst, 0);
	place_block(l, end);
	return in_slot(&y_int, dst);
}

static struct value decayed(struct lower *l, const struct type *type)
{
	if (type->kind == TYPE_ARRAY)
		return (struct value){.type = y_pointer_to(l->s, type->to)};
	if (type->kind == TYPE_FUNCTION)
		return (struct value){.type = y_pointer_to(l->s, type)};
	return (struct value){.type = type};
}

/* Of two that may both be the result. */
static const struct type *either(
        struct lower *l, const struct y_node *n, const struct y_node *x, const struct y_node *y)
{
	struct value a = decayed(l, type_of_expression(l, x)), b = decayed(l, type_of_expression(l, y));

	if (is_arithmetic(a.type) && is_arithmetic(b.type))
		return common_type(promoted(a), promoted(b));
	if (a.type->kind == TYPE_POINTER &&
	        (is_integer(b.type) || (b.type->kind == TYPE_POINTER && b.type->to->kind != TYPE_VOID &&
	                                       a.type->to->kind == TYPE_VOID)))
		return b.type->kind == TYPE_POINTER ? b.type : a.type;
	if (b.type->kind == TYPE_POINTER && is_integer(a.type))
		return b.type;
	if (l->probe && l->probe->point == Y_CALL && (a.type == &y_string_type || b.type == &y_string_type) &&
	        (a.type == &y_long || b.type == &y_long))
		return &y_string_type; /* an argument may be one, as_asked() */
	if (!same_type(a.type, b.type))
		FAIL(l, n, "'%s' between %s and %s", n->kind == Y_N_BINARY ? "??" : "?:", y_type_text(l->s, a.type),
		        y_type_text(l->s, b.type));
	return a.type;
}

static struct value conditional(struct lower *l, const struct y_node *n)
{
	u32 yes = new_block(l), no = new_block(l), end = new_block(l), dst;
	const struct type *type = either(l, n, n->b, n->c);

	if (type->kind == TYPE_VOID) {
		lower_condition(l, n->a, yes, no);
		place_block(l, yes);
		lower_expression(l, n->b);
		emit_jump(l, end);
		place_block(l, no);
		lower_expression(l, n->c);
		place_block(l, end);
		return (struct value){.kind = V_NOTHING, .type = &y_void};
	}
	dst = new_slot(l, type_of_value(l, n, type));
	lower_condition(l, n->a, yes, no);
	place_block(l, yes);
	emit_move(l, dst, to_slot(l, n, convert_to(l, n->b, lower_expression(l, n->b), type, "the other side of ?:")));
	emit_jump(l, end);
	place_block(l, no);
	emit_move(l, dst, to_slot(l, n, convert_to(l, n->c, lower_expression(l, n->c), type, "the other side of ?:")));
	place_block(l, end);
	return in_slot(type, dst);
}

/* a ?? b: b if a fails. */
static struct value or_else(struct lower *l, const struct y_node *n)
{
	const struct type *type = either(l, n, n->a, n->b);
	u32 failed = new_block(l), end = new_block(l), dst = new_slot(l, type_of_value(l, n, type)), fail = l->fail;

	l->fail = failed;
	emit_move(
	        l, dst, to_slot(l, n->a, convert_to(l, n->a, lower_expression(l, n->a), type, "the other side of ??")));
	l->fail = fail;
	emit_jump(l, end);
	place_block(l, failed);
	emit_move(
	        l, dst, to_slot(l, n->b, convert_to(l, n->b, lower_expression(l, n->b), type, "the other side of ??")));
	place_block(l, end);
	return in_slot(type, dst);
}

/* --- maps --- */

int find_map(const struct lower *l, const char *name)
{
	for (u32 i = 0; i < l->p->nmaps; i++)
		if (!strcmp(l->p->maps[i].name, name))
			return (int)i;
	return -1;
}

static const struct y_tree_map *tree_map(const struct lower *l, u32 map)
{
	const struct y_tree_map *m = l->tree->maps;

	while (map--)
		m = m->next;
	return m;
}

static void lower_keys(struct lower *l, const struct y_node *at, u32 map, struct y_node *const *list, u32 n, u32 *slots)
{
	const struct y_map *m = &l->p->maps[map];
	const struct y_tree_map *t = tree_map(l, map);

	if (n != m->nkeys)
		FAIL(l, at, "%s has %u key%s, here are %u", m->name, m->nkeys, m->nkeys == 1 ? "" : "s", n);
	for (u32 i = 0; i < n; i++) {
		struct value v = convert_to(l, list[i], lower_expression(l, list[i]), t->keys[i], "the key");

		if (m->keys[i] == Y_I64 || m->keys[i] == Y_U64)
			v = cast_to(l, list[i], v, m->keys[i] == Y_I64 ? &y_long : &y_ulong);
		slots[i] = to_slot(l, list[i], v);
	}
}

struct value lower_map_element(struct lower *l, const struct y_node *n)
{
	int map = n->a->kind == Y_N_NAME && !n->a->module ? find_map(l, n->a->name) : -1;
	struct value v = {.kind = V_MAP, .imm = (u64)map};

	if (map < 0)
		FAIL(l, n, "this is no element of a map or aggregate");
	v.type = tree_map(l, (u32)map)->value;
	lower_keys(l, n, (u32)map, n->list, n->n, v.keys);
	v.nkeys = n->n;
	return v;
}

/* k _in m; (k, k2) _in m. */
static struct value in_map(struct lower *l, const struct y_node *n)
{
	struct y_node *keys[Y_KEYS_MOST], *k = n->a;
	u32 count = 0, slots[Y_KEYS_MOST], dst;
	int map = n->b->kind == Y_N_NAME ? find_map(l, n->b->name) : -1;
	struct y_insn *i;

	if (map < 0)
		FAIL(l, n->b, "a map is missing behind _in");
	for (; k->kind == Y_N_BINARY && is(k, ",") && count < Y_KEYS_MOST - 1; k = k->a)
		keys[count++] = k->b;
	keys[count++] = k;
	for (u32 x = 0; x < count / 2; x++) {
		struct y_node *other = keys[x];

		keys[x] = keys[count - 1 - x];
		keys[count - 1 - x] = other;
	}
	lower_keys(l, n, (u32)map, keys, count, slots);
	dst = new_slot(l, Y_I32);
	i = emit(l, n, Y_OP_MAP_IN, Y_I32);
	i->dst = dst;
	i->imm = (u64)map;
	i->args = add_args(l, slots, count);
	i->nargs = count;
	return in_slot(&y_int, dst);
}

/* --- assignments --- */

static struct value map_add(struct lower *l, const struct y_node *n, struct value to, struct value by, bool minus)
{
	const struct y_map *m = &l->p->maps[to.imm];
	const struct type *wide = m->value == Y_I64 ? &y_long : &y_ulong;
	struct y_insn *i;
	u32 slot, dst;

	by = cast_to(l, n, rvalue(l, n, by), wide);
	if (minus)
		by = compute(l, n, Y_OP_SUB, wide, constant(wide, 0), by, wide);
	slot = to_slot(l, n, by);
	dst = new_slot(l, m->value);
	i = emit(l, n, Y_OP_MAP_ADD, m->value);
	i->dst = dst;
	i->a = slot;
	i->imm = to.imm;
	i->args = add_args(l, to.keys, to.nkeys);
	i->nargs = to.nkeys;
	return cast_to(l, n, in_slot(wide, dst), to.type);
}

static bool adds_atomically(const struct lower *l, struct value to, const char *op)
{
	if (strcmp(op, "+") && strcmp(op, "-"))
		return false;
	if (to.kind == V_MAP)
		return to.nkeys && !l->p->maps[to.imm].is_agg && is_integer(to.type);
	if (to.kind == V_ELEMENT && to.imm < Y_GLOBAL_ARRAY)
		return false;
	return (to.kind == V_GLOBAL || to.kind == V_ELEMENT) && is_integer(to.type) && !to.type->is_bool;
}

/* Of a variable or an element. */
static struct value global_add(struct lower *l, const struct y_node *n, struct value to, struct value by, bool minus)
{
	enum y_type type = type_of_value(l, n, to.type);
	struct y_insn *i;
	u32 slot, dst;

	by = cast_to(l, n, rvalue(l, n, by), to.type);
	if (minus)
		by = compute(l, n, Y_OP_SUB, to.type, constant(to.type, 0), by, to.type);
	slot = to_slot(l, n, by);
	dst = new_slot(l, type);
	i = emit(l, n, to.kind == V_GLOBAL ? Y_OP_GLOBAL_ADD : Y_OP_ARRAY_ADD, type);
	i->dst = dst;
	i->a = to.kind == V_GLOBAL ? slot : to.slot;
	i->b = to.kind == V_GLOBAL ? Y_NONE : slot;
	i->imm = to.imm;
	return in_slot(to.type, dst);
}

static struct value assign(struct lower *l, const struct y_node *n)
{
	struct value to = lower_expression(l, n->a), v;
	char op[4] = "";

	if (to.kind == V_TARGET)
		FAIL(l, n->a, "this lies in the target, and Y only reads it");
	if (is(n, "=")) {
		v = lower_rvalue(l, n->b);
		store(l, n->b, to, v);
		return to;
	}
	memcpy(op, n->op, strlen(n->op) - 1);
	v = lower_rvalue(l, n->b);
	if (adds_atomically(l, to, op) && is_integer(v.type))
		return to.kind == V_MAP ? map_add(l, n, to, v, *op == '-') : global_add(l, n, to, v, *op == '-');
	v = binary(l, n, op, rvalue(l, n, to), v);
	store(l, n, to, to.type->kind == TYPE_POINTER ? v : cast_to(l, n, v, to.type));
	return to;
}

static struct value step(struct lower *l, const struct y_node *n)
{
	bool behind = *n->op == 'p', minus = n->op[1] == '-';
	struct value to = lower_expression(l, n->a), old, sum, one = constant(&y_int, 1);

	if (to.kind == V_TARGET)
		FAIL(l, n->a, "this lies in the target, and Y only reads it");
	if (adds_atomically(l, to, "+")) {
		sum = to.kind == V_MAP ? map_add(l, n, to, one, minus) : global_add(l, n, to, one, minus);
		return behind ? cast_to(l, n, binary(l, n, minus ? "+" : "-", sum, one), to.type) : sum;
	}
	old = rvalue(l, n, to);
	sum = binary(l, n, minus ? "-" : "+", old, one);
	store(l, n, to, to.type->kind == TYPE_POINTER ? sum : cast_to(l, n, sum, to.type));
	return behind ? old : cast_to(l, n, sum, to.type);
}

/* --- unary --- */

static struct value dereference(struct lower *l, const struct y_node *n, struct value v)
{
	if (n->kind == Y_N_ARROW && (v.type->kind == TYPE_STRUCT || v.type->kind == TYPE_UNION))
		FAIL(l, n, "'->' of %s, which is no pointer: '.' follows it", y_type_text(l->s, v.type));
	v = rvalue(l, n, v);
	if (v.type == &y_string_type)
		FAIL(l, n, "a _str is no pointer: s[i] is its byte i");
	if (v.type->kind != TYPE_POINTER)
		FAIL(l, n, "'%s' of %s, which is no pointer", n->kind == Y_N_UNARY ? "*" : "->",
		        y_type_text(l->s, v.type));
	if (v.type->to->kind == TYPE_VOID)
		FAIL(l, n, "what a void * leads to has no type: cast it first");
	return (struct value){.kind = V_TARGET, .type = v.type->to, .slot = to_slot(l, n, v)};
}

static struct value literal_address(struct lower *l, const struct y_node *n)
{
	struct value v = {.kind = V_TARGET, .type = &y_char, .slot = Y_NONE};

	if (!y_target_literal(l->target, n->bytes, n->len, &v.module, &v.imm))
		FAIL(l, n, "no read-only data of the target has this string");
	return in_slot(y_pointer_to(l->s, &y_char), address_slot(l, n, v));
}

static struct value address_of(struct lower *l, const struct y_node *n)
{
	struct value v;

	if (n->a->kind == Y_N_STRING)
		return literal_address(l, n->a);
	v = lower_expression(l, n->a);
	if (v.kind != V_TARGET)
		FAIL(l, n,
		        v.kind == V_SLOT || v.kind == V_CONST
		                ? "& of a value, which has no address"
		                : "& of what lies in the tracer: only the target has addresses");
	if (v.bits)
		FAIL(l, n, "a bit-field has no address");
	return in_slot(y_pointer_to(l->s, v.type), address_slot(l, n, v));
}

static struct value negate(struct lower *l, const struct y_node *n)
{
	struct value v = lower_rvalue(l, n->a);
	const struct type *type;
	struct y_insn *i;
	u32 slot, dst;
	u64 folded;
	enum y_op op = is(n, "~") ? Y_OP_NOT : Y_OP_NEG;

	if (!is_arithmetic(v.type) || (op == Y_OP_NOT && !is_integer(v.type)))
		FAIL(l, n, "'%s' of %s", n->op, y_type_text(l->s, v.type));
	type = promoted(v);
	v = cast_to(l, n, v, type);
	if (is(n, "+"))
		return v;
	if (v.kind == V_CONST && y_compute(op, type_of_value(l, n, type), v.imm, 0, &folded) == Y_OK)
		return constant(type, folded);
	slot = to_slot(l, n, v);
	dst = new_slot(l, type_of_value(l, n, type));
	i = emit(l, NULL, op, type_of_value(l, n, type));
	i->dst = dst;
	i->a = slot;
	return in_slot(type, dst);
}

static struct value unary(struct lower *l, const struct y_node *n)
{
	struct value v;

	if (*n->op == 'p' || is(n, "++") || is(n, "--"))
		return step(l, n);
	if (is(n, "&"))
		return address_of(l, n);
	if (is(n, "*")) {
		v = lower_expression(l, n->a);
		return v.type->kind == TYPE_FUNCTION ? v : dereference(l, n, v);
	}
	if (is(n, "!")) {
		v = type_of_expression(l, n->a) == &y_string_type ? lower_rvalue(l, n->a) : (struct value){0};
		return v.kind ? in_slot(&y_int, truth(l, n, v)) : logical(l, n);
	}
	return negate(l, n);
}

/* --- the rest --- */

static struct value index_of(struct lower *l, const struct y_node *n)
{
	struct value a, i;
	struct y_insn *insn;
	u32 slot, dst;

	if (n->a->kind == Y_N_NAME && !n->a->module && find_map(l, n->a->name) >= 0)
		return lower_map_element(l, n);
	if (n->n != 1)
		FAIL(l, n, "one index is needed: several are keys of a map");
	a = lower_expression(l, n->a);
	i = lower_rvalue(l, n->list[0]);
	if (a.kind == V_ARRAY) {
		i = convert_to(l, n->list[0], i, &y_long, "the index");
		return (struct value){.kind = V_ELEMENT, .type = a.type, .imm = a.imm, .slot = to_slot(l, n, i)};
	}
	if (a.kind == V_TARGET && a.type->kind == TYPE_ARRAY)
		return element_of(l, n, a, i);
	a = rvalue(l, n->a, a);
	if (a.type == &y_string_type) {
		u32 s = to_slot(l, n, a);

		slot = to_slot(l, n, convert_to(l, n->list[0], i, &y_long, "the index"));
		dst = new_slot(l, Y_I32);
		insn = emit(l, n, Y_OP_STR_AT, Y_I32);
		insn->dst = dst;
		insn->a = s;
		insn->b = slot;
		return in_slot(&y_int, dst);
	}
	if (a.type->kind != TYPE_POINTER)
		FAIL(l, n, "an index of %s, which is no array, pointer, string or map", y_type_text(l->s, a.type));
	return element_of(l, n, a, i);
}

static struct value match(struct lower *l, const struct y_node *n)
{
	struct value s = lower_rvalue(l, n->a);
	const char *end = n->bytes + n->len, *slash = end - 1, *problem;
	struct y_regex *r;
	struct y_insn *i;
	u32 slot, dst, at, captures;

	if (s.type != &y_string_type)
		FAIL(l, n, "%s needs a _str on its left, this is %s%s", n->op, y_type_text(l->s, s.type),
		        s.type->kind == TYPE_POINTER ? "; _str(p) reads it" : "");
	while (*slash != '/')
		slash--;
	if (end - slash > 2 || (end - slash == 2 && slash[1] != 'i'))
		FAIL(l, n, "a regex has no flags but i");
	r = y_regex_compile(l->p->memory, n->bytes + 3, (u32)(slash - n->bytes - 3), slash[1] == 'i', &problem, &at);
	if (!r)
		FAIL(l, n, "in the regex, at byte %u: %s", at + 1, problem ? problem : "out of memory");
	if (l->captures[0] == Y_NONE)
		for (u32 k = 0; k < Y_CAPTURES_MOST; k++)
			l->captures[k] = new_slot(l, Y_STR);
	l->p->regexes = y_grow(l->s, l->p->regexes, l->p->nregexes, sizeof(*l->p->regexes));
	l->p->regexes[l->p->nregexes] = r;
	slot = to_slot(l, n, s);
	dst = new_slot(l, Y_I32);
	captures = add_args(l, l->captures, r->captures);
	i = emit(l, n, Y_OP_MATCH, Y_I32);
	i->dst = dst;
	i->a = slot;
	i->imm = l->p->nregexes++;
	i->args = captures;
	i->nargs = r->captures;
	if (is(n, "~~"))
		return in_slot(&y_int, dst);
	return compare(l, n, "==", Y_OP_EQ, in_slot(&y_int, dst), constant(&y_int, 0));
}

/* The offset of a path of members; its type in *type. */
static u64 path_offset(struct lower *l, const struct y_node *n, const struct type **type)
{
	struct value v = {.kind = V_TARGET};
	u64 at = n->kind == Y_N_NAME ? 0 : path_offset(l, n->a, type);

	v.type = *type;
	if (n->kind == Y_N_INDEX) {
		if ((*type)->kind != TYPE_ARRAY)
			FAIL(l, n, "an index of what is no array");
		*type = (*type)->to;
		return at + (u64)lower_constant(l, n->list[0], "an index here") * size_of_type(l, n, *type);
	}
	v = member_of(l, n, v, n->name);
	if (v.bits)
		FAIL(l, n, "a bit-field has no offset in bytes");
	*type = v.type;
	return at + v.imm;
}

static struct value container_of(struct lower *l, const struct y_node *n)
{
	const struct type *type = n->type;
	u64 offset = path_offset(l, n->b, &type);
	struct value v = lower_rvalue(l, n->a);

	if (v.type->kind != TYPE_POINTER)
		FAIL(l, n->a, "_container_of needs a pointer");
	v = compute(l, n, Y_OP_SUB, &y_ulong, cast_to(l, n, v, &y_ulong), constant(&y_ulong, offset), &y_ulong);
	v.type = y_pointer_to(l->s, n->type);
	return v;
}

static struct value size_of(struct lower *l, const struct y_node *n)
{
	const struct type *type = n->type ? n->type : type_of_expression(l, n->a);

	return constant(&y_ulong, size_of_type(l, n, type));
}

static struct value string(struct lower *l, const struct y_node *n)
{
	u32 dst = new_slot(l, Y_STR);
	struct y_insn *i = emit(l, NULL, Y_OP_LITERAL, Y_STR);

	i->dst = dst;
	i->imm = add_literal(l, n->bytes, n->len);
	return in_slot(&y_string_type, dst);
}

static struct value real(const struct y_node *n)
{
	union {
		double f64;
		float f32;
		u64 word;
	} bits = {.word = 0};

	if (n->type == &y_float)
		bits.f32 = (float)n->real;
	else
		bits.f64 = n->real;
	return constant(n->type, bits.word);
}

static struct value lower_binary(struct lower *l, const struct y_node *n)
{
	struct value a, b;

	if (is(n, "&&") || is(n, "||"))
		return logical(l, n);
	if (is(n, "??"))
		return or_else(l, n);
	if (is(n, "_in"))
		return in_map(l, n);
	if (is(n, ",")) {
		lower_expression(l, n->a);
		return lower_rvalue(l, n->b);
	}
	a = lower_rvalue(l, n->a);
	b = lower_rvalue(l, n->b);
	return binary(l, n, n->op, a, b);
}

struct value lower_expression(struct lower *l, const struct y_node *n)
{
	struct value v;

	switch (n->kind) {
	case Y_N_NUMBER:
		return constant(n->type, y_wrap(type_of_value(l, n, n->type), n->value));
	case Y_N_REAL:
		return real(n);
	case Y_N_STRING:
		return string(l, n);
	case Y_N_NAME:
		return lower_name(l, n);
	case Y_N_DOLLAR:
		return lower_dollar(l, n);
	case Y_N_UNARY:
		return unary(l, n);
	case Y_N_BINARY:
		return lower_binary(l, n);
	case Y_N_ASSIGN:
		return assign(l, n);
	case Y_N_CONDITIONAL:
		return conditional(l, n);
	case Y_N_MATCH:
		return match(l, n);
	case Y_N_CALL:
		return lower_call(l, n);
	case Y_N_INDEX:
		return index_of(l, n);
	case Y_N_MEMBER:
		if (lower_package_name(l, n, &v))
			return v;
		v = lower_expression(l, n->a);
		if (v.type->kind == TYPE_POINTER)
			FAIL(l, n, "'.' of a pointer: -> follows it");
		return member_of(l, n, v, n->name);
	case Y_N_ARROW:
		return member_of(l, n, dereference(l, n, lower_expression(l, n->a)), n->name);
	case Y_N_CAST:
		if (n->a->kind == Y_N_UNARY && is(n->a, "&") && lower_exported(l, n->a->a, &v))
			return cast_to(l, n, in_slot(y_pointer_to(l->s, &y_void), address_slot(l, n, v)), n->type);
		return cast_to(l, n,
		        n->a->kind == Y_N_STRING && n->type->kind == TYPE_POINTER ? literal_address(l, n->a)
		                                                                  : lower_expression(l, n->a),
		        n->type);
	case Y_N_SIZEOF:
		return size_of(l, n);
	case Y_N_OFFSETOF: {
		const struct type *type = n->type;

		return constant(&y_ulong, path_offset(l, n->a, &type));
	}
	case Y_N_CONTAINER:
		return container_of(l, n);
	default:
		FAIL(l, n, "an expression is missing");
	}
}
