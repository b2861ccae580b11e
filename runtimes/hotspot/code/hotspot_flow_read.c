/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code reduced to what changes the stack pointer, saved registers and return addresses. */
#include "hotspot_flow.h"

#include <stdlib.h>
#include <string.h>

#include "code/capstone_group.h"
#include "code/capstone_registers.h"
#include "code/disassembler.h"
#include "hotspot_flow_known.h"
#include "search.h"

static u8 number_of(x86_reg reg)
{
	u8 number = capstone_register(reg);

	return number == CAPSTONE_NO_REG ? FLOW_REGS : number;
}

/* A word in memory at a register and an offset. */
static bool is_word(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->size == 8 && op->mem.index == X86_REG_INVALID &&
	       number_of(op->mem.base) < FLOW_REGS;
}

static bool is_reg(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->size == 8 && number_of(op->reg) < FLOW_REGS;
}

static void reduce_move(const cs_x86_op *dst, const cs_x86_op *src, struct flow_ins *ret)
{
	if (is_reg(dst) && is_reg(src)) {
		ret->op = FLOW_MOVE;
		ret->dst = number_of(dst->reg);
		ret->src = number_of(src->reg);
	} else if (is_word(dst) && is_reg(src)) {
		ret->op = FLOW_STORE;
		ret->dst = number_of(dst->mem.base);
		ret->src = number_of(src->reg);
		ret->value = dst->mem.disp;
	} else if (is_reg(dst) && is_word(src)) {
		ret->op = FLOW_LOAD;
		ret->dst = number_of(dst->reg);
		ret->src = number_of(src->mem.base);
		ret->value = src->mem.disp;
	}
}

static void reduce_arithmetic(const cs_insn *in, const cs_x86_op *op, struct flow_ins *ret)
{
	if (is_reg(&op[0]) && is_reg(&op[1]) && in->id == X86_INS_ADD && op[0].reg == X86_REG_RSP)
		ret->op = FLOW_UNWIND;
	if (!is_reg(&op[0]) || op[1].type != X86_OP_IMM)
		return;
	ret->op = in->id == X86_INS_AND ? FLOW_ALIGN : FLOW_ADD;
	ret->dst = number_of(op[0].reg);
	ret->value = in->id == X86_INS_SUB ? -op[1].imm : op[1].imm;
	if (ret->op == FLOW_ALIGN && ret->dst != DWREG_RSP)
		ret->op = FLOW_OTHER;
}

static void reduce_lea(const cs_x86_op *dst, const cs_x86_op *src, struct flow_ins *ret)
{
	if (!is_reg(dst) || src->mem.index != X86_REG_INVALID || number_of(src->mem.base) == FLOW_REGS)
		return;
	ret->op = FLOW_LEA;
	ret->dst = number_of(dst->reg);
	ret->src = number_of(src->mem.base);
	ret->value = src->mem.disp;
}

static void reduce_transfer(const cs_insn *in, const cs_x86_op *op, struct flow_ins *ret)
{
	bool direct = op->type == X86_OP_IMM;

	if (!capstone_in_group(in, CS_GRP_CALL) && !capstone_in_group(in, CS_GRP_JUMP))
		return;
	ret->target = direct ? (u64)op->imm : 0;
	if (in->id == X86_INS_CALL)
		ret->op = FLOW_CALL;
	else if (in->id == X86_INS_JMP)
		ret->op = direct ? FLOW_JUMP : FLOW_END;
	else
		ret->op = FLOW_BRANCH;
}

static u16 written(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	u32 mask = 0;

	for (u32 i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG && (x->operands[i].access & CS_AC_WRITE))
			mask |= 1u << number_of(x->operands[i].reg);
	for (u32 i = 0; i < in->detail->regs_write_count; i++)
		mask |= 1u << number_of(in->detail->regs_write[i]);
	return (u16)mask;
}

static void reduce(const cs_insn *in, struct flow_ins *ret)
{
	const cs_x86_op *op = in->detail->x86.operands;

	*ret = (struct flow_ins){.addr = in->address, .size = in->size, .dst = FLOW_REGS, .src = FLOW_REGS};
	switch (in->id) {
	case X86_INS_PUSH:
	case X86_INS_PUSHFQ:
		ret->op = FLOW_PUSH;
		ret->src = in->id == X86_INS_PUSH && is_reg(op) ? number_of(op->reg) : FLOW_REGS;
		return;
	case X86_INS_POP:
	case X86_INS_POPFQ:
		ret->op = FLOW_POP;
		ret->dst = in->id == X86_INS_POP && is_reg(op) ? number_of(op->reg) : FLOW_REGS;
		return;
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		reduce_move(&op[0], &op[1], ret);
		break;
	case X86_INS_ADD:
	case X86_INS_SUB:
	case X86_INS_AND:
		reduce_arithmetic(in, op, ret);
		break;
	case X86_INS_LEA:
		reduce_lea(&op[0], &op[1], ret);
		break;
	case X86_INS_LEAVE:
		ret->op = FLOW_LEAVE;
		return;
	case X86_INS_RET:
	case X86_INS_HLT:
	case X86_INS_INT3:
	case X86_INS_UD2:
		ret->op = FLOW_END;
		return;
	default:
		reduce_transfer(in, op, ret);
	}
	if (ret->op == FLOW_OTHER)
		ret->written = written(in);
}

/* --- vector instructions, which capstone 4 does not know all of --- */

/* Operand bytes behind a ModRM byte, itself included (Intel SDM, volume 2, 2.1.5). */
static u32 modrm_length(const u8 *p, size_t size)
{
	u32 mode = p[0] >> 6, base = p[0] & 7, length = 1;

	if (mode == 3)
		return 1;
	if (base == 4) {
		base = size > 1 ? p[1] & 7 : 0;
		length++;
	}
	if (mode == 1)
		return length + 1;
	return length + (mode == 2 || base == 5 ? 4 : 0);
}

/* Does an opcode of this map take a byte more? */
static bool has_immediate(u32 map, u8 opcode)
{
	return map == 3 || (map == 1 && (opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6) ||
	                                        (opcode >= 0x70 && opcode <= 0x73)));
}

/* The length of an instruction with a VEX or EVEX prefix; 0: it is none. They leave rsp and rbp alone, or have saved
 * them. */
static u32 vector_length(const u8 *p, size_t size)
{
	u32 prefix = size && p[0] == 0xc5 ? 2 : size && p[0] == 0xc4 ? 3 : size && p[0] == 0x62 ? 4 : 0, map, length;

	if (!prefix || size < prefix + 2)
		return 0;
	map = prefix == 2 ? 1 : p[1] & 7;
	length = prefix + 1;
	if (map != 1 || p[prefix] != 0x77) /* vzeroupper */
		length += modrm_length(p + length, size - length);
	length += has_immediate(map, p[prefix]);
	return length <= size ? length : 0;
}

static struct flow_ins *next_ins(struct flow *f)
{
	u32 room = f->ins_room ? f->ins_room * 2 : 256;
	struct flow_ins *grown;

	if (f->n == f->ins_room) {
		grown = reallocarray(f->ins, room, sizeof(*grown));
		if (!grown)
			return NULL;
		f->ins = grown;
		f->ins_room = room;
	}
	return &f->ins[f->n];
}

/*
 * Opened once: a handle indexes all instructions at its first one, which takes as long as a hundred others. Processes
 * are read by one thread.
 */
static struct disassembler reader; /* all zeroes: not needed until now */

__attribute__((destructor)) static void close_reader(void)
{
	disassembler_close(&reader);
}

/* Decodes the instruction at addr. ret->size is 0 if the bytes are no valid instruction. */
static struct error *read_one(const u8 *bytes, u64 addr, size_t size, struct flow_ins *ret)
{
	const u8 *at = bytes;

	*ret = (struct flow_ins){.addr = addr, .size = vector_length(bytes, size), .dst = FLOW_REGS, .src = FLOW_REGS};
	if (ret->size || flow_known_find(bytes, size, addr, ret))
		return NULL;
	if (!reader.in && !disassembler_open(&reader))
		return &error_no_memory;
	if (!cs_disasm_iter(reader.handle, &at, &size, &addr, reader.in))
		return NULL;
	reduce(reader.in, ret);
	flow_known_keep(bytes, ret);
	return NULL;
}

/* push rbp; mov rbp, rsp, in either encoding */
static bool is_prologue(const u8 *p)
{
	return !memcmp(p, "\x55\x48\x8b\xec", 4) || !memcmp(p, "\x55\x48\x89\xe5", 4);
}

/*
 * How many of the n bytes of an instruction lie before a function. The last bytes of a table before it may be the
 * beginning of an instruction that would reach into it: shuffle masks of AES end with an `or`.
 */
static u32 before_function(const u8 *bytes, u64 addr, size_t size, u32 n)
{
	for (u32 i = FUNCTION_ALIGN - (addr & (FUNCTION_ALIGN - 1)); i < n && i + 4 <= size; i += FUNCTION_ALIGN)
		if (is_prologue(bytes + i))
			return i;
	return n;
}

static struct error *read_all(const u8 *bytes, u64 addr, size_t size, struct flow *f)
{
	struct error *err = NULL;
	u32 done, before;

	for (; size && !err; bytes += done, addr += done, size -= done) {
		struct flow_ins *ins = next_ins(f);

		if (!ins)
			return &error_no_memory;
		err = read_one(bytes, addr, size, ins);
		done = ins->size ? ins->size : 1;
		before = before_function(bytes, addr, size, done);
		f->n += ins->size && before == done;
		done = before;
	}
	return err;
}

/* One more than there are instructions. */
static struct error *make_room(struct flow *f)
{
	if (f->n < f->room)
		return NULL;
	free(f->state);
	free(f->work);
	f->room = f->n + 1;
	f->state = reallocarray(NULL, f->room, sizeof(*f->state));
	f->work = reallocarray(NULL, f->room, sizeof(*f->work));
	if (f->state && f->work)
		return NULL;
	flow_free(f);
	return &error_no_memory;
}

struct error *flow_read(const u8 *bytes, u64 addr, size_t size, struct flow *f)
{
	struct error *err;

	f->n = f->nwork = f->start = 0;
	err = read_all(bytes, addr, size, f);
	if (!err)
		err = make_room(f);
	if (!err)
		memset(f->state, 0, (f->n + 1) * sizeof(*f->state));
	return err;
}

void flow_free(struct flow *f)
{
	free(f->ins);
	free(f->state);
	free(f->work);
	*f = (struct flow){0};
}

u32 flow_find(const struct flow *f, u64 addr)
{
	u32 at = SEARCH(f->n, k, f->ins[k].addr < addr);

	return at;
}
