/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where targets come to CPUs whose clock is stopped (clock.c). */
#ifndef YRT_CLOCK_CPUS_BPF_H
#define YRT_CLOCK_CPUS_BPF_H

#include "clock/clock_state.h"

u8 clock_state[CLOCK_CPUS] = {0}; /* enum clock_state */

static inline void clock_arrival(struct task_struct *task, u32 cpu, bool is_new)
{
	u32 tgid, type = RECORD_EVENT;
	u8 state;

	WALK_BARRIER(cpu);
	if (cpu >= CLOCK_CPUS)
		return;
	state = clock_state[cpu];
	if (state != CLOCK_STOPPED && !(is_new && state == CLOCK_TICKS))
		return;
	tgid = tgid_of(task);
	if (!bpf_map_lookup_elem(&processes, &tgid))
		return;
	WALK_BARRIER(cpu);
	if (cpu >= CLOCK_CPUS)
		return;
	clock_state[cpu] = state == CLOCK_STOPPED ? CLOCK_WANTED : CLOCK_ARRIVED;
	if (state == CLOCK_STOPPED)
		bpf_ringbuf_output(&ring, &type, sizeof(type), BPF_RB_FORCE_WAKEUP);
}

SEC("raw_tp/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int cpu)
{
	clock_arrival(task, (u32)cpu, false);
	return 0;
}

/* A new thread does not migrate to its first CPU. A child that is followed has its entry by then (follow.bpf.h). */
SEC("raw_tp/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task)
{
	clock_arrival(task, (u32)BPF_CORE_READ(task, wake_cpu), true);
	return 0;
}

#endif
