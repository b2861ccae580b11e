/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that run at probed places (hit.h). */
#ifndef YRT_HIT_BPF_H
#define YRT_HIT_BPF_H

#include "hit/hit_jump.bpf.h"
#include "hit/latency.h"

u32 hit_tracepoint = 0; /* the reason of tracepoints */

/* Set by hit_shifts.c. */
u64 hit_until = ~0ull; /* the shift's end (CLOCK_MONOTONIC, ns): later hits of uprobes do not count */
u32 hit_each = 1;      /* how many hits a hit of this shift counts for */
u32 hit_shift = 0;     /* the number of the shift: what began in another is not seen to its end */
u32 hit_has_turns = 0; /* on_turn() is placed */

u32 hit_asks = 0; /* some -e have a condition (y/y_if.h): what comes here was asked before */

struct { /* what evaluates it, by number of the -e; sized where there are some */
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} hit_ifs SEC(".maps");

struct { /* hits of targets, whether they were taken or not */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hit_counts);
} hit_counters SEC(".maps");

static inline struct hit_counts *hit_counts_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&hit_counters, &zero);
}

/* Threads that are about to come to the place again without a call: by a loop, or on a larger stack. */
struct { /* sized where functions are probed */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} hit_turns SEC(".maps");

SEC("uprobe")
int on_turn(struct pt_regs *ctx)
{
	struct hit_counts *counts = hit_counts_here();
	u32 thread = (u32)bpf_get_current_pid_tgid(), one = 1;

	if (ticks != TICKS_TAKEN || !find_target() || !counts)
		return 0;
	counts->exits++;
	if (latency_jumps_away(bpf_get_attach_cookie(ctx)))
		bpf_map_update_elem(&hit_turns, &thread, &one, BPF_ANY);
	return 0;
}

/* Is a hit a call that counts in this shift? */
static inline bool hit_is_call(struct hit_counts *counts)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();

	counts->entries++;
	if (hit_has_turns && !bpf_map_delete_elem(&hit_turns, &thread))
		return false;
	return bpf_ktime_get_ns() <= hit_until;
}

/* NULL: it was not chosen. */
static inline struct slot *hit_take(struct probe_stats *st, int instance, u32 tgid, u32 reason, u64 stands_for)
{
	u64 each = weight;
	struct slot *slot;
	u32 number;

	if (each > 1 && bpf_get_prandom_u32() % (u32)each)
		return NULL;
	slot = event_begin(st, instance, tgid, each * stands_for, &number);
	if (!slot)
		return NULL;
	slot->head.reason = reason;
	event_reason(slot);
	return slot;
}

static __attribute__((always_inline)) inline void hit_end(
        struct slot *slot, struct probe_stats *st, struct task_struct *task, u32 tgid)
{
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
}

WALKING("uprobe", on_hit)
int on_hit_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hit_counts *counts = hit_counts_here();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task), each = hit_each;
	int instance = ticks == TICKS_TAKEN ? find_target() : 0;
	struct slot *slot;

	if (!instance || !counts || !st || (!hit_asks && !hit_is_call(counts)))
		return 0;
	counts->stand_for += each;
	slot = hit_take(st, instance, tgid, (u32)bpf_get_attach_cookie(ctx), each);
	if (slot)
		hit_end(slot, st, task, tgid);
	return 0;
}

/* In place of on_hit(), where some -e have a condition. */
SEC("uprobe")
int on_hit_ask(struct pt_regs *ctx)
{
	u32 reason = (u32)bpf_get_attach_cookie(ctx);
	struct hit_counts *counts = hit_counts_here();

	if (ticks != TICKS_TAKEN || !find_target() || !counts || !hit_is_call(counts))
		return 0;
	bpf_tail_call(ctx, &hit_ifs, reason ? reason - 1 : 0);
	bpf_tail_call(ctx, &on_hit_now, 0);
	return 0;
}

WALKING("raw_tp", on_tracepoint)
int on_tracepoint_walk(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hit_counts *counts = hit_counts_here();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task);
	int instance = ticks == TICKS_TAKEN ? find_target() : 0;
	struct slot *slot;

	if (!instance || !counts || !st)
		return 0;
	counts->stand_for++;
	slot = hit_take(st, instance, tgid, hit_tracepoint, 1);
	if (!slot)
		return 0;
	event_kernel(ctx, slot, 0);
	hit_end(slot, st, task, tgid);
	return 0;
}

#endif
