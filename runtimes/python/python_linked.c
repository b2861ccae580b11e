/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>

#include "cleanup.h"
#include "python_flow.h"
#include "python_image.h"

#define BEGINNING_MAX 512 /* instructions up to the store that links */
#define END_MAX       512 /* instructions from a store that unlinks to all returns */
#define ROUNDS_MAX    64

enum mark {
	ARRIVES = FLOW_OWN,     /* at the store that links, or out of the function */
	OUTSIDE = 2 * FLOW_OWN, /* before that store, or behind one that unlinks */
};

/* Perhaps to PyThreadState.frame, which is at an offset. */
static u32 stores(const cs_insn *in, const void *ts_frame)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];

	bool is = in->id == X86_INS_MOV && to->type == X86_OP_MEM && from->type == X86_OP_REG && to->size == 8 &&
	          to->mem.index == X86_REG_INVALID && to->mem.segment == X86_REG_INVALID &&
	          to->mem.disp == *(const u16 *)ts_frame && to->mem.base != X86_REG_RSP && to->mem.base != X86_REG_RIP;

	return is ? FLOW_STOPS : 0;
}

/* The first store on the straight way from the function's start. */
static u32 find_link(const struct python_flow *c, u64 start)
{
	u32 i = python_flow_find(c, start);

	for (u32 n = 0; n < BEGINNING_MAX && i != FLOW_NOWHERE && !(c->insns[i].flags & FLOW_STOPS); n++)
		i = python_flow_next(c, i) != FLOW_NOWHERE ? python_flow_next(c, i) : python_flow_jump(c, i);
	return i != FLOW_NOWHERE && (c->insns[i].flags & FLOW_STOPS) ? i : FLOW_NOWHERE;
}

static bool arrives(const struct python_flow *c, u32 i)
{
	return i != FLOW_NOWHERE && (c->insns[i].flags & ARRIVES);
}

/*
 * What lies between the start and the store that links, or leads from there out of the function again. Code behind a
 * call that never returns is reached as well, but leads elsewhere.
 */
static void mark_beginning(struct python_flow *c, u64 start, u32 link)
{
	bool more = true;
	u32 flags;

	python_flow_explore(c, python_flow_find(c, start), &flags);
	c->insns[link].flags |= ARRIVES;
	for (u32 round = 0; more && round < ROUNDS_MAX; round++) {
		more = false;
		for (u32 i = c->n; i-- > 0;) {
			struct python_insn *in = &c->insns[i];

			if (!(in->flags & FLOW_REACHED) || (in->flags & (ARRIVES | FLOW_STOPS)) ||
			        !((in->flags & FLOW_RETURNS) || arrives(c, python_flow_next(c, i)) ||
			                arrives(c, python_flow_jump(c, i))))
				continue;
			in->flags |= ARRIVES;
			more = true;
		}
	}
	for (u32 i = 0; i < c->n; i++)
		if (c->insns[i].flags & ARRIVES)
			c->insns[i].flags |= OUTSIDE;
}

/* Behind a store that all ways from lead out of the function; other members at the same offset are stored to elsewhere.
 */
static bool mark_end(struct python_flow *c, u32 store)
{
	u32 flags, n = python_flow_explore(c, python_flow_next(c, store), &flags);

	if (n > END_MAX || (flags & (FLOW_DISPATCHES | FLOW_STOPS)) || !(flags & FLOW_RETURNS))
		return false;
	for (u32 i = 0; i < c->n; i++)
		if (c->insns[i].flags & FLOW_REACHED)
			c->insns[i].flags |= OUTSIDE;
	return true;
}

static bool collect(const struct python_flow *c, struct python_eval *ret)
{
	for (u32 i = 0; i < c->n; i++) {
		const struct python_insn *in = &c->insns[i];
		struct python_range *last = ret->noutside ? &ret->outside[ret->noutside - 1] : NULL;

		if (!(in->flags & OUTSIDE))
			continue;
		if (last && last->end == in->addr)
			last->end += in->size;
		else if (ret->noutside == PYTHON_RANGES_MAX)
			return false;
		else
			ret->outside[ret->noutside++] = (struct python_range){in->addr, in->addr + in->size};
	}
	return true;
}

struct error *python_linked_find(struct image *img, u16 ts_frame, struct python_eval *ret)
{
	cleanup(python_flow) struct python_flow c = {0};
	u64 start = ret->ranges[0].start;
	u32 link, ends = 0;

	ret->noutside = 0;
	if (python_flow_decode(img, ret->ranges, ret->n, stores, &ts_frame, &c) &&
	        (link = find_link(&c, start)) != FLOW_NOWHERE) {
		mark_beginning(&c, start, link);
		for (u32 i = 0; i < c.n; i++)
			if ((c.insns[i].flags & FLOW_STOPS) && i != link)
				ends += mark_end(&c, i);
	}
	if (ends && collect(&c, ret))
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED,
	                          "%s: the eval loop at 0x%lx links its frames in a way that yrt does not know",
	                          img->path, start),
	        "its Python frames are left out; was it built without optimization?");
}
