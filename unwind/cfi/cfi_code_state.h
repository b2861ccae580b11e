/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state before an instruction, as far as the instructions before it show it: where the CFA is, and where the
 * caller's registers are saved. Part of cfi_code.c's work (cfi_internal.h).
 */
#ifndef YRT_CFI_CODE_STATE_H
#define YRT_CFI_CODE_STATE_H

#include <capstone/capstone.h>
#include <stddef.h>
#include <types.h>

#include "shared/cfi.h"

#define CODE_LOST INT32_MAX

struct code_state {
	s32 below[ARCH_NREGS]; /* CFA - register; CODE_LOST: not known */
	/*
	 * A stack pointer that was rounded down: the CFA is no longer a constant above it. A is what it was right after
	 * that; slots near it are identified by their distance below A.
	 */
	s32 aligned;                   /* A - rsp; CODE_LOST: it was not */
	s32 kept;                      /* A - a slot that holds an address of the stack; CODE_LOST: none */
	s32 kept_below;                /* CFA - that address */
	s32 aligned_slot[ARCH_NSAVED]; /* A - the slot of a register that was saved since; CODE_LOST: it was not */
	s16 slot[ARCH_NSAVED];         /* as in struct cfi_rule */
	u16 root;                      /* the outermost frame */
};

/* Is the caller's frame pointer below the return address, and does rbp point to it? */
bool code_state_in_body(const struct code_state *s);

struct code_state code_state_entry(void); /* of a function that was called */
struct code_state code_state_root(void);  /* of the file's entry point, that nobody called */
/* The state behind an instruction. */
void code_state_step(struct code_state *s, const cs_insn *in);
/* xor %ebp, %ebp marks the outermost frame only where code is written for that. */
void code_state_is_no_root(struct code_state *s);
/* doubtful: whoever steps by it makes sure that a call is where it leads to. */
struct cfi_rule code_state_rule(const struct code_state *s, bool doubtful);

/*
 * How long an instruction with a VEX or EVEX prefix is, of any extension, as old disassemblers do not know all of
 * AVX-512; 0: none. (Intel SDM volume 2, 2.3 and 2.7.) None of those that capstone 4 does not know changes the stack
 * pointer.
 */
u32 code_vector_size(const u8 *code, size_t size);

/*
 * syscall; test %rax, %rax (or %eax); jcc, behind mov $56, %al (or %eax), or mov $435, %eax: clone() or clone3(), which
 * come back in the child, too, with 0 and a stack without a caller. Its size; 0: it is another. before: how many bytes
 * lie before code. (glibc 2.19 to 2.42, sysdeps/unix/sysv/linux/x86_64/clone.S and clone3.S; musl 1.1 to 1.2,
 * src/thread/x86_64/clone.s.)
 */
u32 code_newborn_size(const u8 *code, size_t before, size_t size);

u8 code_register(const cs_x86_op *op); /* DWARF number; CAPSTONE_NO_REG */

#endif
