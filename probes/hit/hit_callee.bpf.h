/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The program that runs where a call touches a debug register (thread_watch.h). */
#ifndef YRT_HIT_CALLEE_BPF_H
#define YRT_HIT_CALLEE_BPF_H

#include "hit/hit_callee.h"

struct { /* sized where functions of a language are probed */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct callee_key);
	__type(value, struct callee_watch);
} callees SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct callee_counts);
} callee_counters SEC(".maps");

/* Of the current process. Out of line, as all here: the chain of functions below a program needs all of the stack. */
static __attribute__((noinline)) struct callee_watch *callee_of(u64 addr)
{
	struct callee_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf())};

	return bpf_map_lookup_elem(&callees, &key);
}

static __attribute__((noinline)) struct callee_counts *callee_counts_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&callee_counters, &zero);
}

/* Was the address read, not written? */
static __attribute__((noinline)) int callee_was_read(struct callee_watch *watch, u64 addr)
{
	u32 bytes = watch->bytes;
	u64 word = 0;

	if (!bytes)
		return true;
	WALK_BARRIER(bytes);
	if (bytes > 8 || bpf_probe_read_user(&word, bytes, (const void *)addr))
		return true;
	if (word == watch->word)
		return true;
	watch->word = word;
	return false;
}

/* Is this frame, of a language, that of the function as it begins? */
static inline bool callee_is_at(const struct callee_watch *watch, const struct frame *f)
{
	u64 where = f->where & ~(0xffull << FRAME_ADDR_BITS);

	return (where == watch->at[0].where && f->detail == watch->at[0].detail) ||
	       (watch->nat > 1 && where == watch->at[1].where && f->detail == watch->at[1].detail);
}

/* Is the innermost frame of a walk, but for the reason, that of the function as it begins? */
static __attribute__((noinline)) int callee_begins(struct slot *slot, const struct callee_watch *watch)
{
	u32 number = slot->walk.target.chunk;
	struct stack_record *chunk = bpf_map_lookup_elem(&chunks, &number);

	if (!chunk || !slot->walk.nframes)
		return false;
	return callee_is_at(watch, &chunk->frame[slot->head.reason ? 1 : 0]);
}

/* A hit is over. Is it a call? Then it counts. */
static __attribute__((noinline)) int callee_counts_as(struct slot *slot, const struct callee_watch *watch)
{
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();

	if (!counts || !st)
		return false;
	if (!callee_begins(slot, watch)) {
		st->samples--;
		slot->busy = 0;
		return false;
	}
	st->weights += watch->each;
	counts->calls++;
	counts->stand_for += watch->each;
	return true;
}

/* A slot for a hit, with its reason; NULL: it is lost. */
static __attribute__((noinline)) struct slot *callee_slot(const struct callee_watch *watch)
{
	struct probe_stats *st = my_stats();
	struct slot *slot;
	u32 number;

	if (!st)
		return NULL;
	slot = event_begin(st, (u32)find_target(), tgid_of(bpf_get_current_task_btf()), 0, &number);
	if (!slot) {
		st->lost[LOST_SCRATCH] += watch->each;
		return NULL;
	}
	slot->head.value = watch->each;
	slot->head.reason = watch->reason;
	event_reason(slot);
	return slot;
}

static __attribute__((noinline)) int callee_time(u64 begin)
{
	struct callee_counts *counts = callee_counts_here();

	if (counts)
		counts->walk_ns += bpf_ktime_get_ns() - begin;
	return 0;
}

WALKING("perf_event", on_callee)
int on_callee_walk(struct bpf_perf_event_data *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct callee_watch *watch = callee_of(ctx->addr);
	struct callee_counts *counts = callee_counts_here();
	struct probe_stats *st = my_stats();
	struct slot *slot;

	if (!watch || !counts || !st || ticks != TICKS_TAKEN || !find_target())
		return 0;
	counts->traps++;
	slot = callee_was_read(watch, ctx->addr) && begin < watch->until ? callee_slot(watch) : NULL;
	if (slot) {
		struct task_struct *task = bpf_get_current_task_btf();

		event_user(slot, ctx, task, bpf_map_lookup_elem(&processes, &slot->head.tgid), true);
		if (callee_counts_as(slot, watch))
			event_end(slot, st, event_emit(slot, st));
	}
	callee_time(begin);
	return 0;
}

#endif
