/* SPDX-License-Identifier: Apache-2.0 */
/* What the instruction that failed did at an address, by its operands and the registers of that moment. */
#ifndef YRT_CRASH_ACCESS_H
#define YRT_CRASH_ACCESS_H

#include <arch.h>
#include <types.h>

struct process;

#define CRASH_INSN 200

enum crash_access { CRASH_UNKNOWN, CRASH_READ, CRASH_WRITE, CRASH_RUN };

/*
 * *text: "mov eax, dword ptr [rdi + 16]" of the instruction at the program counter; empty if it cannot be read. reg:
 * DWARF numbers. *base: the register from which the operand at addr was reached; -1: none, or also by an index.
 * CRASH_UNKNOWN: no operand of it lies at addr.
 */
enum crash_access crash_access(const struct process *p, const u64 reg[ARCH_NREGS], u64 thread_pointer, u64 addr,
        char text[CRASH_INSN], int *base);

#define CRASH_REFUSED 128

struct crash_refusal {
	char what[CRASH_REFUSED]; /* the thread did: "divided by zero"; empty: not known */
	bool has_address;         /* the address that it failed on, which the signal does not have */
	u64 address;
	char about[CRASH_REFUSED]; /* it */
	enum crash_access access;
};

/* Of a signal that is not about an address. code: si_code; 0: not known. */
void crash_refusal(const struct process *p, const u64 reg[ARCH_NREGS], u64 thread_pointer, u32 signal, s32 code,
        struct crash_refusal *ret);
/* "read", …; NULL: unknown. */
const char *crash_access_word(enum crash_access access);

#endif
