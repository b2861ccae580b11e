/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the unwinder needs to know of x86-64. Register numbers are those of DWARF (System V ABI, AMD64 supplement,
 * figure 3.36), so that CFI needs no translation.
 */
#ifndef YRT_ARCH_H
#define YRT_ARCH_H

#include <types.h>

enum {
	DWREG_RAX,
	DWREG_RDX,
	DWREG_RCX,
	DWREG_RBX,
	DWREG_RSI,
	DWREG_RDI,
	DWREG_RBP,
	DWREG_RSP,
	DWREG_R8,
	DWREG_R9,
	DWREG_R10,
	DWREG_R11,
	DWREG_R12,
	DWREG_R13,
	DWREG_R14,
	DWREG_R15,
	DWREG_RIP,
	ARCH_NREGS,
};

/* The words of struct pt_regs (Linux) that have the general registers, by their numbers. */
#define ARCH_PT_REGS_WORDS                                                                                             \
	{                                                                                                              \
		10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0                                                   \
	}

#define REG_PC     DWREG_RIP
#define REG_SP     DWREG_RSP
#define REG_FP     DWREG_RBP
#define REG_RESULT DWREG_RAX /* of a function or system call */

/* The registers that a callee preserves, in the order of the slots of a cfi_rule; the return address is the last slot.
 */
#define ARCH_SAVED_REGS(X)                                                                                             \
	X(0, DWREG_RBX) X(1, DWREG_RBP) X(2, DWREG_R12) X(3, DWREG_R13) X(4, DWREG_R14) X(5, DWREG_R15)
#define ARCH_NSAVED  6
#define ARCH_NSLOTS  7
#define ARCH_SLOT_RA 6

/* The slot of a register that a callee preserves; ARCH_NSAVED: reg is not one of these. */
static inline u32 arch_saved_slot(u32 reg)
{
	switch (reg) {
#define SLOT(i, r)                                                                                                     \
	case r:                                                                                                        \
		return i;
		ARCH_SAVED_REGS(SLOT)
#undef SLOT
	}
	return ARCH_NSAVED;
}

/* Bits of struct walk.valid: registers that still hold after a return to the caller. */
#define ARCH_SAVED_MASK                                                                                                \
	(1u << DWREG_RBX | 1u << DWREG_RBP | 1u << DWREG_R12 | 1u << DWREG_R13 | 1u << DWREG_R14 | 1u << DWREG_R15)

/* A return address stands after the call: one byte back lies inside it. */
#define ARCH_CALL_BACK 1

#endif
