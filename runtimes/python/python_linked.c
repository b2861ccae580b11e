/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "python_image.h"
#include "symbols.h"

#define INSTRUCTIONS_MAX 65536
#define BEGINNING_MAX	 512 /* instructions up to the store that links */
#define END_MAX		 512 /* instructions from a store that unlinks to all returns */
#define ROUNDS_MAX	 64
#define NOWHERE		 UINT32_MAX

enum insn_flag {
	STORES = 1,	/* perhaps to PyThreadState.frame */
	RETURNS = 2,	/* or goes to another function for good */
	DISPATCHES = 4, /* goes nobody knows where */
	FALLS = 8,	/* into the next one */
	REACHED = 16,
	ARRIVES = 32, /* at the store that links, or out of the function */
	OUTSIDE = 64, /* before that store, or behind one that unlinks */
};

struct insn {
	u64 addr;
	u32 size, flags;
	u64 target; /* of a jump; 0: none */
};

struct code {
	struct insn *insns; /* sorted */
	u32 *todo;
	u32 n, ntodo;
};

static void cleanup_code(struct code *c)
{
	free(c->insns);
	free(c->todo);
}

static u32 find(const struct code *c, u64 addr)
{
	u32 lo = 0, hi = c->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (c->insns[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->n && c->insns[lo].addr == addr ? lo : NOWHERE;
}

static u32 next(const struct code *c, u32 i)
{
	return c->insns[i].flags & FALLS ? find(c, c->insns[i].addr + c->insns[i].size) : NOWHERE;
}

static u32 jump(const struct code *c, u32 i)
{
	return c->insns[i].target ? find(c, c->insns[i].target) : NOWHERE;
}

static bool never_returns(struct image *img, u64 function)
{
	static const char *const names[] = {"Py_FatalError", "_Py_FatalError", "abort", "__stack_chk_fail"};
	struct symbol s;

	if (!symbols_find(img, function, &s) || s.start != function)
		return false;
	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(s.name, names[i], strlen(names[i])))
			return true;
	return false;
}

static bool stores_at(const cs_insn *in, u16 offset)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];

	return in->id == X86_INS_MOV && to->type == X86_OP_MEM && from->type == X86_OP_REG && to->size == 8 &&
	       to->mem.index == X86_REG_INVALID && to->mem.segment == X86_REG_INVALID && to->mem.disp == offset &&
	       to->mem.base != X86_REG_RSP && to->mem.base != X86_REG_RIP;
}

static struct insn describe(struct image *img, csh handle, const cs_insn *in, u16 ts_frame)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	struct insn ret = {.addr = in->address, .size = in->size, .flags = FALLS};
	bool direct = in->detail->x86.op_count == 1 && op->type == X86_OP_IMM;

	if (in->id == X86_INS_RET)
		ret.flags = RETURNS;
	else if (in->id == X86_INS_UD2 || (in->id == X86_INS_CALL && direct && never_returns(img, (u64)op->imm)))
		ret.flags = 0;
	else if (in->id == X86_INS_JMP)
		ret.flags = direct ? 0 : DISPATCHES;
	else if (stores_at(in, ts_frame))
		ret.flags |= STORES;
	if (direct && cs_insn_group(handle, in, CS_GRP_JUMP))
		ret.target = (u64)op->imm;
	return ret;
}

static bool decode_range(struct image *img, csh handle, struct python_range r, u16 ts_frame, struct code *c)
{
	size_t size = r.end - r.start;
	cleanup(free) u8 *bytes = malloc(size + 1);
	const u8 *at = bytes;
	cs_insn *in;

	if (!bytes || !image_read(img, bytes, size, r.start) || !(in = cs_malloc(handle)))
		return false;
	while (c->n < INSTRUCTIONS_MAX && cs_disasm_iter(handle, &at, &size, &r.start, in))
		c->insns[c->n++] = describe(img, handle, in, ts_frame);
	cs_free(in, 1);
	return c->n < INSTRUCTIONS_MAX;
}

static int by_address(const void *a, const void *b)
{
	const struct insn *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static bool decode(struct image *img, const struct python_eval *eval, u16 ts_frame, struct code *c)
{
	bool ok = true;
	csh handle;

	c->insns = calloc(INSTRUCTIONS_MAX, sizeof(*c->insns));
	c->todo = calloc(INSTRUCTIONS_MAX, sizeof(*c->todo));
	if (!c->insns || !c->todo || cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	for (u32 i = 0; ok && i < eval->n; i++)
		ok = decode_range(img, handle, eval->ranges[i], ts_frame, c);
	cs_close(&handle);
	qsort(c->insns, c->n, sizeof(*c->insns), by_address);
	for (u32 i = 0; i < c->n; i++) /* a jump out of the loop's code: to another function, which returns to our caller */
		if (c->insns[i].target && jump(c, i) == NOWHERE)
			c->insns[i].flags |= RETURNS;
	return ok;
}

static void reach(struct code *c, u32 i)
{
	if (i == NOWHERE || (c->insns[i].flags & REACHED))
		return;
	c->insns[i].flags |= REACHED;
	c->todo[c->ntodo++] = i;
}

/* Marks what can be reached from i without a store in between. Returns how much, and what flags there were. */
static u32 explore(struct code *c, u32 i, u32 *flags)
{
	u32 n = 0;

	for (u32 k = 0; k < c->n; k++)
		c->insns[k].flags &= ~(u32)REACHED;
	*flags = 0;
	reach(c, i);
	while (c->ntodo) {
		i = c->todo[--c->ntodo];
		*flags |= c->insns[i].flags;
		n++;
		if (c->insns[i].flags & STORES)
			continue;
		reach(c, next(c, i));
		reach(c, jump(c, i));
	}
	return n;
}

/* The first store on the straight way from the function's start. */
static u32 find_link(const struct code *c, u64 start)
{
	u32 i = find(c, start);

	for (u32 n = 0; n < BEGINNING_MAX && i != NOWHERE && !(c->insns[i].flags & STORES); n++)
		i = next(c, i) != NOWHERE ? next(c, i) : jump(c, i);
	return i != NOWHERE && (c->insns[i].flags & STORES) ? i : NOWHERE;
}

static bool arrives(const struct code *c, u32 i)
{
	return i != NOWHERE && (c->insns[i].flags & ARRIVES);
}

/*
 * What lies between the start and the store that links, or leads from there out of the function again. Code behind a call
 * that never returns is reached as well, but leads elsewhere.
 */
static void mark_beginning(struct code *c, u64 start, u32 link)
{
	bool more = true;
	u32 flags;

	explore(c, find(c, start), &flags);
	c->insns[link].flags |= ARRIVES;
	for (u32 round = 0; more && round < ROUNDS_MAX; round++) {
		more = false;
		for (u32 i = c->n; i-- > 0;) {
			struct insn *in = &c->insns[i];

			if (!(in->flags & REACHED) || (in->flags & (ARRIVES | STORES)) ||
			        !((in->flags & RETURNS) || arrives(c, next(c, i)) || arrives(c, jump(c, i))))
				continue;
			in->flags |= ARRIVES;
			more = true;
		}
	}
	for (u32 i = 0; i < c->n; i++)
		if (c->insns[i].flags & ARRIVES)
			c->insns[i].flags |= OUTSIDE;
}

/* Behind a store that all ways from lead out of the function; other members at the same offset are stored to elsewhere. */
static bool mark_end(struct code *c, u32 store)
{
	u32 flags, n = explore(c, next(c, store), &flags);

	if (n > END_MAX || (flags & (DISPATCHES | STORES)) || !(flags & RETURNS))
		return false;
	for (u32 i = 0; i < c->n; i++)
		if (c->insns[i].flags & REACHED)
			c->insns[i].flags |= OUTSIDE;
	return true;
}

static bool collect(const struct code *c, struct python_eval *ret)
{
	for (u32 i = 0; i < c->n; i++) {
		const struct insn *in = &c->insns[i];
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
	cleanup(code) struct code c = {0};
	u64 start = ret->ranges[0].start;
	u32 link, ends = 0;

	ret->noutside = 0;
	if (decode(img, ret, ts_frame, &c) && (link = find_link(&c, start)) != NOWHERE) {
		mark_beginning(&c, start, link);
		for (u32 i = 0; i < c.n; i++)
			if ((c.insns[i].flags & STORES) && i != link)
				ends += mark_end(&c, i);
	}
	if (ends && collect(&c, ret))
		return NULL;
	return error_hint(error_new(ERROR_UNSUPPORTED, "%s: the eval loop at 0x%lx links its frames in a way that yrt does not know",
	                          img->path, start),
	        "its Python frames are left out; was it built without optimization?");
}
