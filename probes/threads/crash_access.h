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
/* "read", …; NULL: unknown. */
const char *crash_access_word(enum crash_access access);

#endif
