/* SPDX-License-Identifier: Apache-2.0 */
/* Intel SDM volume 2, 2.1 to 2.2.1 and appendix A. */
#include "cfi_code_plain.h"

#include <string.h>
#include <sys/param.h>

#define INSN_MAX 15
#define REX_W    8
#define REX_R    4
#define REX_X    2
#define REX_B    1
#define READ     CS_AC_READ
#define WRITE    CS_AC_WRITE

static const u16 regs64[] = {X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP, X86_REG_RSI,
        X86_REG_RDI, X86_REG_R8, X86_REG_R9, X86_REG_R10, X86_REG_R11, X86_REG_R12, X86_REG_R13, X86_REG_R14,
        X86_REG_R15};
static const u16 regs32[] = {X86_REG_EAX, X86_REG_ECX, X86_REG_EDX, X86_REG_EBX, X86_REG_ESP, X86_REG_EBP, X86_REG_ESI,
        X86_REG_EDI, X86_REG_R8D, X86_REG_R9D, X86_REG_R10D, X86_REG_R11D, X86_REG_R12D, X86_REG_R13D, X86_REG_R14D,
        X86_REG_R15D};
static const u16 arithmetic[] = {
        X86_INS_ADD, X86_INS_OR, X86_INS_ADC, X86_INS_SBB, X86_INS_AND, X86_INS_SUB, X86_INS_XOR, X86_INS_CMP};
static const u16 jumps[] = {X86_INS_JO, X86_INS_JNO, X86_INS_JB, X86_INS_JAE, X86_INS_JE, X86_INS_JNE, X86_INS_JBE,
        X86_INS_JA, X86_INS_JS, X86_INS_JNS, X86_INS_JP, X86_INS_JNP, X86_INS_JL, X86_INS_JGE, X86_INS_JLE, X86_INS_JG};

struct plain {
	const u8 *code; /* with room for any instruction */
	u32 at;
	u8 rex;
	cs_insn *in;
};

static cs_x86_op *operand(struct plain *p, u8 access)
{
	cs_x86 *x = &p->in->detail->x86;
	cs_x86_op *op = &x->operands[x->op_count++];

	memset(op, 0, sizeof(*op));
	op->size = p->rex & REX_W ? 8 : 4;
	op->access = access;
	return op;
}

static u32 numbered(const struct plain *p, u32 reg)
{
	return p->rex & REX_W ? regs64[reg] : regs32[reg];
}

static void add_register(struct plain *p, u32 reg, u8 access)
{
	cs_x86_op *op = operand(p, access);

	op->type = X86_OP_REG;
	op->reg = numbered(p, reg);
}

static s64 number(struct plain *p, u32 size)
{
	s32 n;

	p->at += size;
	if (size == 1)
		return (s8)p->code[p->at - 1];
	memcpy(&n, p->code + p->at - sizeof(n), sizeof(n));
	return n;
}

static void add_number(struct plain *p, s64 n)
{
	cs_x86_op *op = operand(p, READ);

	op->type = X86_OP_IMM;
	op->imm = n;
}

static u32 reg_field(const struct plain *p)
{
	return (p->code[p->at] >> 3 & 7) | (p->rex & REX_R ? 8 : 0);
}

/* The operand that ModRM names at p->at. False: a rare form. */
static bool add_place(struct plain *p, u8 access)
{
	u8 mod = p->code[p->at] >> 6, rm = p->code[p->at] & 7, high = p->rex & REX_B ? 8 : 0, sib;
	cs_x86_op *op;
	u32 index;

	p->at++;
	if (mod == 3) {
		add_register(p, rm | high, access);
		return true;
	}
	op = operand(p, access);
	op->type = X86_OP_MEM;
	op->mem.scale = 1;
	op->mem.base = regs64[rm | high];
	if (rm == 4) {
		sib = p->code[p->at++];
		index = (sib >> 3 & 7) | (p->rex & REX_X ? 8 : 0);
		if ((!mod && (sib & 7) == 5) || (index == 4 && (sib & 7) != 4))
			return false;
		op->mem.base = regs64[(sib & 7) | high];
		op->mem.index = index == 4 ? X86_REG_INVALID : regs64[index];
		op->mem.scale = 1 << (sib >> 6);
	} else if (!mod && rm == 5) {
		op->mem.base = X86_REG_RIP;
		mod = 2;
	}
	if (mod)
		op->mem.disp = number(p, mod == 1 ? 1 : 4);
	return true;
}

/* r/m first, or the register. */
static bool two(struct plain *p, u32 id, bool place_first, u8 to, u8 from)
{
	u32 reg = reg_field(p);

	p->in->id = id;
	if (!place_first)
		add_register(p, reg, to);
	if (!add_place(p, place_first ? to : from))
		return false;
	if (place_first)
		add_register(p, reg, from);
	return true;
}

/* Of 4 bytes in memory. */
static bool sign_extend(struct plain *p)
{
	bool ret = p->rex & REX_W && two(p, X86_INS_MOVSXD, false, WRITE, READ);

	p->in->detail->x86.operands[1].size = 4;
	return ret;
}

/* The immediate of 4 bytes is signed only where the operand has 8. */
static bool place_and_number(struct plain *p, u32 id, u32 size, u8 access)
{
	s64 n;

	p->in->id = id;
	if (!add_place(p, access))
		return false;
	n = number(p, size);
	add_number(p, n);
	return n >= 0 || p->rex & REX_W;
}

static bool to_address(struct plain *p, u32 id, u32 size)
{
	s64 by = number(p, size);

	p->in->id = id;
	add_number(p, (s64)(p->in->address + p->at + (u64)by));
	if (id == X86_INS_CALL)
		p->in->detail->regs_write[p->in->detail->regs_write_count++] = X86_REG_RSP;
	else
		p->in->detail->groups[p->in->detail->groups_count++] = X86_GRP_JUMP;
	return !p->rex;
}

static bool stack(struct plain *p, u8 opcode)
{
	bool pops = opcode & 8;

	p->in->id = pops ? X86_INS_POP : X86_INS_PUSH;
	p->rex |= REX_W;
	add_register(p, (opcode & 7) | (p->rex & REX_B ? 8 : 0), pops ? WRITE : READ);
	p->in->detail->regs_write[p->in->detail->regs_write_count++] = X86_REG_RSP;
	return true;
}

static bool alone(struct plain *p, u32 id)
{
	p->in->id = id;
	return !p->rex;
}

static bool decode(struct plain *p)
{
	u8 opcode = p->code[p->at++], which;

	if (opcode < 0x40 && (opcode & 5) == 1) {
		which = opcode >> 3;
		return two(p, arithmetic[which], !(opcode & 2), which == 7 ? READ : READ | WRITE, READ);
	}
	if ((opcode & 0xf0) == 0x50)
		return stack(p, opcode);
	if ((opcode & 0xf0) == 0x70)
		return to_address(p, jumps[opcode & 15], 1);
	switch (opcode) {
	case 0x0f:
		opcode = p->code[p->at++];
		return (opcode & 0xf0) == 0x80 && to_address(p, jumps[opcode & 15], 4);
	case 0x63:
		return p->code[p->at] < 0xc0 && sign_extend(p);
	case 0x81:
	case 0x83:
		which = p->code[p->at] >> 3 & 7;
		return place_and_number(p, arithmetic[which], opcode == 0x83 ? 1 : 4, which == 7 ? READ : READ | WRITE);
	case 0x85:
		return two(p, X86_INS_TEST, true, READ, READ);
	case 0x89:
		return two(p, X86_INS_MOV, true, WRITE, READ);
	case 0x8b:
		return two(p, X86_INS_MOV, false, WRITE, READ);
	case 0x8d:
		return p->code[p->at] < 0xc0 && two(p, X86_INS_LEA, false, WRITE, READ);
	case 0x90:
		return alone(p, X86_INS_NOP);
	case 0xc3:
		p->in->detail->regs_write[p->in->detail->regs_write_count++] = X86_REG_RSP;
		return alone(p, X86_INS_RET);
	case 0xcc:
		return alone(p, X86_INS_INT3);
	case 0xc7:
		return !(p->code[p->at] >> 3 & 7) && place_and_number(p, X86_INS_MOV, 4, WRITE);
	case 0xe8:
		return to_address(p, X86_INS_CALL, 4);
	case 0xe9:
		return to_address(p, X86_INS_JMP, 4);
	case 0xeb:
		return to_address(p, X86_INS_JMP, 1);
	}
	return false;
}

bool code_plain_decode(const u8 *code, size_t size, u64 addr, cs_insn *ret)
{
	struct plain p = {.code = code, .in = ret};

	if (size < INSN_MAX)
		return false;
	ret->address = addr;
	ret->detail->regs_read_count = ret->detail->regs_write_count = ret->detail->groups_count = 0;
	ret->detail->x86.op_count = 0;
	if ((code[0] & 0xf0) == 0x40)
		p.rex = code[p.at++];
	if (!decode(&p))
		return false;
	ret->size = (u16)p.at;
	memcpy(ret->bytes, code, MIN(p.at, sizeof(ret->bytes)));
	return true;
}
