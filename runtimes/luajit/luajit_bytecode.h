/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions: 32 bits, the opcode in byte 0, operand A in byte 1, then C and B, or D (16 bits). */
#ifndef YRT_LUAJIT_BYTECODE_H
#define YRT_LUAJIT_BYTECODE_H

#include <types.h>

#define LUAJIT_OPS        97
#define LUAJIT_OP_CALLMT  67 /* calls that take the caller's place: CALLMT, CALLT */
#define LUAJIT_OP_CALLT   68
#define LUAJIT_OP_RETM    73 /* returns: RETM, RET, RET0, RET1 */
#define LUAJIT_OP_RET1    76
#define LUAJIT_OP_FUNCF   89 /* headers of functions: FUNCF, IFUNCF, JFUNCF, FUNCV, IFUNCV, JFUNCV */
#define LUAJIT_OP_FUNCV   92
#define LUAJIT_OP_JFUNCV  94
#define LUAJIT_OP_PATCHED 69 /* ITERC: from there on instructions are specialised, or replaced by J* and I* forms */

/* What operand A of an instruction is, as far as names of functions depend on it. */
enum luajit_operand { OPERAND_OTHER, OPERAND_DST, OPERAND_BASE };

struct luajit_op {
	const char *name;
	const char *metamethod; /* "__index"; "call" for calls; NULL */
	enum luajit_operand a;
};

/* By opcode. */
extern const struct luajit_op luajit_ops[LUAJIT_OPS];

static inline u8 luajit_operand_a(u32 instruction)
{
	return instruction >> 8 & 0xff;
}

static inline u8 luajit_operand_c(u32 instruction)
{
	return instruction >> 16 & 0xff;
}

static inline u16 luajit_operand_d(u32 instruction)
{
	return instruction >> 16;
}

#endif
