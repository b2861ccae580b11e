/* SPDX-License-Identifier: Apache-2.0 */
#include "d_flat.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_MOST 2000u

void d_refuse(const struct d_flat *f, u32 place, const char *what, const char *why)
{
	const struct y_place *at = &f->p->places[place];

	y_leave(f->s, error_hint(error_new(ERROR_UNSUPPORTED, "%s:%u:%u: d: %s: %s", at->file, at->line, at->column,
	                                 what, why),
	                      "yrt y runs it by itself"));
}

/* --- calls --- */

struct copy { /* of a function, to where it is called */
	const struct y_function *from;
	u32 number;                      /* its */
	u32 slots, arrays, args, blocks; /* first ones in the flat function */
	const struct y_insn *call;       /* in the caller's copy; NULL: the handler's own */
	u32 back;                        /* block behind the call */
	const struct copy *caller;
};

static u32 add_block(struct d_flat *f)
{
	if (f->nblocks >= BLOCKS_MOST)
		d_refuse(f, f->place, "the handler", "it is too long with its calls inlined");
	f->blocks = y_grow(f->s, f->blocks, f->nblocks, sizeof(*f->blocks));
	f->blocks[f->nblocks] = (struct d_block){};
	return f->nblocks++;
}

static void add(struct d_flat *f, u32 block, struct y_insn i)
{
	struct d_block *b = &f->blocks[block];

	b->insns = y_grow(f->s, b->insns, b->n, sizeof(i));
	b->insns[b->n++] = i;
}

static u32 moved(u32 slot, u32 by)
{
	return slot == Y_NONE ? Y_NONE : slot + by;
}

/* The instruction with the numbers of the flat function; what is no slot stays. */
static struct y_insn renumbered(const struct copy *c, const struct y_insn *from)
{
	struct y_insn i = *from;
	bool jumps = i.op == Y_OP_JUMP || i.op == Y_OP_BRANCH;

	i.dst = moved(i.dst, c->slots);
	if (i.op != Y_OP_ADDRESS && i.op != Y_OP_AGG_GET && i.op != Y_OP_PRINT_MAP)
		i.a = moved(i.a, c->slots);
	i.b = jumps ? i.b + c->blocks : moved(i.b, c->slots);
	if (jumps)
		i.c += c->blocks;
	i.args += c->args;
	if (i.op >= Y_OP_ARRAY_GET && i.op <= Y_OP_ARRAY_ADD && i.imm < Y_GLOBAL_ARRAY)
		i.imm += c->arrays;
	if (i.fail != Y_PROPAGATE)
		i.fail += c->blocks;
	else if (c->call)
		i.fail = c->call->fail;
	return i;
}

static void put_return(struct d_flat *f, const struct copy *c, u32 at, const struct y_insn *i)
{
	if (!c->call) {
		add(f, at, *i);
		return;
	}
	if (c->call->dst != Y_NONE && i->a != Y_NONE)
		add(f, at, (struct y_insn){.op = Y_OP_MOVE, .type = i->type, .dst = c->call->dst, .a = i->a});
	add(f, at, (struct y_insn){.op = Y_OP_JUMP, .b = c->back});
}

static u32 copy_function(struct d_flat *f, u32 number, const struct y_insn *call, u32 back, const struct copy *caller);

/* Goes on in the block behind it. */
static u32 put_call(struct d_flat *f, const struct copy *c, u32 at, const struct y_insn *i)
{
	const struct y_function *callee = &f->p->functions[i->imm];
	u32 back, first, parameters = f->nslots;

	for (const struct copy *k = c; k; k = k->caller)
		if (k->number == i->imm)
			d_refuse(f, i->place, callee->name, "functions that call themselves");
	back = add_block(f);
	first = copy_function(f, (u32)i->imm, i, back, c);
	for (u32 k = 0; k < i->nargs; k++)
		add(f, at,
		        (struct y_insn){.op = Y_OP_MOVE,
		                .type = callee->slots[k],
		                .dst = parameters + k,
		                .a = f->args[i->args + k]});
	add(f, at, (struct y_insn){.op = Y_OP_JUMP, .b = first});
	return back;
}

static bool can_fail(const struct y_insn *i)
{
	return i->op != D_OP_ZERO && i->op != Y_OP_LOOP && y_op_can_fail((enum y_op)i->op);
}

/* Its first block. */
static u32 copy_function(struct d_flat *f, u32 number, const struct y_insn *call, u32 back, const struct copy *caller)
{
	const struct y_function *from = &f->p->functions[number];
	struct copy c = {from, number, f->nslots, f->narrays, f->nargs, f->nblocks, call, back, caller};

	for (u32 i = 0; i < from->nslots; i++) {
		f->slots = y_grow(f->s, f->slots, f->nslots, 1);
		f->slots[f->nslots++] = from->slots[i];
	}
	for (u32 i = 0; i < from->nargs; i++) {
		f->args = y_grow(f->s, f->args, f->nargs, sizeof(*f->args));
		f->args[f->nargs++] = from->args[i] + c.slots;
	}
	for (u32 i = 0; i < from->nblocks; i++)
		add_block(f);
	for (u32 i = 0; i < from->narrays; i++) {
		f->arrays = y_grow(f->s, f->arrays, f->narrays, sizeof(*f->arrays));
		f->arrays[f->narrays] = from->arrays[i];
		add(f, c.blocks, (struct y_insn){.op = D_OP_ZERO, .dst = Y_NONE, .imm = f->narrays++});
	}
	for (u32 k = 0; k < from->nblocks; k++) {
		u32 at = c.blocks + k;

		for (u32 i = 0; i < from->blocks[k].n; i++) {
			struct y_insn insn = renumbered(&c, &from->insns[from->blocks[k].start + i]);

			if (insn.op <= Y_OP_MOVE || (insn.op >= Y_OP_ADD && insn.op <= Y_OP_LE && !can_fail(&insn)))
				if (!y_slot_matters(from, from->insns[from->blocks[k].start + i].dst))
					continue;
			if (insn.op == Y_OP_CALL)
				at = put_call(f, &c, at, &insn);
			else if (insn.op == Y_OP_RETURN)
				put_return(f, &c, at, &insn);
			else
				add(f, at, insn);
		}
	}
	return c.blocks;
}

/* --- loops --- */

struct edges { /* of a block, to others; a block has few */
	u32 *to;
	u32 n;
};

static void add_edge(struct d_flat *f, struct edges *e, u32 to)
{
	for (u32 i = 0; i < e->n; i++)
		if (e->to[i] == to)
			return;
	e->to = y_grow(f->s, e->to, e->n, sizeof(*e->to));
	e->to[e->n++] = to;
}

static struct edges *find_edges(struct d_flat *f)
{
	struct edges *e = y_new(f->s, f->nblocks * sizeof(*e));

	for (u32 k = 0; k < f->nblocks; k++)
		for (u32 i = 0; i < f->blocks[k].n; i++) {
			const struct y_insn *insn = &f->blocks[k].insns[i];

			if (can_fail(insn) && insn->fail != Y_PROPAGATE) {
				f->blocks[insn->fail].after_failure = true;
				add_edge(f, &e[k], insn->fail);
			}
			if (insn->op == Y_OP_JUMP || insn->op == Y_OP_BRANCH)
				add_edge(f, &e[k], insn->b);
			if (insn->op == Y_OP_BRANCH)
				add_edge(f, &e[k], insn->c);
		}
	return e;
}

struct walk {
	struct d_flat *f;
	struct edges *e;
	u8 *state; /* 1: it is on the way, 2: done */
	u32 next;  /* order */
	u32 (*backs)[2];
	u32 nbacks;
};

/* Depth first: numbers blocks from the last one, and finds the edges that go back. */
static void number(struct walk *w, u32 block)
{
	w->state[block] = 1;
	for (u32 i = 0; i < w->e[block].n; i++) {
		u32 to = w->e[block].to[i];

		if (!w->state[to])
			number(w, to);
		if (w->state[to] == 1) {
			w->backs = y_grow(w->f->s, w->backs, w->nbacks, sizeof(*w->backs));
			w->backs[w->nbacks][0] = block;
			w->backs[w->nbacks++][1] = to;
			w->f->blocks[to].backs++;
		} else {
			w->f->blocks[to].entries++;
		}
	}
	w->state[block] = 2;
	w->f->blocks[block].order = w->next--;
}

/* Marks what leads to the block without passing the head. */
static void see_loop(struct walk *w, u32 block, u32 head, bool *in)
{
	if (in[block])
		return;
	in[block] = true;
	for (u32 from = 0; block != head && from < w->f->nblocks; from++)
		for (u32 i = 0; w->f->blocks[from].order && i < w->e[from].n; i++)
			if (w->e[from].to[i] == block)
				see_loop(w, from, head, in);
}

static void add_loop(struct walk *w, u32 head)
{
	struct d_flat *f = w->f;
	bool *in = y_new(f->s, f->nblocks);

	in[head] = true;
	for (u32 i = 0; i < w->nbacks; i++)
		if (w->backs[i][1] == head)
			see_loop(w, w->backs[i][0], head, in);
	for (u32 k = 0; k < f->nblocks; k++) {
		struct d_block *b = &f->blocks[k];

		if (!in[k])
			continue;
		if (b->nloops == D_NEST)
			d_refuse(f, b->n ? b->insns[b->n - 1].place : 0, "loop", "more than four loops in each other");
		b->loops[b->nloops++] = head;
	}
}

static void find_loops(struct walk *w)
{
	/* heads in their order: outer loops come before inner ones */
	for (u32 order = 1; order <= w->f->nblocks; order++)
		for (u32 k = 0; k < w->f->nblocks; k++)
			if (w->f->blocks[k].order == order && w->f->blocks[k].backs)
				add_loop(w, k);
}

bool d_is_before(const struct d_flat *f, u32 a, const u32 *rounds_a, u32 b, const u32 *rounds_b)
{
	const struct d_block *x = &f->blocks[a], *y = &f->blocks[b];

	for (u32 i = 0;; i++) {
		u32 at_x = i < x->nloops ? f->blocks[x->loops[i]].order : x->order;
		u32 at_y = i < y->nloops ? f->blocks[y->loops[i]].order : y->order;

		if (at_x != at_y)
			return at_x < at_y;
		if (i >= x->nloops || i >= y->nloops)
			return false;
		if (rounds_a[i] != rounds_b[i])
			return rounds_a[i] < rounds_b[i];
	}
}

bool d_follow(const struct d_flat *f, u32 a, const u32 *rounds, u32 b, u32 *ret)
{
	const struct d_block *x = &f->blocks[a], *y = &f->blocks[b];
	bool back = y->order <= x->order;

	for (u32 i = 0; i < D_NEST; i++) {
		bool both = i < y->nloops && i < x->nloops && x->loops[i] == y->loops[i];

		ret[i] = both ? rounds[i] : 0;
		if (both && back && y->loops[i] == b && ++ret[i] > D_ROUNDS)
			return false;
	}
	return true;
}

/* --- slots --- */

#define SHARED UINT32_MAX

static void see_slot(struct d_flat *f, u32 *where, u32 slot, u32 block, bool sets)
{
	if (slot >= f->nslots)
		return;
	if (!where[slot])
		where[slot] = sets ? block + 1 : SHARED;
	else if (where[slot] != block + 1)
		where[slot] = SHARED;
}

static void find_local(struct d_flat *f)
{
	u32 *where = y_new(f->s, (f->nslots + 1) * sizeof(*where)); /* 1 + block */

	f->local = y_new(f->s, f->nslots + 1);
	for (u32 k = 0; k < f->nblocks; k++)
		for (u32 i = 0; i < f->blocks[k].n; i++) {
			const struct y_insn *insn = &f->blocks[k].insns[i];

			/* a number that is no slot makes a slot shared at worst */
			for (u32 n = 0; n < insn->nargs; n++)
				see_slot(f, where, f->args[insn->args + n], k, false);
			if (insn->op != Y_OP_CONST && insn->op != Y_OP_LITERAL && insn->op != Y_OP_ADDRESS &&
			        insn->op != Y_OP_JUMP && insn->op != D_OP_ZERO) {
				see_slot(f, where, insn->a, k, false);
				see_slot(f, where, insn->b, k, false);
			}
			see_slot(f, where, insn->dst, k, true);
		}
	for (u32 i = 0; i < f->nslots; i++)
		f->local[i] = where[i] && where[i] != SHARED;
}

void d_flatten(struct d_flat *f, u32 function)
{
	struct walk w = {.f = f};

	f->place = f->p->functions[function].place;
	copy_function(f, function, NULL, 0, NULL);
	w.e = find_edges(f);
	w.state = y_new(f->s, f->nblocks);
	w.next = f->nblocks;
	number(&w, 0);
	f->blocks[0].entries++;
	find_loops(&w);
	find_local(f);
}
