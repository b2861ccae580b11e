/* SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

void declare_variable(struct lower *l, const char *name, const struct type *type, u32 slot)
{
	struct variable *v = y_new(l->s, sizeof(*v));

	*v = (struct variable){.next = l->variables, .name = name, .type = type, .slot = slot};
	l->variables = v;
}

static void declare(struct lower *l, const struct y_node *n)
{
	enum y_type type = type_of_value(l, n, n->type);
	struct value v;
	u32 slot;

	if (y_is_stack(n->type))
		FAIL(l, n, "a stack is no variable: it is a key, or printed");
	if (n->value) {
		l->f->arrays = y_grow(l->s, l->f->arrays, l->f->narrays, sizeof(*l->f->arrays));
		l->f->arrays[l->f->narrays] = (struct y_array){type, (u32)n->value};
		declare_variable(l, n->name, n->type, l->f->narrays++);
		l->variables->array = true;
		return;
	}
	slot = new_slot(l, type);
	if (n->a) {
		v = convert_to(l, n->a, lower_expression(l, n->a), n->type, y_format(l->s, "the variable %s", n->name));
		emit_move(l, slot, to_slot(l, n->a, v));
	} else if (type == Y_STR) {
		struct y_insn *i = emit(l, NULL, Y_OP_LITERAL, Y_STR);

		i->dst = slot;
		i->imm = add_literal(l, "", 0);
	} else {
		emit(l, NULL, Y_OP_CONST, type)->dst = slot; /* zero: nothing is left to chance */
	}
	declare_variable(l, n->name, n->type, slot);
}

static void block(struct lower *l, const struct y_node *n)
{
	struct variable *outer = l->variables;

	for (u32 i = 0; i < n->n; i++)
		lower_statement(l, n->list[i]);
	if (!n->value)
		l->variables = outer;
}

/* --- loops --- */

struct around { /* a loop or switch */
	u32 break_to, continue_to;
};

static struct around enter(struct lower *l, u32 break_to, u32 continue_to)
{
	struct around outer = {l->break_to, l->continue_to};

	l->break_to = break_to;
	l->continue_to = continue_to;
	return outer;
}

static void leave(struct lower *l, struct around outer)
{
	l->break_to = outer.break_to;
	l->continue_to = outer.continue_to;
}

static void loop(struct lower *l, const struct y_node *n, const struct y_node *condition, const struct y_node *step,
        const struct y_node *body, bool body_first)
{
	u32 head = new_block(l), inside = new_block(l), next = new_block(l), end = new_block(l);
	struct around outer;

	if (body_first)
		emit_jump(l, inside);
	place_block(l, head);
	if (condition)
		lower_condition(l, condition, inside, end);
	place_block(l, inside);
	emit(l, n, Y_OP_LOOP, Y_VOID);
	outer = enter(l, end, next);
	lower_statement(l, body);
	leave(l, outer);
	place_block(l, next);
	if (step)
		lower_expression(l, step);
	emit_jump(l, head);
	place_block(l, end);
}

static void lower_for(struct lower *l, const struct y_node *n)
{
	struct variable *outer = l->variables;

	if (n->a && n->a->kind == Y_N_BLOCK)
		block(l, n->a);
	else if (n->a)
		lower_expression(l, n->a);
	loop(l, n, n->b, n->c, n->d, false);
	l->variables = outer;
}

static void lower_if(struct lower *l, const struct y_node *n)
{
	u32 yes = new_block(l), no = new_block(l), end = n->c ? new_block(l) : no;

	lower_condition(l, n->a, yes, no);
	place_block(l, yes);
	lower_statement(l, n->b);
	if (n->c) {
		emit_jump(l, end);
		place_block(l, no);
		lower_statement(l, n->c);
	}
	place_block(l, end);
}

/* --- switch --- */

static void lower_switch(struct lower *l, const struct y_node *n)
{
	struct value v = lower_rvalue(l, n->a);
	struct label *labels = l->labels;
	const struct type *type = l->switch_type;
	u32 dispatch = new_block(l), end = new_block(l), slot, other = end;
	struct around outer;

	if (!is_integer(v.type))
		FAIL(l, n, "a switch of %s, which is no integer", y_type_text(l->s, v.type));
	l->switch_type = promoted(v);
	slot = to_slot(l, n, cast_to(l, n, v, l->switch_type));
	l->labels = NULL;
	emit_jump(l, dispatch);
	outer = enter(l, end, l->continue_to);
	lower_statement(l, n->b);
	leave(l, outer);
	emit_jump(l, end);
	place_block(l, dispatch);
	for (struct label *c = l->labels; c; c = c->next) {
		enum y_type t = type_of_value(l, n, l->switch_type);
		u32 equal, next;

		if (c->other) {
			other = c->block;
			continue;
		}
		equal = emit_binary(l, NULL, Y_OP_EQ, t, slot, emit_const(l, t, c->value));
		next = new_block(l);
		emit_branch(l, equal, c->block, next);
		place_block(l, next);
	}
	emit_jump(l, other);
	place_block(l, end);
	l->labels = labels;
	l->switch_type = type;
}

static void lower_case(struct lower *l, const struct y_node *n)
{
	struct label *c = y_new(l->s, sizeof(*c));
	bool other = n->kind == Y_N_DEFAULT;
	u64 value = 0;

	if (!l->switch_type)
		FAIL(l, n, "%s outside of a switch", other ? "default" : "case");
	if (!other)
		value = y_wrap(type_of_value(l, n, l->switch_type), (u64)lower_constant(l, n->a, "a case"));
	for (struct label *o = l->labels; o; o = o->next)
		if (o->other == other && o->value == value)
			FAIL(l, n, other ? "a second default" : "this case is there already");
	*c = (struct label){l->labels, value, other, new_block(l)};
	l->labels = c;
	place_block(l, c->block);
	lower_statement(l, n->b);
}

/* --- maps --- */

static u32 each_variable(
        struct lower *l, const struct y_node *n, const char *name, const struct type *type, enum y_type kept)
{
	u32 slot = new_slot(l, kept);

	declare_variable(l, name, type, slot);
	return slot;
}

/* Keys and values as the program sees them: 8 bytes wide in the map. */
static const struct type *widened(const struct type *type)
{
	return is_integer(type) && type->size < 8 ? (type->is_signed ? &y_long : &y_ulong) : type;
}

static void lower_foreach(struct lower *l, const struct y_node *n)
{
	int map = find_map(l, n->name);
	u32 head = new_block(l), inside = new_block(l), end = new_block(l), top = Y_NONE, keys[Y_KEYS_MOST],
	    value = Y_NONE;
	const struct y_tree_map *t = l->tree->maps;
	struct variable *variables = l->variables;
	struct around outer;
	struct y_insn *i;

	if (map < 0)
		FAIL(l, n->a, "%s is no map or aggregate of the program", n->name);
	for (int k = 0; k < map; k++)
		t = t->next;
	if (n->n != t->nkeys)
		FAIL(l, n, "%s has %u key%s, here are %u names", n->name, t->nkeys, t->nkeys == 1 ? "" : "s", n->n);
	if (n->c)
		top = to_slot(l, n->c, convert_to(l, n->c, lower_expression(l, n->c), &y_long, "_top"));
	i = emit(l, n, Y_OP_EACH_BEGIN, Y_VOID);
	i->a = l->f->neach++;
	i->b = top;
	i->imm = (u64)map;
	for (u32 k = 0; k < t->nkeys; k++)
		keys[k] = each_variable(l, n, n->list[k]->name, widened(t->keys[k]), l->p->maps[map].keys[k]);
	if (n->b)
		value = each_variable(l, n, n->b->name, widened(t->value), l->p->maps[map].value);
	top = l->f->neach - 1;
	place_block(l, head);
	i = emit(l, n, Y_OP_EACH_NEXT, l->p->maps[map].value);
	i->a = top;
	i->dst = value;
	i->b = inside;
	i->c = end;
	i->imm = (u64)map;
	i->args = add_args(l, keys, t->nkeys);
	i->nargs = t->nkeys;
	place_block(l, inside);
	emit(l, n, Y_OP_LOOP, Y_VOID);
	outer = enter(l, end, head);
	lower_statement(l, n->d);
	leave(l, outer);
	emit_jump(l, head);
	place_block(l, end);
	l->variables = variables;
}

static void lower_delete(struct lower *l, const struct y_node *n)
{
	struct value v;
	struct y_insn *i;

	if (n->a->kind != Y_N_INDEX)
		FAIL(l, n->a, "_delete needs an element; _clear(m) empties a map");
	v = lower_map_element(l, n->a);
	i = emit(l, n, Y_OP_MAP_DELETE, Y_VOID);
	i->imm = v.imm;
	i->args = add_args(l, v.keys, v.nkeys);
	i->nargs = v.nkeys;
}

static void lower_agg_add(struct lower *l, const struct y_node *n)
{
	struct value v = n->a->kind == Y_N_INDEX ? lower_map_element(l, n->a) : lower_expression(l, n->a), x;
	struct y_insn *i;
	u32 slot;

	if (v.kind != V_MAP || !l->p->maps[v.imm].is_agg)
		FAIL(l, n->a, "<<< needs an aggregate on its left");
	if (v.nkeys != l->p->maps[v.imm].nkeys)
		FAIL(l, n->a, "<<< needs one element: the aggregate has %u keys", l->p->maps[v.imm].nkeys);
	x = convert_to(l, n->b, lower_expression(l, n->b), &y_long, "what <<< adds");
	slot = to_slot(l, n->b, x);
	i = emit(l, n, Y_OP_AGG_ADD, Y_I64);
	i->a = slot;
	i->imm = v.imm;
	i->args = add_args(l, v.keys, v.nkeys);
	i->nargs = v.nkeys;
}

/* --- the rest --- */

static void lower_try(struct lower *l, const struct y_node *n)
{
	u32 failed = new_block(l), end = new_block(l), fail = l->fail;

	l->fail = failed;
	lower_statement(l, n->a);
	l->fail = fail;
	emit_jump(l, end);
	place_block(l, failed);
	l->catches++;
	lower_statement(l, n->b);
	l->catches--;
	place_block(l, end);
}

static void lower_return(struct lower *l, const struct y_node *n)
{
	struct y_insn *i;
	u32 slot = Y_NONE;

	if (n->a && l->returns->kind == TYPE_VOID)
		FAIL(l, n->a, "nothing is returned here: %s returns void", l->f->name);
	if (!n->a && l->returns->kind != TYPE_VOID)
		FAIL(l, n, "a value is missing: %s returns %s", l->f->name, y_type_text(l->s, l->returns));
	if (n->a)
		slot = to_slot(
		        l, n->a, convert_to(l, n->a, lower_expression(l, n->a), l->returns, "the function's result"));
	i = emit(l, n, Y_OP_RETURN, l->f->returns);
	i->a = slot;
}

static void jump_out(struct lower *l, const struct y_node *n, u32 to, const char *what)
{
	if (to == Y_NONE)
		FAIL(l, n, "%s outside of a loop", what);
	emit_jump(l, to);
}

void lower_statement(struct lower *l, const struct y_node *n)
{
	switch (n->kind) {
	case Y_N_BLOCK:
		block(l, n);
		break;
	case Y_N_DECLARE:
		declare(l, n);
		break;
	case Y_N_EXPRESSION:
		lower_expression(l, n->a);
		break;
	case Y_N_IF:
		lower_if(l, n);
		break;
	case Y_N_WHILE:
		loop(l, n, n->a, NULL, n->b, false);
		break;
	case Y_N_DO:
		loop(l, n, n->b, NULL, n->a, true);
		break;
	case Y_N_FOR:
		lower_for(l, n);
		break;
	case Y_N_SWITCH:
		lower_switch(l, n);
		break;
	case Y_N_CASE:
	case Y_N_DEFAULT:
		lower_case(l, n);
		break;
	case Y_N_BREAK:
		jump_out(l, n, l->break_to, "break");
		break;
	case Y_N_CONTINUE:
		jump_out(l, n, l->continue_to, "continue");
		break;
	case Y_N_RETURN:
		lower_return(l, n);
		break;
	case Y_N_FOREACH:
		if (n->name)
			lower_foreach(l, n);
		else
			lower_foreach_thread(l, n);
		break;
	case Y_N_TRY:
		lower_try(l, n);
		break;
	case Y_N_DELETE:
		lower_delete(l, n);
		break;
	case Y_N_AGG_ADD:
		lower_agg_add(l, n);
		break;
	default:
		break;
	}
}
