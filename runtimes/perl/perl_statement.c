/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_statement.h"

#include <stddef.h>

#define OPS_MAX    4096
#define DEPTH_MAX  64
#define NEXT_SINCE 20 /* 5.20: caller() looks for the closest COP */
#define PARENTS    22 /* 5.22: there is op_moresib */

/* op.h of 5.16 to 5.44: what a layout does not name lies between and behind the members that it does. */
struct op {
	u64 next, sibling, ppaddr, targ; /* sibling: without op_moresib the parent */
	u16 type;                        /* op_type, and single bits */
	u8 flags, private;
	u32 unused;
	u64 first; /* of UNOPs and larger ones */
};
#define MORESIB  0x4000
#define OPf_KIDS 4

/* One level of the tree: the op that is looked at, and the COP that was seen last among it and those before it. */
struct level {
	u64 op, cop;
};

static u64 sibling(const struct perl_reader *r, const struct op *op)
{
	return r->image->build.version < PARENTS || op->type & MORESIB ? op->sibling : 0;
}

/* What is looked for: an op, or the next one of an op. */
struct wanted {
	u64 at;       /* its address; 0: only bits of it are known */
	u32 bits;     /* perl_op_bits() */
	bool current; /* no statement behind the one that the search begins at has run */
	bool any;     /* also an op of a type that is not expected */
	bool partly;  /* not all ops were seen: the replacement of s///e is a tree of its own */
};

/* Is it an op that can run, or can have entered a context? */
static bool is_expected(const struct perl_reader *r, u32 type, bool runs)
{
	return runs ? type : r->image->calls[type / 64] >> type % 64 & 1;
}

static bool is_it(const struct perl_reader *r, u64 at, const struct op *op, const struct wanted *w)
{
	u32 type = op->type & PERL_OP_TYPE;
	bool runs = w->bits & PERL_OP_RUNS;
	u64 it = runs ? at : op->next;

	if (!runs && type == r->image->scope)
		return false;
	if (w->at)
		return it == w->at;
	return (w->any || is_expected(r, type, runs)) && perl_op_bits(it, runs) == w->bits;
}

static bool was_cop(const struct perl_reader *r, const struct op *op)
{
	return !(op->type & PERL_OP_TYPE) && op->targ == r->image->type;
}

static u64 behind(const struct perl_reader *r, const struct op *op, const struct wanted *w)
{
	bool cop = perl_is_state(r, op->ppaddr, op->type & PERL_OP_TYPE);

	return cop && w->current ? 0 : sibling(r, op);
}

/* Moves to the next sibling of the op, or of the nearest parent that has one. False: the tree ends. */
static bool go_on(const struct perl_reader *r, struct level *stack, u32 *depth, struct op *op, struct wanted *w)
{
	while (*depth && !(stack[*depth].op = behind(r, op, w)))
		if (!memory_read(r->mem, op, sizeof(*op), stack[--*depth].op)) {
			w->partly = true;
			return false;
		}
	return *depth;
}

/*
 * Of the tree at `at` in the order of closest_cop(): the COP in whose range the op is, `first` before any other; 0: the
 * op is not there.
 */
static u64 search(const struct perl_reader *r, u64 at, u64 first, struct wanted *w)
{
	struct level stack[DEPTH_MAX] = {{at, first}};
	struct op op;
	u32 depth = 0;

	for (u32 i = 0; i < OPS_MAX; i++) {
		struct level *l = &stack[depth];

		if (!memory_read(r->mem, &op, sizeof(op), l->op))
			break;
		if (depth && was_cop(r, &op))
			l->cop = l->op;
		if (is_it(r, l->op, &op, w)) {
			w->at = w->bits & PERL_OP_RUNS ? l->op : op.next;
			return l->cop;
		}
		w->partly |= depth + 1 == DEPTH_MAX || (op.type & PERL_OP_TYPE) == r->image->subst;
		if (op.flags & OPf_KIDS && op.first && depth + 1 < DEPTH_MAX) {
			stack[++depth] = (struct level){op.first, l->cop};
			continue;
		}
		if (!go_on(r, stack, &depth, &op, w))
			return 0;
	}
	w->partly = true;
	return 0;
}

/* Are ops what is read here? */
static bool is_known(const struct perl_layout *l)
{
	return l->op_ppaddr.at == offsetof(struct op, ppaddr) && l->op_targ.at == offsetof(struct op, targ);
}

/*
 * Ops far from each other may have the same bits, as in a long loop. The op is not behind a later statement, because
 * that would be the current one then. So an op is first looked for where it can be, and among those of a type that it
 * can have, which a module's own op may not have. closest_cop() may find another one before it that is followed by the
 * same op.
 */
u64 perl_closest_cop(const struct perl_reader *r, u64 cop, u32 op)
{
	struct wanted w = {.bits = op, .current = true};
	struct op first;
	u64 begin, found;

	if (!op || !is_known(r->image->layout) || (!(op & PERL_OP_RUNS) && r->image->build.version < NEXT_SINCE) ||
	        !perl_is_cop(r, cop) || !memory_read(r->mem, &first, sizeof(first), cop))
		return cop;
	begin = sibling(r, &first);
	found = begin ? search(r, begin, cop, &w) : 0;
	w.any = true;
	if (begin && !found)
		found = search(r, begin, cop, &w);
	w.current = false;
	if (begin && !(op & PERL_OP_RUNS))
		found = search(r, begin, cop, &w);
	return found ? found : cop;
}

bool perl_may_have(const struct perl_reader *r, u64 root, u64 cop)
{
	struct wanted w = {.at = cop, .bits = PERL_OP_RUNS};

	return !root || !is_known(r->image->layout) || search(r, root, cop, &w) || w.partly;
}
