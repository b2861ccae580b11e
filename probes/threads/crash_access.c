/* SPDX-License-Identifier: Apache-2.0 */
#include "crash_access.h"

#include <signal.h>
#include <stdio.h>

#include "unwind/code/capstone_registers.h"
#include "unwind/code/disassembler.h"
#include "unwind/process/process.h"

#define INSN_MOST 15 /* bytes */

struct moment {
	const u64 *reg;
	u64 thread_pointer, next; /* next: the address of the instruction behind */
};

static bool value_of(const struct moment *at, u32 reg, u64 *ret)
{
	u8 number = capstone_register(reg);

	*ret = 0;
	if (reg == X86_REG_INVALID)
		return true;
	if (reg == X86_REG_RIP)
		*ret = at->next;
	else if (number != CAPSTONE_NO_REG)
		*ret = at->reg[number];
	return reg == X86_REG_RIP || number != CAPSTONE_NO_REG;
}

static bool start_of(const struct moment *at, const cs_x86_op *op, u64 *ret)
{
	u64 base, index;

	if (op->type != X86_OP_MEM || op->mem.segment == X86_REG_GS || !value_of(at, op->mem.base, &base) ||
	        !value_of(at, op->mem.index, &index))
		return false;
	*ret = base + index * (u64)op->mem.scale + (u64)op->mem.disp;
	if (op->mem.segment == X86_REG_FS)
		*ret += at->thread_pointer;
	return true;
}

static bool lies_at(const struct moment *at, const cs_x86_op *op, u64 addr)
{
	u64 start;

	return start_of(at, op, &start) && addr - start < (op->size ? op->size : 1);
}

/* A call and a push write below the stack pointer, a return and a pop read there. */
static enum crash_access access_of_stack(const cs_insn *insn, u64 sp, u64 addr)
{
	bool below = sp - addr <= 8 && sp != addr, at = addr - sp < 8;

	switch (insn->id) {
	case X86_INS_CALL:
	case X86_INS_PUSH:
	case X86_INS_ENTER:
		return below ? CRASH_WRITE : CRASH_UNKNOWN;
	case X86_INS_RET:
	case X86_INS_POP:
	case X86_INS_LEAVE:
		return at ? CRASH_READ : CRASH_UNKNOWN;
	default:
		return CRASH_UNKNOWN;
	}
}

static int base_of(const cs_x86_op *op)
{
	u8 number = op->mem.index == X86_REG_INVALID ? capstone_register(op->mem.base) : CAPSTONE_NO_REG;

	return number != CAPSTONE_NO_REG ? number : -1;
}

static enum crash_access access_of(const struct moment *at, const cs_insn *insn, u64 addr, int *base)
{
	const cs_x86 *x = &insn->detail->x86;
	enum crash_access found = CRASH_UNKNOWN;

	for (u8 i = 0; i < x->op_count; i++) {
		if (!lies_at(at, &x->operands[i], addr))
			continue;
		*base = base_of(&x->operands[i]);
		if (x->operands[i].access & CS_AC_WRITE)
			return CRASH_WRITE;
		found = CRASH_READ;
	}
	return found ? found : access_of_stack(insn, at->reg[REG_SP], addr);
}

/* The instruction at the program counter. Close the disassembler if true. */
static bool decode(const struct process *p, const u64 *reg, u64 *next, struct disassembler *ret)
{
	u8 code[INSN_MOST];
	const u8 *bytes = code;
	size_t n = INSN_MOST;

	*next = reg[REG_PC];
	while (n && !memory_read(p->memory, code, n, reg[REG_PC]))
		n--;
	if (!n || !disassembler_open(ret))
		return false;
	if (cs_disasm_iter(ret->handle, &bytes, &n, next, ret->in))
		return true;
	disassembler_close(ret);
	return false;
}

enum crash_access crash_access(const struct process *p, const u64 reg[ARCH_NREGS], u64 thread_pointer, u64 addr,
        char text[CRASH_INSN], int *base)
{
	enum crash_access found = addr == reg[REG_PC] ? CRASH_RUN : CRASH_UNKNOWN;
	struct moment at = {.reg = reg, .thread_pointer = thread_pointer};
	struct disassembler d;

	text[0] = '\0';
	*base = -1;
	if (!decode(p, reg, &at.next, &d))
		return found;
	snprintf(text, CRASH_INSN, "%s%s%s", d.in->mnemonic, *d.in->op_str ? " " : "", d.in->op_str);
	found = found ? found : access_of(&at, d.in, addr, base);
	disassembler_close(&d);
	return found;
}

/* --- what the processor refused although the address is not at fault, or that it does not tell --- */

static bool divisor_of(const struct process *p, const struct moment *at, const cs_x86_op *op, s64 *ret)
{
	u32 unused = 64 - 8 * op->size;
	u64 value = 0, start;
	u8 number;

	if (op->size != 1 && op->size != 2 && op->size != 4 && op->size != 8)
		return false;
	if (op->type == X86_OP_REG) {
		number = capstone_register_part(op->reg);
		if (number == CAPSTONE_NO_REG)
			return false;
		value = at->reg[number];
	} else if (!start_of(at, op, &start) || !memory_read(p->memory, &value, op->size, start)) {
		return false;
	}
	*ret = (s64)(value << unused) >> unused;
	return true;
}

/* Vector 0 has two reasons (Intel SDM 2A, DIV and IDIV): the divisor is 0, or the quotient does not fit. */
static void refused_division(const struct process *p, const struct moment *at, const cs_insn *insn, char *ret)
{
	const cs_x86 *x = &insn->detail->x86;
	bool is_signed = insn->id == X86_INS_IDIV;
	s64 divisor;

	if ((!is_signed && insn->id != X86_INS_DIV) || x->op_count != 1 ||
	        !divisor_of(p, at, &x->operands[0], &divisor))
		return;
	if (!divisor)
		snprintf(ret, CRASH_REFUSED, "divided by zero");
	else if (is_signed && divisor == -1)
		snprintf(ret, CRASH_REFUSED, "divided the least number of its type by -1");
	else
		snprintf(ret, CRASH_REFUSED, "divided, and the quotient does not fit its register");
}

/* Of a trap that the program has turned on by feenableexcept(). */
static const char *refused_float(s32 code)
{
	switch (code) {
	case FPE_FLTDIV:
		return "divided a floating-point number by zero";
	case FPE_FLTOVF:
		return "computed a floating-point number that is too large";
	case FPE_FLTUND:
		return "computed a floating-point number that is too small";
	case FPE_FLTRES:
		return "computed a floating-point number that is not exact";
	case FPE_FLTINV:
		return "asked for a floating-point number that does not exist, such as 0/0";
	default:
		return NULL;
	}
}

static bool is_canonical(u64 addr)
{
	return (s64)(addr << 16) >> 16 == (s64)addr;
}

/* Where a return, or a call or jump through a register or memory, leads. */
static bool target_of(const struct process *p, const struct moment *at, const cs_insn *insn, u64 *ret)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];
	u64 slot = at->reg[REG_SP];

	if (insn->id != X86_INS_RET) {
		if ((insn->id != X86_INS_CALL && insn->id != X86_INS_JMP) || insn->detail->x86.op_count != 1)
			return false;
		if (op->type == X86_OP_REG)
			return value_of(at, op->reg, ret);
		if (!start_of(at, op, &slot))
			return false;
	}
	return memory_read(p->memory, ret, sizeof(*ret), slot);
}

/* A general protection fault (vector 13) tells no address: of the operands, one that no memory can have. */
static void refused_address(
        const struct process *p, const struct moment *at, const cs_insn *insn, struct crash_refusal *ret)
{
	const cs_x86 *x = &insn->detail->x86;
	u64 start;

	for (u8 i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		if (insn->id == X86_INS_LEA || insn->id == X86_INS_NOP || !start_of(at, op, &start))
			continue;
		if (is_canonical(start) && (op->size < 16 || !(start % 16)))
			continue;
		ret->has_address = true;
		ret->address = start;
		ret->access = op->access & CS_AC_WRITE ? CRASH_WRITE : CRASH_READ;
		snprintf(ret->about, CRASH_REFUSED, "%s",
		        !is_canonical(start) ? "no memory can be there (it is not canonical)"
		                             : "it is not aligned, and this instruction demands it");
	}
	if (ret->has_address || !target_of(p, at, insn, &start) || is_canonical(start))
		return;
	*ret = (struct crash_refusal){.has_address = true, .address = start, .access = CRASH_RUN};
	snprintf(ret->about, CRASH_REFUSED, "no memory can be there (it is not canonical)");
}

static bool is_privileged(const struct disassembler *d)
{
	return cs_insn_group(d->handle, d->in, CS_GRP_PRIVILEGE);
}

void crash_refusal(const struct process *p, const u64 reg[ARCH_NREGS], u64 thread_pointer, u32 signal, s32 code,
        struct crash_refusal *ret)
{
	struct moment at = {.reg = reg, .thread_pointer = thread_pointer};
	const char *why = signal == SIGFPE ? refused_float(code) : NULL;
	struct disassembler d;

	*ret = (struct crash_refusal){0};
	if (why)
		snprintf(ret->what, CRASH_REFUSED, "%s", why);
	if (why || !decode(p, reg, &at.next, &d))
		return;
	if (signal == SIGFPE)
		refused_division(p, &at, d.in, ret->what);
	else if (signal == SIGILL && (d.in->id == X86_INS_UD2 || d.in->id == X86_INS_UD2B || d.in->id == X86_INS_UD0))
		snprintf(ret->what, CRASH_REFUSED,
		        "ended the program by a trap (%s), as of __builtin_trap() or where "
		        "no way should lead",
		        d.in->mnemonic);
	else if (signal == SIGSEGV && is_privileged(&d))
		snprintf(ret->what, CRASH_REFUSED, "ran an instruction that only the kernel may run");
	else if (signal == SIGSEGV && code == SI_KERNEL)
		refused_address(p, &at, d.in, ret);
	disassembler_close(&d);
}

const char *crash_access_word(enum crash_access access)
{
	static const char *const words[] = {NULL, "read", "write", "run"};

	return words[access];
}
