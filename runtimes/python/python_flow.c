/* SPDX-License-Identifier: Apache-2.0 */
#include "python_flow.h"

#include <stdlib.h>
#include <string.h>

#include "code/capstone_group.h"
#include "code/disassembler.h"
#include "symbols/symbols.h"
#include "search.h"

#define INSTRUCTIONS_MAX 65536

void cleanup_python_flow(struct python_flow *f)
{
	free(f->insns);
	free(f->todo);
}

u32 python_flow_find(const struct python_flow *f, u64 addr)
{
	u32 at = SEARCH(f->n, k, f->insns[k].addr < addr);

	return at < f->n && f->insns[at].addr == addr ? at : FLOW_NOWHERE;
}

u32 python_flow_next(const struct python_flow *f, u32 i)
{
	return f->insns[i].flags & FLOW_FALLS ? python_flow_find(f, f->insns[i].addr + f->insns[i].size) : FLOW_NOWHERE;
}

u32 python_flow_jump(const struct python_flow *f, u32 i)
{
	return f->insns[i].target ? python_flow_find(f, f->insns[i].target) : FLOW_NOWHERE;
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

static struct python_insn describe(struct image *img, const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	struct python_insn ret = {.addr = in->address, .size = in->size, .flags = FLOW_FALLS};
	bool direct = in->detail->x86.op_count == 1 && op->type == X86_OP_IMM;

	if (in->id == X86_INS_RET)
		ret.flags = FLOW_RETURNS;
	else if (in->id == X86_INS_UD2 || (in->id == X86_INS_CALL && direct && never_returns(img, (u64)op->imm)))
		ret.flags = 0;
	else if (in->id == X86_INS_JMP)
		ret.flags = direct ? 0 : FLOW_DISPATCHES;
	if (direct && capstone_in_group(in, CS_GRP_JUMP))
		ret.target = (u64)op->imm;
	return ret;
}

struct decoding {
	struct image *img;
	struct python_flow *f;
	python_flow_mark *mark;
	const void *ctx;
};

static bool decode(void *ctx, const cs_insn *in)
{
	struct decoding *d = ctx;
	struct python_flow *f = d->f;

	f->insns[f->n] = describe(d->img, in);
	f->insns[f->n++].flags |= d->mark(in, d->ctx);
	return f->n < INSTRUCTIONS_MAX;
}

static int by_address(const void *a, const void *b)
{
	const struct python_insn *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

bool python_flow_decode(struct image *img, const struct python_range *ranges, u32 n, python_flow_mark *mark,
        const void *ctx, struct python_flow *f)
{
	struct decoding decoding = {img, f, mark, ctx};
	struct disassembler d;
	bool ok = true;

	f->insns = calloc(INSTRUCTIONS_MAX, sizeof(*f->insns));
	f->todo = calloc(INSTRUCTIONS_MAX, sizeof(*f->todo));
	if (!f->insns || !f->todo || !disassembler_open(&d))
		return false;
	for (u32 i = 0; ok && i < n; i++)
		ok = disassemble_file(&d, img, ranges[i].start, ranges[i].end, decode, &decoding) &&
		     f->n < INSTRUCTIONS_MAX;
	disassembler_close(&d);
	qsort(f->insns, f->n, sizeof(*f->insns), by_address);
	for (u32 i = 0; i < f->n;
	        i++) /* a jump out of the loop's code: to another function, which returns to our caller */
		if (f->insns[i].target && python_flow_jump(f, i) == FLOW_NOWHERE)
			f->insns[i].flags |= FLOW_RETURNS;
	return ok;
}

static void reach(struct python_flow *f, u32 i)
{
	if (i == FLOW_NOWHERE || (f->insns[i].flags & FLOW_REACHED))
		return;
	f->insns[i].flags |= FLOW_REACHED;
	f->todo[f->ntodo++] = i;
}

u32 python_flow_explore(struct python_flow *f, u32 i, u32 *flags)
{
	u32 n = 0;

	for (u32 k = 0; k < f->n; k++)
		f->insns[k].flags &= ~(u32)FLOW_REACHED;
	*flags = 0;
	reach(f, i);
	while (f->ntodo) {
		i = f->todo[--f->ntodo];
		*flags |= f->insns[i].flags;
		n++;
		if (f->insns[i].flags & FLOW_STOPS)
			continue;
		reach(f, python_flow_next(f, i));
		reach(f, python_flow_jump(f, i));
	}
	return n;
}
