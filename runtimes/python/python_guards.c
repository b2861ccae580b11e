/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "binary/image_scan.h"
#include "cleanup.h"
#include "code/capstone_group.h"
#include "code/capstone_registers.h"
#include "code/disassembler.h"
#include "python_alloc.h"

#define COMPARE_INSNS 6  /* from where the address is named to the jump */
#define OTHER_INSNS   16 /* of the other case, up to its call */
#define REGISTERS     16
#define RSI           4
#define RDX           1
#define RSP           7
#define UNKNOWN       0
#define ZERO          ALLOC_OPERAND_VALUE /* is asked for: it takes as much as one byte */
#define TIMES_MAX     (1u << 21)

struct reading {
	struct disassembler d;
	struct python_guards *ret;
	const u8 *code;
	size_t size;
	u64 start, function;
	enum python_allocating kind;
};

static bool decode(struct reading *r, u64 addr)
{
	const u8 *at = r->code + (addr - r->start);
	size_t left = r->size - (addr - r->start);

	return addr - r->start < r->size && cs_disasm_iter(r->d.handle, &at, &left, &addr, r->d.in);
}

static const cs_x86_op *operand(const struct reading *r, u32 i)
{
	return &r->d.in->detail->x86.operands[i];
}

static u8 register_of(const cs_x86_op *op)
{
	return op->type == X86_OP_REG ? capstone_register(op->reg) : CAPSTONE_NO_REG;
}

/* What a register will have, as an operand at the jump; UNKNOWN: it is not known. */
static u32 source_of(const struct reading *r, const u32 *has)
{
	const cs_x86_op *from = operand(r, 1);
	u8 reg = register_of(from);

	if (reg < REGISTERS)
		return has[reg];
	if (from->type == X86_OP_IMM && from->imm >= 0 && from->imm < ZERO)
		return from->imm ? (u32)from->imm : ZERO;
	if (from->type == X86_OP_MEM && capstone_register(from->mem.base) == RSP && !from->mem.index &&
	        from->mem.disp >= 0 && from->mem.disp < 1 << 20 && from->size == 8)
		return ALLOC_OPERAND_STACK | (u32)from->mem.disp;
	return UNKNOWN;
}

/* What an instruction puts into a register. */
static u32 put_by(const struct reading *r, u8 to, const u32 *has)
{
	if (r->d.in->detail->x86.op_count != 2 || to >= REGISTERS)
		return UNKNOWN;
	if (r->d.in->id == X86_INS_XOR && register_of(operand(r, 1)) == to)
		return ZERO;
	return r->d.in->id == X86_INS_MOV ? source_of(r, has) : UNKNOWN;
}

static void follow(struct reading *r, u32 *has)
{
	const cs_x86 *x = &r->d.in->detail->x86;
	cs_regs read, write;
	u8 nread, nwrite, to = x->op_count ? register_of(&x->operands[0]) : CAPSTONE_NO_REG;
	u32 value = put_by(r, to, has);

	if (cs_regs_access(r->d.handle, r->d.in, read, &nread, write, &nwrite))
		return;
	for (u8 i = 0; i < nwrite; i++)
		if (capstone_register(write[i]) < REGISTERS)
			has[capstone_register(write[i])] = UNKNOWN;
	if (value && to < REGISTERS)
		has[to] = value;
}

static u32 product_of(u32 n, u32 each)
{
	u32 reg = n & ALLOC_OPERAND_REGISTER ? n : each, times = n & ALLOC_OPERAND_REGISTER ? each : n;

	if (n == ZERO || each == ZERO)
		return ZERO;
	if (n == 1 || each == 1)
		return n == 1 ? each : n;
	if (n & each & ALLOC_OPERAND_REGISTER)
		return ALLOC_OPERAND_PRODUCT | (n & 15) | (each & 15) << 8;
	if (reg & ALLOC_OPERAND_REGISTER)
		return times != UNKNOWN && times < TIMES_MAX ? reg | times << 8 : UNKNOWN;
	return n && each && n < 1 << 14 && each < 1 << 14 ? n * each : UNKNOWN;
}

/* The size that a call with these arguments asks for. */
static u32 size_of(const struct reading *r, const u32 *has)
{
	u32 size =
	        r->kind == PYTHON_CALLOC ? product_of(has[RSI], has[RDX]) : has[r->kind == PYTHON_MALLOC ? RSI : RDX];

	return size == ZERO ? 1 : size;
}

/* The case in which the table has another function: up to its call. */
static u32 read_other(struct reading *r, u64 addr, bool *calls)
{
	u32 has[REGISTERS];

	for (u32 i = 0; i < REGISTERS; i++)
		has[i] = ALLOC_OPERAND_REGISTER | i;
	has[RSP] = UNKNOWN;
	*calls = false;
	for (u32 i = 0; i < OTHER_INSNS && decode(r, addr); i++) {
		bool jump = capstone_in_group(r->d.in, CS_GRP_JUMP), call = capstone_in_group(r->d.in, CS_GRP_CALL);
		bool direct = (jump || call) && operand(r, 0)->type == X86_OP_IMM;

		addr += r->d.in->size;
		if ((jump || call) && !direct) {
			*calls = true;
			return size_of(r, has);
		}
		if (call || (jump && r->d.in->id != X86_INS_JMP) || capstone_in_group(r->d.in, CS_GRP_RET))
			return UNKNOWN;
		if (jump)
			addr = (u64)operand(r, 0)->imm;
		else
			follow(r, has);
	}
	return UNKNOWN;
}

static void add(struct reading *r, u64 at, u64 other)
{
	struct python_guards *all = r->ret;
	bool calls;
	u32 size = read_other(r, other, &calls);

	if (!calls)
		return;
	for (u32 i = 0; i < all->n; i++)
		if (all->of[i].at == at)
			return;
	if (!size || all->n == PYTHON_GUARDS_MAX)
		all->unknown++;
	else
		all->of[all->n++] = (struct python_guard){at, size};
}

/* From where the function's address is named: a comparison with it, and a jump. reg: that has the address then. */
static void read_guard(struct reading *r, u64 addr, u8 reg, bool compared)
{
	for (u32 i = 0; i < COMPARE_INSNS && decode(r, addr); i++) {
		const cs_x86 *x = &r->d.in->detail->x86;
		u64 here = addr;

		addr += r->d.in->size;
		if (capstone_in_group(r->d.in, CS_GRP_JUMP) && x->op_count == 1 && operand(r, 0)->type == X86_OP_IMM) {
			if (compared && r->d.in->id == X86_INS_JNE)
				add(r, here, (u64)operand(r, 0)->imm);
			else if (compared && r->d.in->id == X86_INS_JE)
				add(r, here, addr);
			return;
		}
		if (capstone_in_group(r->d.in, CS_GRP_CALL) || capstone_in_group(r->d.in, CS_GRP_RET))
			return;
		if (r->d.in->id == X86_INS_CMP && x->op_count == 2)
			compared = register_of(operand(r, 0)) == reg || register_of(operand(r, 1)) == reg;
	}
}

/* A comparison with its address as a constant, in programs that are not moved. */
static void try_constant(struct reading *r, size_t i)
{
	u32 value = 0;

	memcpy(&value, r->code + i, sizeof(value));
	if (value != r->function)
		return;
	for (size_t head = 2; head <= 3 && head <= i; head++)
		if (decode(r, r->start + i - head) && r->d.in->id == X86_INS_CMP && r->d.in->size == head + 4 &&
		        operand(r, 1)->type == X86_OP_IMM) {
			read_guard(r, r->start + i + 4, CAPSTONE_NO_REG, true);
			return;
		}
}

/* lea: its address relative to the next instruction, in others. */
static void try_relative(struct reading *r, size_t i)
{
	static const u8 dwarf[REGISTERS] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	s32 distance;

	if (i < 3 || r->code[i - 2] != 0x8d || (r->code[i - 3] & 0xfb) != 0x48 || (r->code[i - 1] & 0xc7) != 5)
		return;
	memcpy(&distance, r->code + i, sizeof(distance));
	if (r->start + i + 4 + (u64)(s64)distance == r->function)
		read_guard(r, r->start + i + 4, dwarf[(r->code[i - 3] & 4) << 1 | (r->code[i - 1] >> 3 & 7)], false);
}

static void try_direct(struct reading *r, size_t i)
{
	struct python_guards *all = r->ret;
	s32 distance;

	if (!i || (r->code[i - 1] & 0xfe) != 0xe8)
		return;
	memcpy(&distance, r->code + i, sizeof(distance));
	if (r->start + i + 4 + (u64)(s64)distance != r->function)
		return;
	if (all->ndirect == PYTHON_DIRECT_MAX) {
		all->unknown++;
		return;
	}
	all->direct[all->ndirect].at = r->start + i - 1;
	all->direct[all->ndirect++].call = r->code[i - 1] == 0xe8;
}

struct error *python_guards_find(
        struct image *img, u64 function, enum python_allocating kind, struct python_guards *ret)
{
	struct reading r = {.ret = ret, .function = function, .kind = kind};
	cleanup(free) u8 *code = NULL;
	struct error *err = image_copy_section(img, ".text", &code, &r.size, &r.start);

	if (err || !code)
		return err;
	if (!disassembler_open(&r.d))
		return &error_no_memory;
	r.code = code;
	for (size_t i = 0; i + 4 <= r.size; i++) {
		try_constant(&r, i);
		try_relative(&r, i);
		try_direct(&r, i);
	}
	disassembler_close(&r.d);
	return NULL;
}
