/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs at system calls that map memory, and at page faults (growth.h). */
#ifndef YRT_GROWTH_BPF_H
#define YRT_GROWTH_BPF_H

#include "fault/fault.bpf.h"
#include "object/growth.h"

enum growth_call_number { /* arch/x86/entry/syscalls/syscall_64.tbl */
	GROWTH_CALL_MMAP = 9,
	GROWTH_CALL_MUNMAP = 11,
	GROWTH_CALL_BRK = 12,
	GROWTH_CALL_MREMAP = 25,
	GROWTH_CALL_MADVISE = 28,
};

enum growth_advice { /* include/uapi/asm-generic/mman-common.h: pages that are gone at once */
	GROWTH_DONTNEED = 4,
	GROWTH_REMOVE = 9,
	GROWTH_DONTNEED_LOCKED = 24,
};

#define GROWTH_MAP_SHARED    1 /* MAP_SHARED, and a bit of MAP_SHARED_VALIDATE */
#define GROWTH_MAP_ANONYMOUS 0x20
#define GROWTH_MIX           0x9e3779b97f4a7c15ull

struct growth_call { /* of a thread; began_ns 0: it is in none */
	u64 began_ns;
	u64 brk; /* before it */
	struct growth_record record;
	u32 reason;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct growth_call);
} growth_calls SEC(".maps");

struct { /* sized by growth.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct growth_page_key);
	__type(value, struct growth_page);
} growth_pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct growth_counters);
} growth_counted SEC(".maps");

static inline struct growth_counters *growth_counters_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&growth_counted, &zero);
}

static inline u64 growth_up(u64 addr)
{
	return (addr + GROWTH_PAGE - 1) & ~(GROWTH_PAGE - 1);
}

static inline bool growth_is_call(struct pt_regs___kernel *regs, long number)
{
	switch (number) {
	case GROWTH_CALL_MMAP:
	case GROWTH_CALL_MUNMAP:
	case GROWTH_CALL_BRK:
	case GROWTH_CALL_MREMAP:
		return true;
	case GROWTH_CALL_MADVISE:
		return regs->dx == GROWTH_DONTNEED || regs->dx == GROWTH_REMOVE || regs->dx == GROWTH_DONTNEED_LOCKED;
	default:
		return false;
	}
}

SEC("tp_btf/sys_enter")
int BPF_PROG(growth_enter, struct pt_regs___kernel *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct growth_call *call;

	if (ticks != TICKS_TAKEN || !growth_is_call(regs, number) || !find_target())
		return 0;
	call = bpf_task_storage_get(&growth_calls, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!call)
		return 0;
	call->began_ns = bpf_ktime_get_ns();
	call->brk = BPF_CORE_READ(task, mm, brk);
	return 0;
}

static inline void growth_of_brk(struct growth_call *call, u64 now)
{
	u64 from = growth_up(call->brk), to = growth_up(now);

	call->reason = GROWTH_BRK;
	if (to > from) {
		call->record.added = from;
		call->record.added_size = to - from;
	} else {
		call->record.gone = to;
		call->record.gone_size = from - to;
	}
}

static inline void growth_of_mremap(struct growth_call *call, u64 from, u64 from_size, u64 size, u64 to)
{
	struct growth_record *r = &call->record;

	call->reason = GROWTH_MOVED;
	if (to == from && size <= from_size) {
		r->gone = to + size;
		r->gone_size = from_size - size;
		return;
	}
	if (to != from) {
		r->gone = from;
		r->gone_size = from_size < size ? from_size : size;
		r->moved = to;
	}
	if (size > from_size) {
		r->added = to + from_size;
		r->added_size = size - from_size;
	}
}

/* What a call has done that succeeded; without its stack. */
static inline void growth_fill(struct growth_call *call, struct pt_regs___kernel *regs, u64 ret)
{
	u64 flags = regs->r10;

	switch (regs->orig_ax) {
	case GROWTH_CALL_MMAP:
		call->record.added = ret;
		call->record.added_size = growth_up(regs->si);
		call->reason = flags & GROWTH_MAP_SHARED      ? GROWTH_SHARED
		               : flags & GROWTH_MAP_ANONYMOUS ? GROWTH_ANONYMOUS
		                                              : GROWTH_FILE;
		break;
	case GROWTH_CALL_MUNMAP:
		call->record.gone = regs->di;
		call->record.gone_size = growth_up(regs->si);
		break;
	case GROWTH_CALL_BRK:
		growth_of_brk(call, ret);
		break;
	case GROWTH_CALL_MREMAP:
		growth_of_mremap(call, regs->di, growth_up(regs->si), growth_up(regs->dx), ret);
		break;
	case GROWTH_CALL_MADVISE:
		call->record.gone = call->record.moved = regs->di;
		call->record.gone_size = growth_up(regs->si);
	}
}

static __attribute__((noinline)) int growth_send(struct growth_call *call, u64 hash)
{
	struct growth_counters *own = growth_counters_here();

	call->record.hash = hash;
	if (own && bpf_ringbuf_output(&ring, &call->record, sizeof(call->record), wake_flags()))
		own->missed++;
	return 0;
}

WALKING_TABLE(growth_exit);

SEC("tp_btf/sys_exit")
int BPF_PROG(growth_exit, struct pt_regs___kernel *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct growth_call *call = bpf_task_storage_get(&growth_calls, task, NULL, 0);
	struct growth_counters *own = growth_counters_here();
	u64 began;

	if (!call || !call->began_ns || !own)
		return 0;
	began = call->began_ns;
	call->began_ns = 0;
	if (ticks != TICKS_TAKEN || (u64)ret >= -4095ull)
		return 0;
	call->record = (struct growth_record){
	        .type = RECORD_EVENT, .instance = find_target(), .began_ns = began, .ns = bpf_ktime_get_ns()};
	growth_fill(call, regs, (u64)ret);
	if (call->record.added_size) {
		own->mapped++;
		own->mapped_bytes += call->record.added_size;
		bpf_tail_call(ctx, &growth_exit_now, 0);
	} else if (call->record.gone_size) {
		own->unmapped += call->record.moved != call->record.gone;
		growth_send(call, 0);
	}
	return 0;
}

/* The stack of an event whose value is known at the end; its hash, 0: it was lost. */
static __attribute__((always_inline)) inline u64 growth_walk(
        struct slot *slot, struct probe_stats *st, u32 tgid, struct bpf_perf_event_data *user, struct task_struct *task)
{
	u64 value = slot->head.value;
	int lost;

	event_user(slot, user, task, bpf_map_lookup_elem(&processes, &tgid), false);
	count_stop(st, slot->head.stop, value);
	slot->head.value = 0;
	lost = event_emit(slot, st);
	slot->head.value = value;
	event_end(slot, st, lost);
	return lost < 0 ? slot->head.hash : 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(growth_exit_walk, struct pt_regs___kernel *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct growth_call *call = bpf_task_storage_get(&growth_calls, task, NULL, 0);
	struct probe_stats *st = my_stats();
	u32 number, tgid = tgid_of(task);
	struct slot *slot;
	u64 hash = 0;

	if (!call || !st || !call->record.instance)
		return 0;
	slot = event_begin(st, call->record.instance, tgid, call->record.added_size, &number);
	if (slot) {
		slot->head.reason = call->reason;
		event_reason(slot);
		hash = growth_walk(slot, st, tgid, NULL, task);
	}
	growth_send(call, hash);
	return 0;
}

/* Pages are taken by their address: what is touched again is taken again. */
static inline bool growth_chosen(const struct growth_page_key *key, u64 each)
{
	u64 mixed = (key->page ^ key->instance) * GROWTH_MIX >> 32;

	return each <= 1 || mixed % (u32)each == 0;
}

/* NULL: this page is not taken, or its stack is lost. What is known of it stays in the slot's head. */
static __attribute__((noinline)) struct slot *growth_begin(struct bpf_perf_event_data *ctx, struct probe_stats *st)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct growth_page_key key = {.page = ctx->addr / GROWTH_PAGE, .instance = find_target()};
	struct growth_counters *own = growth_counters_here();
	u64 each = weight;
	struct slot *slot;
	u32 number, reason;

	if (!own || !key.instance)
		return NULL;
	own->faults++;
	reason = fault_reason(ctx, task) & ~FAULT_MAJOR;
	if (reason == (FAULT_FILE | FAULT_READ_ONLY)) /* code, say: the file's own page */
		return NULL;
	if (!growth_chosen(&key, each)) {
		bpf_map_delete_elem(&growth_pages, &key);
		return NULL;
	}
	slot = event_begin(st, key.instance, tgid_of(task), (each ?: 1) * GROWTH_PAGE, &number);
	if (!slot)
		return NULL;
	slot->head.reason = reason & ~FAULT_READ_ONLY;
	event_reason(slot);
	slot->head.object = key.page;
	return slot;
}

static __attribute__((noinline)) int growth_keep(struct slot *slot, u64 hash)
{
	const struct stack_head *head = &slot->head;
	struct growth_counters *own = growth_counters_here();
	struct growth_page_key key = {.page = head->object, .instance = head->instance};
	struct growth_page page = {
	        .hash = hash, .ns = bpf_ktime_get_ns(), .weight = head->value / GROWTH_PAGE, .memory = head->reason};

	if (own && bpf_map_update_elem(&growth_pages, &key, &page, BPF_ANY))
		own->full++;
	return 0;
}

WALKING("perf_event", on_growth_fault)
int on_growth_fault_walk(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	struct slot *slot;

	if (ticks != TICKS_TAKEN || !st)
		return 0;
	slot = growth_begin(ctx, st);
	if (slot)
		growth_keep(slot, growth_walk(slot, st, tgid_of(task), (ctx->regs.cs & 3) == 3 ? ctx : NULL, task));
	return 0;
}

#endif
