/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long an instruction is, where it goes on, and whether it changes the stack or the frame pointer: a small decoder
 * of x86-64 for looking at much code, where a disassembler would take too long. (Intel SDM volume 2, 2.1 to 2.7 and
 * appendix A.)
 */
#ifndef YRT_INSN_H
#define YRT_INSN_H

#include <stddef.h>
#include <types.h>

#define INSN_MAX 15

enum insn_kind {
	INSN_BAD, /* not known, or cut off */
	INSN_OTHER,
	INSN_PUSH_FP,
	INSN_SET_FP, /* mov %rsp, %rbp */
	INSN_POP_FP, /* or leave */
	INSN_PUSH,
	INSN_CALL,
	INSN_CALL_INDIRECT,
	INSN_JUMP,
	INSN_JUMP_IF,
	INSN_JUMP_INDIRECT,
	INSN_RETURN,
	INSN_TRAP, /* nothing follows */
};

struct insn {
	u8 kind; /* enum insn_kind */
	u8 size;
	bool writes_fp; /* may do so, otherwise than its kind says; a call, push or pop moves rsp in any case */
	bool writes_sp;
	bool compares;      /* a register with the constant imm */
	bool relative;      /* disp counts from the next instruction: makes, or uses, an address */
	u8 disp_at, imm_at; /* their first bytes; 0: it has none */
	s64 imm;            /* the constant; of INSN_CALL, INSN_JUMP and INSN_JUMP_IF: how far they lead */
	s32 disp;
};

/* Decodes the first of size bytes of code. */
struct insn insn_decode(const u8 *code, size_t size);

#endif
