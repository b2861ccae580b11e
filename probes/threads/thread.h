/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the kernel knows of a thread at one moment, as the task iterator hands it over: enough to walk its user stack
 * from outside while it is off the CPU, and to tell later whether it ran meanwhile.
 */
#ifndef YRT_THREAD_H
#define YRT_THREAD_H

#include <arch.h>
#include <types.h>

#include "unwind/shared/record.h"

#define THREAD_COMM_LEN      16
#define THREAD_KERNEL_FRAMES 64

enum thread_flag {
	THREAD_ON_CPU = 1,  /* runs at this moment: registers and kernel frames are worth nothing */
	THREAD_EXITING = 2, /* has no user stack any more */
	THREAD_LEADER = 4,
	THREAD_IN_CORE = 8, /* of a core file, which knows no state */
	THREAD_KILLED = 16, /* the signal that the core was written for was its */
};

/* Bits of a task's state (include/linux/sched.h, the same since 4.14). */
enum thread_state {
	THREAD_RUNNABLE = 0,
	THREAD_INTERRUPTIBLE = 1,
	THREAD_UNINTERRUPTIBLE = 2,
	THREAD_STOPPED = 4,
	THREAD_TRACED = 8,
	THREAD_PARKED = 0x40,
	THREAD_NOLOAD = 0x400,
	THREAD_FROZEN = 0x8000,
};

struct thread_record {
	u32 tgid, tid; /* in the pid namespace of yrt */
	u32 own_tid;   /* in the thread's own pid namespace */
	u32 flags;     /* enum thread_flag */
	u32 state;     /* enum thread_state; bits that are not listed mean nothing here */
	s32 syscall;   /* its number; < 0: it is in none */
	u64 arguments[6];
	u64 reg[ARCH_NREGS]; /* DWARF numbers; of the return to user space */
	u64 thread_pointer;
	u64 switches; /* context switches so far: the same number again means that it did not run */
	u64 off_ns;   /* for how long it is off the CPU; 0: unknown */
	u64 run_ns;   /* CPU time that it has used */
	char comm[THREAD_COMM_LEN];
	u32 nkernel; /* frames in kernel[], leaf first: return addresses */
	u32 reserved;
	u64 kernel[THREAD_KERNEL_FRAMES];
	struct return_probes probes;
};

#endif
