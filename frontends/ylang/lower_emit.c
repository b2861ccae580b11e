/* SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

#include <string.h>

#define SLOTS_MOST (1u << 20)

u32 new_slot(struct lower *l, enum y_type type)
{
	if (l->f->nslots == SLOTS_MOST)
		y_error(l->s, (struct y_pos){0}, NULL, "function %s needs too many temporary values", l->f->name);
	l->f->slots = y_grow(l->s, l->f->slots, l->f->nslots, 1);
	l->f->slots[l->f->nslots] = (u8)type;
	return l->f->nslots++;
}

u32 new_block(struct lower *l)
{
	l->f->blocks = y_grow(l->s, l->f->blocks, l->f->nblocks, sizeof(*l->f->blocks));
	l->f->blocks[l->f->nblocks] = (struct y_block){0};
	return l->f->nblocks++;
}

void place_block(struct lower *l, u32 block)
{
	if (l->block != Y_NONE)
		emit_jump(l, block);
	l->f->blocks[block].start = l->f->ninsns;
	l->block = block;
}

u32 add_place(struct lower *l, const struct y_node *at)
{
	struct y_place place = {l->s->files[at->pos.file].name, at->pos.line, at->pos.column};
	struct y_place *last = &l->p->places[l->p->nplaces - 1];

	if (last->file == place.file && last->line == place.line && last->column == place.column)
		return l->p->nplaces - 1;
	l->p->places = y_grow(l->s, l->p->places, l->p->nplaces, sizeof(*l->p->places));
	l->p->places[l->p->nplaces] = place;
	return l->p->nplaces++;
}

struct y_insn *emit(struct lower *l, const struct y_node *at, enum y_op op, enum y_type type)
{
	struct y_insn *i;

	if (l->block == Y_NONE)
		place_block(l, new_block(l));
	l->f->insns = y_grow(l->s, l->f->insns, l->f->ninsns, sizeof(*l->f->insns));
	i = &l->f->insns[l->f->ninsns++];
	*i = (struct y_insn){
	        .op = op, .type = type, .dst = Y_NONE, .a = Y_NONE, .b = Y_NONE, .c = Y_NONE, .fail = Y_PROPAGATE};
	if (y_op_can_fail(op))
		i->fail = l->fail;
	if (at)
		i->place = add_place(l, at);
	l->f->blocks[l->block].n++;
	if (y_op_ends_block(op))
		l->block = Y_NONE;
	return i;
}

u32 emit_const(struct lower *l, enum y_type type, u64 value)
{
	u32 dst = new_slot(l, type);
	struct y_insn *i = emit(l, NULL, Y_OP_CONST, type);

	i->dst = dst;
	i->imm = value;
	return dst;
}

u32 emit_binary(struct lower *l, const struct y_node *at, enum y_op op, enum y_type type, u32 a, u32 b)
{
	bool compares = op == Y_OP_EQ || op == Y_OP_NE || op == Y_OP_LT || op == Y_OP_LE;
	u32 dst = new_slot(l, compares ? Y_I32 : type);
	struct y_insn *i = emit(l, at, op, type);

	i->dst = dst;
	i->a = a;
	i->b = b;
	return dst;
}

void emit_jump(struct lower *l, u32 block)
{
	if (l->block != Y_NONE)
		emit(l, NULL, Y_OP_JUMP, Y_VOID)->b = block;
}

void emit_branch(struct lower *l, u32 slot, u32 yes, u32 no)
{
	struct y_insn *i = emit(l, NULL, Y_OP_BRANCH, Y_VOID);

	i->a = slot;
	i->b = yes;
	i->c = no;
}

void emit_move(struct lower *l, u32 dst, u32 src)
{
	struct y_insn *i = emit(l, NULL, Y_OP_MOVE, l->f->slots[dst]);

	i->dst = dst;
	i->a = src;
}

u32 add_args(struct lower *l, const u32 *slots, u32 n)
{
	u32 start = l->f->nargs;

	for (u32 i = 0; i < n; i++) {
		l->f->args = y_grow(l->s, l->f->args, l->f->nargs, sizeof(*l->f->args));
		l->f->args[l->f->nargs++] = slots[i];
	}
	return start;
}

u32 add_literal(struct lower *l, const char *bytes, u32 len)
{
	for (u32 i = 0; i < l->p->nliterals; i++)
		if (l->p->literals[i].len == len && !memcmp(l->p->literals[i].bytes, bytes, len))
			return i;
	l->p->literals = y_grow(l->s, l->p->literals, l->p->nliterals, sizeof(*l->p->literals));
	l->p->literals[l->p->nliterals] = (struct y_literal){bytes, len};
	return l->p->nliterals++;
}

u32 add_module(struct lower *l, u32 module)
{
	const struct y_target_module *m = &l->target->modules[module];
	struct y_module *own;

	for (u32 i = 0; i < l->p->nmodules; i++)
		if (!strcmp(l->p->modules[i].path, m->path))
			return i;
	l->p->modules = y_grow(l->s, l->p->modules, l->p->nmodules, sizeof(*l->p->modules));
	own = &l->p->modules[l->p->nmodules];
	*own = (struct y_module){.path = y_keep(l->s, m->path, strlen(m->path)),
	        .build_id_len = m->image->build_id_len,
	        .bias = m->bias};
	for (u32 i = 0; i < m->image->nsegments; i++)
		if (!m->image->segments[i].offset)
			own->first = m->image->segments[i].vaddr;
	memcpy(own->build_id, m->image->build_id, m->image->build_id_len);
	return l->p->nmodules++;
}
