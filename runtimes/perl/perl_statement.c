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
#define TYPE_MASK 0x1ff
#define MORESIB   0x4000
#define OPf_KIDS  4

/* One level of the tree: the op that is looked at, and the COP that was seen last among it and those before it. */
struct level {
	u64 op, cop;
};

static u64 sibling(const struct perl_reader *r, const struct op *op)
{
	return r->image->build.version < PARENTS || op->type & MORESIB ? op->sibling : 0;
}

static bool is_it(const struct perl_reader *r, u64 at, const struct op *op, u32 bits)
{
	if (bits & PERL_OP_RUNS)
		return perl_op_bits(at, true) == bits;
	return perl_op_bits(op->next, false) == bits && (op->type & TYPE_MASK) != r->image->scope;
}

static bool was_cop(const struct perl_reader *r, const struct op *op)
{
	return !(op->type & TYPE_MASK) && op->targ == r->image->type;
}

/* Of the tree at *stack in the order of closest_cop(): the COP in whose range the op is; 0: it is not there. */
static u64 search(const struct perl_reader *r, struct level *stack, u32 bits)
{
	struct op op;
	u32 depth = 0;

	for (u32 i = 0; i < OPS_MAX; i++) {
		struct level *l = &stack[depth];

		if (!memory_read(r->mem, &op, sizeof(op), l->op))
			return 0;
		if (depth && was_cop(r, &op))
			l->cop = l->op;
		if (is_it(r, l->op, &op, bits))
			return l->cop;
		if (op.flags & OPf_KIDS && op.first && depth + 1 < DEPTH_MAX) {
			stack[++depth] = (struct level){op.first, l->cop};
			continue;
		}
		while (depth && !(stack[depth].op = sibling(r, &op)))
			if (!memory_read(r->mem, &op, sizeof(op), stack[--depth].op))
				return 0;
		if (!depth)
			return 0;
	}
	return 0;
}

u64 perl_closest_cop(const struct perl_reader *r, u64 cop, u32 op)
{
	const struct perl_layout *l = r->image->layout;
	struct level stack[DEPTH_MAX] = {{0, cop}};
	struct op first;
	u64 found;

	if (!op || l->op_ppaddr.at != offsetof(struct op, ppaddr) || l->op_targ.at != offsetof(struct op, targ) ||
	        (!(op & PERL_OP_RUNS) && r->image->build.version < NEXT_SINCE) || !perl_is_cop(r, cop) ||
	        !memory_read(r->mem, &first, sizeof(first), cop))
		return cop;
	stack[0].op = sibling(r, &first);
	found = stack[0].op ? search(r, stack, op) : 0;
	return found ? found : cop;
}
