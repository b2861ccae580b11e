/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_code.h"

#include <string.h>

#include "unwind/code/capstone_group.h"
#include "unwind/code/capstone_registers.h"
#include "unwind/code/disassembler.h"
#include "unwind/symbols/parameters.h"
#include "unwind/symbols/symbols.h"

#define CODE_MAX 1024 /* bytes that are looked at */

/* Arguments end to have their registers there. */
static bool is_end(const cs_insn *insn)
{
	return capstone_in_group(insn, CS_GRP_CALL) || capstone_in_group(insn, CS_GRP_RET) || insn->id == X86_INS_JMP ||
	       insn->id == X86_INS_SYSCALL;
}

/* xor %edi, %edi sets the register, whatever it had. */
static bool is_zeroing(const cs_insn *insn)
{
	const cs_x86 *x86 = &insn->detail->x86;

	return (insn->id == X86_INS_XOR || insn->id == X86_INS_SUB) && x86->op_count == 2 &&
	       x86->operands[0].type == X86_OP_REG && x86->operands[1].type == X86_OP_REG &&
	       x86->operands[0].reg == x86->operands[1].reg;
}

/* Bit n: parameter_regs[n] is one of them. */
static u32 arguments_among(csh cs, const u16 *regs, u8 n)
{
	static const char *const low[] = {"dil", "sil", "dl", "cl", "r8b", "r9b"};
	u32 ret = 0;

	for (u8 i = 0; i < n; i++) {
		const char *name = cs_reg_name(cs, regs[i]);
		u8 number = capstone_register(regs[i]);

		for (u32 k = 0; k < sizeof(parameter_regs); k++)
			if (number == parameter_regs[k] || (name && !strcmp(name, low[k])))
				ret |= 1u << k;
	}
	return ret;
}

static u32 count_read(struct disassembler *d, const u8 *at, size_t left, u64 addr)
{
	const cs_insn *insn = d->in;
	u32 written = 0, ret = 0;

	while (left && cs_disasm_iter(d->handle, &at, &left, &addr, d->in) && !is_end(insn)) {
		cs_regs read, write;
		u8 nread, nwrite;
		u32 new;

		if (cs_regs_access(d->handle, insn, read, &nread, write, &nwrite))
			break;
		new = is_zeroing(insn) ? 0 : arguments_among(d->handle, read, nread) & ~written;
		written |= arguments_among(d->handle, write, nwrite);
		while (new >> ret)
			ret++;
	}
	return ret;
}

u32 hit_code_arguments(struct image *img, u64 addr)
{
	u8 code[CODE_MAX];
	struct symbol sym;
	size_t size = CODE_MAX;
	struct disassembler d;
	u32 ret;

	if (symbols_find(img, addr, &sym) && sym.end > addr && sym.end - addr < size)
		size = sym.end - addr;
	if (!image_read(img, code, size, addr) || !disassembler_open(&d))
		return 0;
	ret = count_read(&d, code, size, addr);
	disassembler_close(&d);
	return ret;
}
