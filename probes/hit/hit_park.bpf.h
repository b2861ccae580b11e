/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Waits of what waits without a thread, in calls that may turn out slow: a stack that moves is left where its owner
 * parks, and the thread goes on with others. It waits until that function returns.
 */
#ifndef YRT_HIT_PARK_BPF_H
#define YRT_HIT_PARK_BPF_H

#include "hit/hit.bpf.h"
#include "hit/hit_slow.bpf.h"

u32 slow_park_reason = 0;

/* Is what parks here in a call? Its entry in slow_away is free while its thread runs. */
WALK_GLOBAL int slow_parks(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 pid = (u32)task->pid;
	struct slow_off off = {0};

	if (!slow_in_call(task, &off) || !off.line.stack)
		return false;
	off.wait.reason = slow_park_reason;
	return !bpf_map_update_elem(&slow_away, &pid, &off, BPF_ANY);
}

/* Its entry waits with it from here on. */
WALK_GLOBAL int slow_park(u64 hash, u32 stop)
{
	u32 pid = (u32)bpf_get_current_task_btf()->pid;
	struct slow_off *away = bpf_map_lookup_elem(&slow_away, &pid), off;

	if (!away)
		return 0;
	off = *away;
	off.wait.hash = hash;
	off.wait.stop = stop;
	bpf_map_update_elem(&slow_parked, &off.line, &off, BPF_ANY);
	bpf_map_delete_elem(&slow_away, &pid);
	return 0;
}

WALKING("uprobe", on_call_park)
int on_call_park_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hit_counts *counts = hit_counts_here();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task), number, stop = 0;
	u64 begin = bpf_ktime_get_ns(), hash = 0;
	struct slot *slot;
	int instance;

	if (ticks != TICKS_TAKEN || !st || !counts)
		return 0;
	counts->entries++;
	if (!slow_parks())
		return 0;
	instance = stack_budget_allows(begin) ? find_target() : 0;
	slot = instance ? event_begin(st, instance, tgid, 0, &number) : NULL;
	if (slot) {
		slot->head.reason = slow_park_reason;
		event_reason(slot);
		hit_end(slot, st, task, tgid);
		hash = slot->head.hash;
		stop = event_stop(slot);
		stack_budget_spend(begin);
	}
	return slow_park(hash, stop);
}

SEC("uprobe")
int on_call_resume(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hit_counts *counts = hit_counts_here();
	struct latency_key key = {0};
	struct slow_line_key line;
	struct slow_off *off;
	u32 pid = (u32)task->pid;

	if (ticks != TICKS_TAKEN || !find_target() || !counts)
		return 0;
	counts->exits++;
	latency_where(&key);
	slow_line_key(task, &key, &line);
	off = bpf_map_lookup_elem(&slow_parked, &line);
	if (!off)
		return 0;
	bpf_map_update_elem(&slow_away, &pid, off, BPF_ANY);
	bpf_map_delete_elem(&slow_parked, &line);
	slow_back(pid);
	return 0;
}

#endif
