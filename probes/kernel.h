/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The few kernel structures that the probes look into, as CO-RE flavours: only the fields that are read, relocated to the
 * running kernel when loading.
 */
#ifndef YRT_KERNEL_H
#define YRT_KERNEL_H

#include <types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct thread_struct {
	unsigned long fsbase;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct mm_struct {
	unsigned long start_stack;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct task_struct {
	struct sched_entity se;
	unsigned long nvcsw, nivcsw;
	u64 start_time;
	char comm[16];
	int pid;
	int tgid;
	unsigned int flags;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct thread_struct thread;
};

struct hw_perf_event {
	u64 sample_period;
};

struct perf_event {
	struct hw_perf_event hw;
};

struct bpf_perf_event_data_kern {
	struct perf_event *event;
};

struct pt_regs___kernel {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000

#endif
