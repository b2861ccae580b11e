/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The system call that a thread is in. One that was interrupted in a sleep, a poll() or a timed wait for a futex (by
 * SIGSTOP, a debugger, or a control group's freezer) goes on in restart_syscall(2): its registers are as they were but
 * for the number of the call, and the kernel keeps what there is to go on with.
 */
#ifndef YRT_SYSCALL_OF_BPF_H
#define YRT_SYSCALL_OF_BPF_H

#include "kernel.h"

#define SYSCALL_POLL            7
#define SYSCALL_NANOSLEEP       35
#define SYSCALL_FUTEX           202
#define SYSCALL_RESTART         219
#define SYSCALL_CLOCK_NANOSLEEP 230
#define CLOCK_MONOTONIC         1

/*
 * Which of the calls it is follows from what the kernel kept and these arguments have in common. poll()'s third is a
 * number, clock_nanosleep()'s an address. The clock of a sleep by CLOCK_REALTIME is kept as CLOCK_MONOTONIC.
 */
static __attribute__((noinline)) u32 syscall_restarted(struct task_struct *task)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	u64 di = BPF_CORE_READ(r, di), si = BPF_CORE_READ(r, si), dx = BPF_CORE_READ(r, dx), rest;
	bool forever = (u32)dx >> 31;
	int clock;

	if (!bpf_core_field_exists(task->restart_block.futex.val) ||
	        !bpf_core_field_exists(task->restart_block.poll.has_timeout) ||
	        !bpf_core_field_exists(task->restart_block.nanosleep.rmtp))
		return SYSCALL_RESTART;
	if ((u64)BPF_CORE_READ(task, restart_block.futex.uaddr) == di && di &&
	        BPF_CORE_READ(task, restart_block.futex.val) == (u32)dx)
		return SYSCALL_FUTEX;
	if ((u64)BPF_CORE_READ(task, restart_block.poll.ufds) == di &&
	        BPF_CORE_READ(task, restart_block.poll.nfds) == (int)si &&
	        !BPF_CORE_READ(task, restart_block.poll.has_timeout) == forever &&
	        (dx >> 32 == 0 || (forever && (dx >> 32) + 1 == 1ull << 32)))
		return SYSCALL_POLL;
	clock = BPF_CORE_READ(task, restart_block.nanosleep.clockid);
	rest = (u64)BPF_CORE_READ(task, restart_block.nanosleep.rmtp);
	if (clock == (di ? (int)di : CLOCK_MONOTONIC) && rest == BPF_CORE_READ(r, r10))
		return SYSCALL_CLOCK_NANOSLEEP;
	return clock == CLOCK_MONOTONIC && rest == si ? SYSCALL_NANOSLEEP : SYSCALL_RESTART;
}

/* Below 0: none. */
static inline s64 syscall_of(struct task_struct *task)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	s64 number = BPF_CORE_READ(r, orig_ax);

	return number == SYSCALL_RESTART ? syscall_restarted(task) : number;
}

#endif
