/* SPDX-License-Identifier: Apache-2.0 */
#include "crash_access.h"

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

static bool lies_at(const struct moment *at, const cs_x86_op *op, u64 addr)
{
	u64 base, index, start;

	if (op->type != X86_OP_MEM || op->mem.segment == X86_REG_GS || !value_of(at, op->mem.base, &base) ||
	        !value_of(at, op->mem.index, &index))
		return false;
	start = base + index * (u64)op->mem.scale + (u64)op->mem.disp;
	if (op->mem.segment == X86_REG_FS)
		start += at->thread_pointer;
	return addr - start < (op->size ? op->size : 1);
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

enum crash_access crash_access(const struct process *p, const u64 reg[ARCH_NREGS], u64 thread_pointer, u64 addr,
        char text[CRASH_INSN], int *base)
{
	enum crash_access found = addr == reg[REG_PC] ? CRASH_RUN : CRASH_UNKNOWN;
	u8 code[INSN_MOST];
	const u8 *bytes = code;
	size_t n = INSN_MOST;
	u64 next = reg[REG_PC];
	struct disassembler d;

	text[0] = '\0';
	*base = -1;
	while (n && !memory_read(p->memory, code, n, reg[REG_PC]))
		n--;
	if (!n || !disassembler_open(&d))
		return found;
	if (cs_disasm_iter(d.handle, &bytes, &n, &next, d.in)) {
		struct moment at = {reg, thread_pointer, next};

		snprintf(text, CRASH_INSN, "%s%s%s", d.in->mnemonic, *d.in->op_str ? " " : "", d.in->op_str);
		found = found ? found : access_of(&at, d.in, addr, base);
	}
	disassembler_close(&d);
	return found;
}

const char *crash_access_word(enum crash_access access)
{
	static const char *const words[] = {NULL, "read", "write", "run"};

	return words[access];
}
