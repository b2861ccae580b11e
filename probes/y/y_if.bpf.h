/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What follows the condition of an -e (y_if.h): a call that is refused counts as if it had not been. */
#ifndef YRT_Y_IF_BPF_H
#define YRT_Y_IF_BPF_H

#include "y/y.bpf.h"
#include "y/y_if.h"

u64 y_if_met = 0, y_if_refused = 0;
u64 y_if_failed[Y_STATUSES] = {0}; /* calls whose condition could not be evaluated, by enum y_status */

/* What the condition says of the current thread's call. */
static __attribute__((noinline)) u32 y_if_answer(u32 kind)
{
	u32 key = Y_PENDING_KEY(bpf_get_current_pid_tgid(), kind), answer;
	struct y_pending *pending = bpf_map_lookup_elem(&y_pendings, &key);
	u64 status;

	if (!pending)
		return Y_IF_NO;
	answer = (u32)pending->map;
	status = pending->value;
	bpf_map_delete_elem(&y_pendings, &key);
	WALK_BARRIER(status);
	if (answer == Y_IF_FAILED && status < Y_STATUSES)
		__sync_fetch_and_add(&y_if_failed[status], 1);
	else
		__sync_fetch_and_add(answer == Y_IF_YES ? &y_if_met : &y_if_refused, 1);
	return answer;
}

WALKING("uprobe", on_hit_if)
int on_hit_if_walk(struct pt_regs *ctx)
{
	if (y_if_answer(Y_OF_CODE) == Y_IF_YES)
		bpf_tail_call(ctx, &on_hit_now, 0);
	return 0;
}

WALKING("uprobe", on_enter_if)
int on_enter_if_walk(struct pt_regs *ctx)
{
	struct latency_key key = {0};
	struct latency_stats *all = latency_here(bpf_get_current_task_btf(), &key, bpf_get_attach_cookie(ctx));
	struct latency_call *asked = all ? latency_find(&key) : NULL, call = {0};
	struct hit_counts *counts = hit_counts_here();

	if (y_if_answer(Y_OF_CODE) != Y_IF_YES || !all || !counts || !asked)
		return 0;
	call.began = asked->began;
	call.shift = asked->shift;
	return latency_begins(ctx, &key, &call, all, counts);
}

/* The call that has just begun, where calls are measured. */
static __attribute__((noinline)) int y_if_measured(bool counts_as)
{
	struct callee_counts *counts = callee_counts_here();
	struct callee_line *line = counts ? callee_line_of((u32)counts->function) : NULL;
	struct latency_stats *all = callee_stats();
	u32 n;
	bool kept;

	if (!line || !all || !counts)
		return 0;
	n = line->n - 1;
	WALK_BARRIER(n);
	kept = n < CALLEE_WITHIN && line->call[n].depth == counts->depth;
	if (counts_as && kept)
		callee_keep(line->call[n].began);
	if (counts_as)
		return 0;
	all->entered -= callee_each;
	if (!kept) {
		all->lost -= callee_each;
		return 0;
	}
	line->n = n;
	counts->under_way--;
	return callee_over(line->call[n].began, 0, CALLEE_RETURNED) != 0;
}

/* The arguments become part of the stack, where they are a frame of it. */
static inline void y_if_show(struct slot *slot)
{
	u32 number = slot->walk.target.chunk;
	struct stack_record *chunk = bpf_map_lookup_elem(&chunks, &number);
	u64 key;

	if (!chunk || frame_kind(&chunk->frame[0]) != FRAME_OBJECT)
		return;
	key = values_count(slot->head.tgid, callee_each);
	chunk->frame[0].detail = key;
	slot->head.hash = walk_mix(slot->head.hash, key);
}

/* on_callee() has counted the call, and kept its slot. */
WALKING("perf_event", on_callee_if)
int on_callee_if_walk(struct bpf_perf_event_data *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();
	u32 number = counts ? (u32)counts->held - 1 : 0;
	struct slot *slot = counts && counts->held ? bpf_map_lookup_elem(&slots, &number) : NULL;
	bool yes = y_if_answer(Y_OF_CALL) == Y_IF_YES;

	if (!slot || !st)
		return 0;
	counts->held = 0;
	if (counts->function) {
		y_if_measured(yes);
		callee_drop(slot, st);
	} else if (yes) {
		y_if_show(slot);
		event_end(slot, st, event_emit(slot, st));
	} else {
		counts->stand_for -= callee_each;
		st->weights -= callee_each;
		callee_drop(slot, st);
	}
	return callee_time(begin);
}

#endif
