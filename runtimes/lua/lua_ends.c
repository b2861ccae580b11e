/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_image.h"
#include "lua_sweep.h"

struct search {
	csh handle;
	u64 start;
	u64 label;    /* the first that the function jumps to, or its first jump or call */
	u64 restores; /* where the instructions begin that restore registers, up to this one; 0: it does not */
	u32 n;
	struct lua_vm *vm;
};

static bool is_stack_pointer(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->reg == X86_REG_RSP;
}

static bool restores(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_POP:
	case X86_INS_LEAVE:
	case X86_INS_VZEROUPPER:
		return true;
	case X86_INS_ADD:
	case X86_INS_LEA:
		return is_stack_pointer(&x->operands[0]);
	default:
		return false;
	}
}

static void see_label(struct search *s, const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	bool jumps = cs_insn_group(s->handle, in, CS_GRP_JUMP);

	if ((jumps || in->id == X86_INS_CALL) && in->address < s->label)
		s->label = in->address;
	if (jumps && op->type == X86_OP_IMM && (u64)op->imm > s->start && (u64)op->imm < s->label)
		s->label = (u64)op->imm;
}

static bool see(void *ctx, const cs_insn *in)
{
	struct search *s = ctx;
	u64 end = in->address + in->size - s->start;

	see_label(s, in);
	if (restores(in)) {
		s->restores = s->restores ? s->restores : in->address;
		return true;
	}
	if (in->id == X86_INS_RET && s->restores && s->n < LUA_ENDS && end <= UINT16_MAX) {
		s->vm->end[s->n].from = (u16)(s->restores - s->start);
		s->vm->end[s->n++].to = (u16)end;
	}
	s->restores = 0;
	return true;
}

void lua_ends_find(struct lua_sweep *sweep, u64 start, u64 end, struct lua_vm *ret)
{
	struct search s = {.handle = sweep->d.handle, .start = start, .label = end, .vm = ret};

	lua_sweep(sweep, start, end, see, &s);
	if (s.label - start <= UINT16_MAX)
		ret->begun = (u16)(s.label - start);
}
