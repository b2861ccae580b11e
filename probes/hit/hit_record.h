/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What BPF tells user space of slow calls. */
#ifndef YRT_HIT_RECORD_H
#define YRT_HIT_RECORD_H

#include <arch.h>
#include <types.h>

#include "unwind/shared/record.h"

/* Registers are numbered as in DWARF (System V psABI for AMD64, 3.6.2). */
#define LATENCY_REGS   12 /* rax to r11: all that pass arguments, and two more */
#define LATENCY_SP     DWREG_RSP
#define LATENCY_SPECS  64 /* -e that are measured at once. A power of two */
#define LATENCY_WAITS  16 /* of a call, with different stacks; the longest are kept. A power of two */
#define LATENCY_BEHIND 96
#define LATENCY_MEMORY 128 /* bytes that are taken of what a register points to */
#define LATENCY_RESULT 15  /* registers as a call returns, in the order of struct pt_regs, r15 to rdi */

/* A wait of a thread, or several of one call with the same stack. */
struct latency_wait {
	u64 began, ns; /* the first; all */
	u64 hash;      /* of the stack; 0: it was not taken */
	u32 reason, stop;
};

/* A slow call is over (RECORD_EVENT). */
struct latency_record {
	u32 type;
	u32 tgid, tid;         /* in the pid namespace of yrt, as far as known */
	u32 which;             /* the function, by the cookie of its entry */
	u64 began, ns;         /* CLOCK_MONOTONIC; how long it took */
	u64 call;              /* the key of its struct values_record, which was told before; 0: none was */
	u64 reg[LATENCY_REGS]; /* as it began */
	u32 read, text; /* bit n: memory[n] is there; the same, up to a 0 only. LATENCY_RETURNED: of returned[] */
	u32 followed;   /* bit n: behind[n] is there */
	u32 nwaits, nticks;
	u32 carried;  /* 1: of a thread that others carry (virtual threads): waits and ticks are of the last of them */
	u32 happened; /* of a language's function, by the hit that told its end: enum callee_happened */
	u32 reserved;
	struct latency_wait wait[LATENCY_WAITS]; /* also of calls around this one, which began before; */
	struct latency_wait tick[LATENCY_WAITS]; /* as what it ran at ticks of a clock */
	char comm[COMM_LEN];
	u8 memory[LATENCY_REGS][LATENCY_MEMORY]; /* what is at reg[n], as the call ended */
	u8 behind[LATENCY_REGS][LATENCY_BEHIND]; /* what the first or second word of memory[n] points to */
	u64 result[LATENCY_RESULT];              /* if `followed` has LATENCY_RETURNED, */
	u8 returned[LATENCY_MEMORY];             /* and what rax points to then */
};
#define LATENCY_RETURNED (1u << 31)

/* Was it in the call, not in one around it? */
static inline bool latency_is_within(const struct latency_record *record, const struct latency_wait *wait)
{
	return wait->began >= record->began && wait->began < record->began + record->ns;
}

#endif
