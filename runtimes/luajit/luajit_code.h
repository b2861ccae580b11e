/* SPDX-License-Identifier: Apache-2.0 */
/* The VM's code as instructions, reduced to what changes the stack pointer, saved registers or links of frames. */
#ifndef YRT_LUAJIT_CODE_H
#define YRT_LUAJIT_CODE_H

#include "code/capstone_registers.h"
#include "error.h"

#include <types.h>

enum code_op {
	CODE_OTHER,
	CODE_PUSH,    /* reg */
	CODE_POP,     /* reg */
	CODE_MOVE_SP, /* rsp += value */
	CODE_SET_SP,  /* rsp = reg */
	CODE_SET_FP,  /* rbp = rsp */
	CODE_LEAVE,
	CODE_STORE,  /* [base + value] = reg, 8 or 4 bytes */
	CODE_LOAD,   /* reg = [base + value], 8 or 4 bytes */
	CODE_ADD,    /* reg += value */
	CODE_FLIP,   /* reg ^= value */
	CODE_JUMP,   /* to target */
	CODE_BRANCH, /* to target, or not */
	CODE_CALL,   /* target: 0 if it is not known */
	CODE_END,    /* goes elsewhere */
};

#define CODE_NO_REG CAPSTONE_NO_REG

struct code_ins {
	u64 addr;
	u64 target;
	s64 value;
	u8 op;        /* enum code_op */
	u8 reg, base; /* DWARF numbers, CODE_NO_REG if none */
	u8 size;      /* of what is loaded or stored */
};

struct code {
	struct code_ins *ins;
	u32 n;
};

/* Disassembles all of size bytes. An error if that does not succeed to the last byte. */
struct error *code_read(const u8 *bytes, u64 addr, size_t size, struct code *ret);
void code_free(struct code *code);
/* The number of the instruction that starts at addr, or code->n. */
u32 code_find(const struct code *code, u64 addr);

#endif
