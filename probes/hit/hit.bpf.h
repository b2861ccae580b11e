/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that run at probed places (hit.h). */
#ifndef YRT_HIT_BPF_H
#define YRT_HIT_BPF_H

#include "hit/hit_jump.bpf.h"
#include "hit/latency.h"

u64 latency_over_ns = 0;
u32 hit_tracepoint = 0; /* the reason of tracepoints */

/* Set by hit_shifts.c. */
u64 hit_until = ~0ull; /* the shift's end (CLOCK_MONOTONIC, ns): later hits of uprobes do not count */
u32 hit_each = 1;      /* how many hits a hit of this shift counts for */
u32 hit_shift = 0;     /* the number of the shift */
u32 hit_has_turns = 0; /* on_turn() is placed */

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
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct slot *slot;

	if (!instance || !counts || !st)
		return 0;
	counts->entries++;
	if (hit_has_turns && !bpf_map_delete_elem(&hit_turns, &thread))
		return 0;
	if (bpf_ktime_get_ns() > hit_until)
		return 0;
	counts->stand_for += each;
	slot = hit_take(st, instance, tgid, (u32)bpf_get_attach_cookie(ctx), each);
	if (slot)
		hit_end(slot, st, task, tgid);
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

struct latency_key {
	u64 tgid;  /* not the thread: a goroutine may return on another one, and no two have the same stack */
	u64 stack; /* where it is described, of one that moves; else 0 */
	u64 at;    /* the stack pointer where it is entered and left: how far below the stack's end, or itself */
};

struct latency_call {
	u64 began;
	u32 again; /* it is about to begin once more, on a larger stack */
	u32 shift; /* a call of another one may have ended unseen */
};

struct { /* calls that are under way; the oldest make room. Its size is set where calls are measured */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct latency_key);
	__type(value, struct latency_call);
} latency_calls SEC(".maps");

struct { /* of processes whose stacks move; sized in the same way */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct latency_stacks);
} latency_moving SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct latency_stats);
} latency_counters SEC(".maps");

static inline bool latency_read(u64 *to, u32 size, u64 from)
{
	return !bpf_probe_read_user(to, size, (void *)from);
}

/* The stack that the thread runs on, if it moves: what describes it, and its end. */
static inline u64 latency_stack(struct task_struct *task, u32 tgid, u64 sp, u64 *end)
{
	const struct latency_stacks *moving = bpf_map_lookup_elem(&latency_moving, &tgid);
	u64 base = BPF_CORE_READ(task, thread.fsbase), stack, bounds[2], thread, own;

	for (u32 i = 0; moving && i < LATENCY_MOVING && i < moving->n; i++) {
		if (!latency_read(&stack, 8, base + (u64)moving->of[i].pointer) || !stack ||
		        !latency_read(bounds, 16, stack + moving->of[i].bounds) || sp < bounds[0] || sp >= bounds[1] ||
		        !latency_read(&thread, 8, stack + moving->of[i].thread) ||
		        !latency_read(&own, 8, thread + moving->of[i].own) || own == stack)
			continue;
		*end = bounds[1];
		return stack;
	}
	return 0;
}

static inline struct latency_call *latency_find(const struct latency_key *key)
{
	struct latency_call *call = bpf_map_lookup_elem(&latency_calls, key);

	return call && call->shift == hit_shift ? call : NULL;
}

static inline struct latency_stats *latency_here(struct task_struct *task, struct latency_key *key)
{
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	u64 sp = BPF_CORE_READ(r, sp), end = 0;
	u32 zero = 0;

	key->tgid = tgid_of(task);
	key->stack = latency_stack(task, (u32)key->tgid, sp, &end);
	key->at = key->stack ? end - sp : sp;
	return ticks == TICKS_TAKEN && find_target() ? bpf_map_lookup_elem(&latency_counters, &zero) : NULL;
}

SEC("uprobe")
int on_enter(struct pt_regs *ctx)
{
	struct latency_key key;
	struct latency_stats *all = latency_here(bpf_get_current_task_btf(), &key);
	struct latency_call call = {.began = bpf_ktime_get_ns(), .shift = hit_shift}, *before;
	struct hit_counts *counts = hit_counts_here();

	if (!all || !counts)
		return 0;
	counts->entries++;
	before = latency_find(&key);
	if (before && before->again) {
		before->again = 0;
		return 0;
	}
	if (call.began > hit_until)
		return 0;
	all->entered += hit_each;
	if (before)
		all->left += hit_each;
	else
		counts->under_way++;
	bpf_map_update_elem(&latency_calls, &key, &call, BPF_ANY);
	return 0;
}

SEC("uprobe")
int on_again(struct pt_regs *ctx)
{
	struct latency_key key;
	struct latency_call *call = latency_here(bpf_get_current_task_btf(), &key) ? latency_find(&key) : NULL;

	if (call && latency_jumps_away(bpf_get_attach_cookie(ctx)))
		call->again = 1;
	return 0;
}

/* Counts a call that is over. 1: it was slow. */
WALK_GLOBAL int latency_count(u64 ns)
{
	u32 zero = 0, bucket = latency_bucket(ns), each = hit_each;
	struct latency_stats *all = bpf_map_lookup_elem(&latency_counters, &zero);

	if (!all)
		return 0;
	all->returned += each;
	all->sum_ns += ns * each;
	if (ns > all->max_ns)
		all->max_ns = ns;
	WALK_BARRIER(bucket);
	if (bucket < LATENCY_BUCKETS)
		all->bucket[bucket] += each;
	if (ns < latency_over_ns)
		return 0;
	all->slow += each;
	return 1;
}

/* The call that is left here, if the jump of this number does so. 0: none that was entered, or it was fast. */
WALK_GLOBAL u64 latency_of_call(u64 jump)
{
	struct latency_key key;
	struct latency_stats *all = latency_here(bpf_get_current_task_btf(), &key);
	struct latency_call *call = all ? latency_find(&key) : NULL;
	struct hit_counts *counts = hit_counts_here();
	u64 ns;

	if (!all || !counts)
		return 0;
	counts->exits++;
	if (!latency_jumps_away(jump))
		return 0;
	if (!call) {
		all->unpaired++;
		return 0;
	}
	counts->under_way--;
	ns = bpf_ktime_get_ns() - call->began;
	bpf_map_delete_elem(&latency_calls, &key);
	return latency_count(ns) ? ns : 0;
}

WALKING("uprobe", on_return)
int on_return_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u64 ns = latency_of_call(bpf_get_attach_cookie(ctx)), each = weight, calls = each * hit_each;
	u32 tgid = tgid_of(task), number;
	struct slot *slot;
	int instance;

	if (!ns || !st)
		return 0;
	instance = find_target();
	if (!instance || (each > 1 && bpf_get_prandom_u32() % (u32)each))
		return 0;
	slot = event_begin(st, instance, tgid, ns * calls, &number);
	if (!slot)
		return 0;
	slot->head.more = calls;
	hit_end(slot, st, task, tgid);
	return 0;
}

#endif
