/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code reduced to its memory operands, which show where members of structures are. */
#ifndef YRT_LUAJIT_ACCESS_H
#define YRT_LUAJIT_ACCESS_H

#include <capstone/capstone.h>

#include "error.h"

#include <types.h>

/* An instruction's operand in memory, or (base X86_REG_INVALID) a constant that is added to reg. */
struct luajit_access {
	s64 disp, imm;
	u16 ins;         /* x86_insn */
	u16 base, index; /* x86_reg */
	u16 reg;         /* the other operand; X86_REG_INVALID: none */
	u8 size;
	bool store, has_imm;
};

/* Disassembles bytes, up to the first one that is no instruction. ret: n of them; free() it, also after an error. */
struct error *luajit_accesses_read(const u8 *bytes, size_t size, u64 addr, struct luajit_access **ret, u32 *n);

#endif
