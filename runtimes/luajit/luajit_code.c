/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_code.h"
#include "code/capstone_group.h"
#include "code/disassembler.h"
#include "search.h"

#include <capstone/capstone.h>
#include <stdlib.h>

static bool is_mem(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.index == X86_REG_INVALID && (op->size == 8 || op->size == 4);
}

static void reduce_mov(const cs_x86_op *dst, const cs_x86_op *src, struct code_ins *ret)
{
	if (is_mem(dst) && src->type == X86_OP_REG) {
		ret->op = CODE_STORE;
		ret->base = capstone_register(dst->mem.base);
		ret->value = dst->mem.disp;
		ret->reg = capstone_register(src->reg);
		ret->size = dst->size;
	} else if (dst->type == X86_OP_REG && is_mem(src)) {
		ret->op = CODE_LOAD;
		ret->base = capstone_register(src->mem.base);
		ret->value = src->mem.disp;
		ret->reg = capstone_register(dst->reg);
		ret->size = src->size;
	} else if (dst->type == X86_OP_REG && dst->reg == X86_REG_RSP && src->type == X86_OP_REG) {
		ret->op = CODE_SET_SP;
		ret->reg = capstone_register(src->reg);
	} else if (dst->type == X86_OP_REG && dst->reg == X86_REG_RBP && src->type == X86_OP_REG &&
	           src->reg == X86_REG_RSP) {
		ret->op = CODE_SET_FP;
	}
}

static void reduce_add(const cs_x86_op *dst, const cs_x86_op *src, int sign, struct code_ins *ret)
{
	if (dst->type != X86_OP_REG || src->type != X86_OP_IMM)
		return;
	ret->op = dst->reg == X86_REG_RSP ? CODE_MOVE_SP : CODE_ADD;
	ret->reg = capstone_register(dst->reg);
	ret->value = sign * src->imm;
}

static void reduce_transfer(const cs_insn *in, const cs_x86_op *op, struct code_ins *ret)
{
	bool direct = op->type == X86_OP_IMM;

	ret->target = direct ? (u64)op->imm : 0;
	if (in->id == X86_INS_CALL)
		ret->op = CODE_CALL;
	else if (in->id == X86_INS_JMP)
		ret->op = direct ? CODE_JUMP : CODE_END;
	else
		ret->op = CODE_BRANCH;
}

static void reduce(const cs_insn *in, struct code_ins *ret)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = x->operands;

	*ret = (struct code_ins){.addr = in->address, .op = CODE_OTHER, .reg = CODE_NO_REG, .base = CODE_NO_REG};
	switch (in->id) {
	case X86_INS_PUSH:
	case X86_INS_POP:
		ret->op = in->id == X86_INS_PUSH ? CODE_PUSH : CODE_POP;
		ret->reg = op->type == X86_OP_REG ? capstone_register(op->reg) : CODE_NO_REG;
		return;
	case X86_INS_ADD:
		reduce_add(&op[0], &op[1], 1, ret);
		return;
	case X86_INS_SUB:
		reduce_add(&op[0], &op[1], -1, ret);
		return;
	case X86_INS_MOV:
		reduce_mov(&op[0], &op[1], ret);
		return;
	case X86_INS_XOR:
		if (op[0].type != X86_OP_REG || op[1].type != X86_OP_IMM)
			return;
		ret->op = CODE_FLIP;
		ret->reg = capstone_register(op[0].reg);
		ret->value = op[1].imm;
		return;
	case X86_INS_LEAVE:
		ret->op = CODE_LEAVE;
		return;
	case X86_INS_RET:
	case X86_INS_INT3:
	case X86_INS_UD2:
		ret->op = CODE_END;
		return;
	}
	if (capstone_in_group(in, CS_GRP_CALL) || capstone_in_group(in, CS_GRP_JUMP))
		reduce_transfer(in, op, ret);
}

static bool keep(void *ctx, const cs_insn *in)
{
	struct code *code = ctx;

	reduce(in, &code->ins[code->n++]);
	return true;
}

struct error *code_read(const u8 *bytes, u64 addr, size_t size, struct code *ret)
{
	struct code code = {.ins = calloc(size + 1, sizeof(*code.ins))};
	struct disassembler d;
	size_t left;

	if (!code.ins || !disassembler_open(&d)) {
		code_free(&code);
		return &error_no_memory;
	}
	left = disassemble(&d, bytes, size, addr, keep, &code);
	disassembler_close(&d);
	if (left) {
		code_free(&code);
		return error_new(
		        ERROR_UNSUPPORTED, "LuaJIT's VM has an invalid instruction at 0x%lx", addr + size - left);
	}
	*ret = code;
	return NULL;
}

void code_free(struct code *code)
{
	free(code->ins);
	code->ins = NULL;
	code->n = 0;
}

u32 code_find(const struct code *code, u64 addr)
{
	u32 at = SEARCH(code->n, k, code->ins[k].addr < addr);

	return at < code->n && code->ins[at].addr == addr ? at : code->n;
}
