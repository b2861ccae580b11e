/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How long calls of a function take, from its first instruction to the instruction that leaves it (hit_exits.h). Entry
 * and exit are paired by process and stack pointer. Nothing is put on the target's stack, unlike with the kernel's
 * return probes. If stacks move meanwhile, calls are paired by the stack and the distance from its end. A call that an
 * exception or longjmp() ends has no return, and is counted as such.
 *
 * A call that leaves its function by a jump to another one (a tail call) lasts until that one returns, where the stack
 * pointer is what it was at the entry (hit_tails.h). The jump marks the call, so that other calls of that function do
 * not end it. Where such a jump leads is known from the code, or user space is told as it is first seen
 * (struct latency_target). A call that goes where returns are not known has no time, and is counted as such.
 */
#ifndef YRT_LATENCY_H
#define YRT_LATENCY_H

#include <types.h>

/* Histogram buckets: 1 ns wide below LATENCY_STEPS ns, then LATENCY_STEPS for each power of two, up to 73 minutes. */
#define LATENCY_STEPS   64
#define LATENCY_BUCKETS (LATENCY_STEPS * 37)
#define LATENCY_PRICES  64 /* measured of a run */

struct hit_counts {         /* of uprobes' hits by targets; in BPF one for each CPU */
	u64 entries, exits; /* that were hit while uprobes were placed */
	u64 stand_for;      /* entries, each with those that it stands for (hit_shifts.h); tracepoints' hits, too */
	s64 under_way;      /* calls that have begun and not ended, as far as it was seen */
};

struct latency_stats { /* of an -e; in BPF one for each CPU. Calls of a shift stand for others */
	u64 entered, returned;
	u64 unpaired; /* returns of calls that began before */
	u64 left;     /* calls that were left without a return: others had their place on the stack */
	u64 raised;   /* of those that returned: an exception left them */
	u64 lost;     /* left by a jump to where returns are not known */
	u64 slow;     /* of those that returned: at least over_ns */
	u64 sum_ns, max_ns;
	u64 bucket[LATENCY_BUCKETS];
};

/* Stacks of a process that move (struct runtime_stacks of unwind/runtime.h), of each runtime in it. */
#define LATENCY_MOVING 4
struct latency_stacks {
	u32 n, reserved;
	struct {
		s64 pointer;
		u32 bounds, thread, own, reserved;
	} of[LATENCY_MOVING];
};

/*
 * A jump that leaves a function, or not, as flags or its target say. Registers are given by their places in struct
 * pt_regs.
 */
#define LATENCY_PARTS 8
#define LATENCY_NONE  0xff
struct latency_jump {
	u64 at;                                       /* in the file, as the parts */
	u64 start[LATENCY_PARTS], end[LATENCY_PARTS]; /* of the function: a target in there is no way out */
	u32 nparts;
	s32 disp;
	u8 condition; /* of jcc, its opcode's low bits: it leaves if that holds. LATENCY_NONE: by its target */
	u8 base, index, scale;
	u8 in_memory; /* the target is read from there */
	u8 reserved[3];
	u64 slot; /* in the file: the target is read from there, of a table that the linker fills; 0: none */
};
#define LATENCY_JUMPS 1024

/* Cookies of exits: the number of a jump in the low 32 bits, and whose call it ends. */
#define LATENCY_COOKIE_KEY 0xffffu      /* of an entry: the number of what is read of its arguments (hit_values.h) */
#define LATENCY_FUNCTION   32           /* from this bit: 16 bits, the function's number (LATENCY_SPEC) */
#define LATENCY_BORROWED   (1ull << 48) /* an exit of a function that calls are left to: of marked ones only */
#define LATENCY_LOST       (1ull << 49) /* a jump to where returns are not known */
#define LATENCY_ASK        (1ull << 50) /* to where latency_targets says */

/* A function's number: from this bit on which -e it is of; below, its place among all, from 1. */
#define LATENCY_SPEC 10

enum latency_target_state { /* in latency_targets */
	LATENCY_TOLD = 1,   /* user space is looking, or could not find out */
	LATENCY_FOLLOWED,   /* the returns are known */
	LATENCY_AGAIN,      /* it is the function itself */
};
struct latency_target { /* as a record: RECORD_EVENT, of this size */
	u32 type;
	u32 tgid;
	u32 function, reserved;
	u64 to; /* where the process has it */
};

static inline u32 latency_bucket(u64 ns)
{
	u32 power = 0;

	for (u32 step = 32; step; step >>= 1) { /* BPF knows no count of leading zeros */
		u64 above = ns >> power >> step, sign = above | -above;

		__asm__("" : "+r"(sign)); /* no branch, both ways of which the verifier would follow */
		power += step & -(u32)(sign >> 63);
	}
	if (ns < LATENCY_STEPS)
		return (u32)ns;
	if (power > 41)
		return LATENCY_BUCKETS - 1;
	return LATENCY_STEPS * (power - 5) + (u32)(ns >> (power - 6) & (LATENCY_STEPS - 1));
}

/* The least that is in it. */
static inline u64 latency_least(u32 bucket)
{
	return bucket < LATENCY_STEPS ? bucket
	                              : ((u64)LATENCY_STEPS + bucket % LATENCY_STEPS) << (bucket / LATENCY_STEPS - 1);
}

#endif
