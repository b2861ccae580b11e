/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The stack of a Y program's handler (y.h). The program that calls on_y() is made at run time (y_object.h). */
#ifndef YRT_Y_BPF_H
#define YRT_Y_BPF_H

#include "hit/hit_callee.bpf.h"
#include "y/y.h"
#include "y/y_values.bpf.h"

struct { /* sized where stacks are counted */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32); /* the thread */
	__type(value, struct y_pending);
} y_pendings SEC(".maps");

struct { /* the same */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct y_stack_key);
	__type(value, struct y_stack_total);
} y_stacks SEC(".maps");

u64 y_stacks_lost = 0; /* updates for which there was no room, or no stack */

static inline void y_raise(u64 *to, u64 value)
{
	for (u32 i = 0; i < 4; i++) {
		u64 old = *(volatile u64 *)to;

		if (old >= value || __sync_val_compare_and_swap(to, old, value) == old)
			return;
	}
}

static __attribute__((noinline)) int y_count(struct y_pending *pending, u64 hash)
{
	struct y_stack_key key = {.hash = hash};
	struct y_stack_total fresh = {0}, *total;
	u64 ordered;

	if (!pending)
		return 0;
	key.map = pending->map;
	key.generation = pending->generation;
	__builtin_memcpy(key.keys, pending->keys, sizeof(key.keys));
	total = bpf_map_lookup_elem(&y_stacks, &key);
	if (!total) {
		bpf_map_update_elem(&y_stacks, &key, &fresh, BPF_NOEXIST);
		total = bpf_map_lookup_elem(&y_stacks, &key);
	}
	if (!total)
		return 0;
	ordered = pending->value ^ 1ull << 63;
	__sync_fetch_and_add(&total->sum, pending->value);
	y_raise(&total->most, ordered);
	y_raise(&total->least, ~ordered);
	__sync_fetch_and_add(&total->count, 1);
	return 1;
}

/* The slot of a stack that is asked for; NULL: there is none. */
static __attribute__((always_inline)) inline struct slot *y_begin(
        struct probe_stats *st, u32 tgid, struct y_pending *pending)
{
	int instance = ticks == TICKS_TAKEN ? find_target() : 0;
	u32 number;

	if (!instance && everyone && ticks == TICKS_TAKEN)
		instance = adopt();
	return instance && st && pending ? event_begin(st, instance, tgid, 0, &number) : NULL;
}

/* What was pending has been counted under the slot's stack, or is lost. */
static __attribute__((always_inline)) inline void y_end(struct slot *slot, struct y_pending *pending, u32 key)
{
	if (!slot || !y_count(pending, slot->head.hash))
		__sync_fetch_and_add(&y_stacks_lost, 1);
	bpf_map_delete_elem(&y_pendings, &key);
}

WALKING("uprobe", on_y)
int on_y_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task), key = Y_PENDING_KEY(bpf_get_current_pid_tgid(), 0);
	struct y_pending *pending = bpf_map_lookup_elem(&y_pendings, &key);
	struct slot *slot = y_begin(st, tgid, pending);

	if (slot) {
		event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), false);
		event_end(slot, st, event_emit(slot, st));
	}
	y_end(slot, pending, key);
	return 0;
}

WALKING("raw_tp", on_y_point)
int on_y_point_walk(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task), key = Y_PENDING_KEY(bpf_get_current_pid_tgid(), 1);
	struct y_pending *pending = bpf_map_lookup_elem(&y_pendings, &key);
	struct slot *slot = y_begin(st, tgid, pending);

	if (slot) {
		event_kernel(ctx, slot, 0);
		event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), false);
		event_end(slot, st, event_emit(slot, st));
	}
	y_end(slot, pending, key);
	return 0;
}

WALKING("perf_event", on_y_tick)
int on_y_tick_walk(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task), key = Y_PENDING_KEY(bpf_get_current_pid_tgid(), 2);
	struct y_pending *pending = bpf_map_lookup_elem(&y_pendings, &key);
	struct slot *slot = y_begin(st, tgid, pending);

	if (slot)
		event_hit(slot, st, ctx, task, tgid);
	y_end(slot, pending, key);
	return 0;
}

/* The call of a language's function that on_callee() has walked, and kept for the handler that comes from. */
WALKING("perf_event", on_y_call)
int on_y_call_walk(struct bpf_perf_event_data *ctx)
{
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();
	u32 key = Y_PENDING_KEY(bpf_get_current_pid_tgid(), 3), number = counts ? (u32)counts->held - 1 : 0;
	struct y_pending *pending = bpf_map_lookup_elem(&y_pendings, &key);
	struct slot *slot = counts && counts->held ? bpf_map_lookup_elem(&slots, &number) : NULL;

	if (slot && st) {
		counts->held = 0;
		event_end(slot, st, event_emit(slot, st));
	}
	y_end(slot, pending, key);
	return 0;
}

#endif
