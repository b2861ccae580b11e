/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_access.h"

#include <stdlib.h>

#include "code/disassembler.h"

static u16 wide(u16 reg)
{
	static const u16 pairs[][2] = {{X86_REG_EAX, X86_REG_RAX}, {X86_REG_EBX, X86_REG_RBX},
	        {X86_REG_ECX, X86_REG_RCX}, {X86_REG_EDX, X86_REG_RDX}, {X86_REG_ESI, X86_REG_RSI},
	        {X86_REG_EDI, X86_REG_RDI}, {X86_REG_EBP, X86_REG_RBP}, {X86_REG_ESP, X86_REG_RSP},
	        {X86_REG_R8D, X86_REG_R8}, {X86_REG_R9D, X86_REG_R9}, {X86_REG_R10D, X86_REG_R10},
	        {X86_REG_R11D, X86_REG_R11}, {X86_REG_R12D, X86_REG_R12}, {X86_REG_R13D, X86_REG_R13},
	        {X86_REG_R14D, X86_REG_R14}, {X86_REG_R15D, X86_REG_R15}};

	for (u32 i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		if (pairs[i][0] == reg)
			return pairs[i][1];
	return reg;
}

static bool reduce(const cs_insn *in, struct luajit_access *ret)
{
	const cs_x86 *x = &in->detail->x86;
	bool found = false;

	*ret = (struct luajit_access){.ins = in->id};
	for (u32 i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		if (op->type == X86_OP_MEM) {
			ret->base = wide(op->mem.base);
			ret->index = op->mem.index;
			ret->disp = op->mem.disp;
			ret->size = op->size;
			ret->store = i == 0;
			found = true;
		} else if (op->type == X86_OP_REG) {
			ret->reg = wide(op->reg);
		} else if (op->type == X86_OP_IMM) {
			ret->imm = op->size == sizeof(s32) ? (s32)op->imm : op->imm;
			ret->has_imm = true;
		}
	}
	return found || (in->id == X86_INS_ADD && ret->has_imm);
}

struct accesses {
	struct luajit_access *all;
	u32 n;
};

static bool keep(void *ctx, const cs_insn *in)
{
	struct accesses *a = ctx;

	a->n += reduce(in, &a->all[a->n]);
	return true;
}

struct error *luajit_accesses_read(const u8 *bytes, size_t size, u64 addr, struct luajit_access **ret, u32 *n)
{
	struct accesses a = {.all = calloc(size + 1, sizeof(*a.all))};
	struct disassembler d;

	*ret = a.all;
	*n = 0;
	if (!a.all || !disassembler_open(&d))
		return &error_no_memory;
	disassemble(&d, bytes, size, addr, keep, &a);
	disassembler_close(&d);
	*n = a.n;
	return NULL;
}
