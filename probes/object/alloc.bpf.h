/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The program at allocation functions (alloc.h). */
#ifndef YRT_ALLOC_BPF_H
#define YRT_ALLOC_BPF_H

#include "hit/hit.bpf.h"
#include "object/alloc.h"
#include "unwind/shared/alloc_shape.h"

#define ALLOC_MOMENT_NS    10000000ull
#define ALLOC_INTERVAL_MAX (1ull << 31)
#define ALLOC_ANONYMOUS    0x20 /* MAP_ANONYMOUS */

u64 alloc_interval = 1;
u32 alloc_most = 0; /* stacks in a moment, before the interval grows; 0: any number */
u32 alloc_of_moment = 0;
u64 alloc_moment = 0; /* when it began */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_counters);
} alloc_counted SEC(".maps");

struct { /* alloc_inner_key(); sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
} alloc_inner SEC(".maps");

struct { /* sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct alloc_outside);
	__type(value, u32);
} alloc_outside SEC(".maps");

struct alloc_tail { /* a call that may go on as one of another function: its place on the stack, and where it returns */
	u64 at, to;
};

struct { /* by thread; sized by alloc.c */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_tail);
} alloc_tails SEC(".maps");

/* Is it a call that the allocator makes of itself? */
static __attribute__((noinline)) int alloc_is_inner(u64 sp, u64 ip, u64 cookie)
{
	struct alloc_tail here = {.at = sp + 8 * ALLOC_COOKIE_PUSHED(cookie)}, *last;
	struct alloc_outside outside = {.tgid = tgid_of(bpf_get_current_task_btf())};
	u32 thread = (u32)bpf_get_current_pid_tgid();
	u64 key;

	if (bpf_probe_read_user(&here.to, sizeof(here.to), (const void *)here.at))
		return 0;
	key = alloc_inner_key(ALLOC_COOKIE_NUMBER(cookie), (long)(here.to - ip));
	if (bpf_map_lookup_elem(&alloc_inner, &key))
		return 1;
	outside.addr = here.to;
	if (ALLOC_COOKIE_SHAPE(cookie) >= ALLOC_MAP && bpf_map_lookup_elem(&alloc_outside, &outside))
		return 1;
	last = bpf_map_lookup_elem(&alloc_tails, &thread);
	if (last && last->at == here.at && last->to == here.to && !ALLOC_COOKIE_TAILS(cookie)) {
		last->at = 0;
		return 1;
	}
	if (ALLOC_COOKIE_TAILS(cookie))
		bpf_map_update_elem(&alloc_tails, &thread, &here, BPF_ANY);
	return 0;
}

/* False: it allocates nothing. */
static inline bool alloc_size(const struct pt_regs *ctx, u32 shape, u64 *size)
{
	switch (shape) {
	case ALLOC_SIZE_1:
		*size = ctx->rdi;
		return true;
	case ALLOC_SIZE_3:
		*size = ctx->rdx;
		return true;
	case ALLOC_SIZE_PRODUCT:
		*size = ctx->rdi * ctx->rsi;
		return true;
	case ALLOC_RESIZE:
		*size = ctx->rsi;
		return !ctx->rdi || *size;
	case ALLOC_RESIZE_OF:
		*size = ctx->rcx;
		return *size && (!ctx->rsi || *size > ctx->rdx);
	case ALLOC_MAP:
		*size = (ctx->rsi + 4095) & ~4095ull;
		return ctx->rcx & ALLOC_ANONYMOUS;
	case ALLOC_FREE:
		return false;
	case ALLOC_MOVE_END:
		*size = ctx->rdi;
		return (s64)*size > 0;
	default:
		*size = ctx->rsi;
		return true;
	}
}

/* Does a block of this size get a stack? Then *calls is what it counts for, and *value its bytes. */
static inline bool alloc_choose(u64 size, u64 *value, u64 *calls)
{
	u64 interval = alloc_interval, units = size ? size : 1;

	*value = size;
	*calls = 1;
	if (units >= interval)
		return true;
	if (bpf_get_prandom_u32() >= (units << 32) / interval)
		return false;
	*value = size ? interval : 0;
	*calls = interval / units + (bpf_get_prandom_u32() % units < interval % units);
	return true;
}

/* Where stacks come fast, the interval grows at once: user space looks too rarely for that. */
static inline void alloc_pace(u64 now)
{
	if (!alloc_most)
		return;
	if (now - alloc_moment > ALLOC_MOMENT_NS) {
		alloc_moment = now;
		alloc_of_moment = 0;
	}
	if (++alloc_of_moment % alloc_most == 0 && alloc_interval < ALLOC_INTERVAL_MAX)
		alloc_interval *= 2;
}

/*
 * What a call that was just made counts for, if it is to get a stack: NULL: it is not. *size is what it asked for.
 */
static __attribute__((noinline)) struct slot *alloc_take(struct pt_regs *ctx, u64 cookie, u64 size, u32 *number)
{
	struct probe_stats *st = my_stats();
	u32 zero = 0, each = hit_each, tgid = tgid_of(bpf_get_current_task_btf());
	struct alloc_counters *own = bpf_map_lookup_elem(&alloc_counted, &zero);
	int instance = find_target();
	struct slot *slot;
	u64 value, calls;

	if (!own || !st)
		return NULL;
	own->calls += each;
	own->bytes += size * each;
	if (!alloc_choose(size, &value, &calls) || (weight > 1 && bpf_get_prandom_u32() % (u32)weight))
		return NULL;
	own->taken++;
	slot = event_begin(st, instance, tgid, value * each * weight, number);
	if (slot)
		slot->head.more = calls * each * weight;
	return slot;
}

/* False: the hit is no allocation that counts. */
static __attribute__((noinline)) int alloc_hit(struct pt_regs *ctx, u64 cookie, u64 *size)
{
	u32 zero = 0;
	struct alloc_counters *own = bpf_map_lookup_elem(&alloc_counted, &zero);
	struct hit_counts *counts = hit_counts_here();

	if (ticks != TICKS_TAKEN || !find_target() || !counts || !own)
		return 0;
	counts->entries++;
	if (!ALLOC_COOKIE_ALL(cookie) && alloc_is_inner(ctx->rsp, ctx->rip, cookie)) {
		own->inner++;
		return 0;
	}
	if (!alloc_size(ctx, ALLOC_COOKIE_SHAPE(cookie), size))
		return 0;
	if (*size >> 47) {
		own->strange++;
		return 0;
	}
	return 1;
}

WALKING("uprobe", on_alloc)
int on_alloc_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx), size, now;
	struct hit_counts *counts = hit_counts_here();
	struct probe_stats *st = my_stats();
	struct slot *slot;
	u32 number;

	if (!alloc_hit(ctx, cookie, &size) || !counts || !st)
		return 0;
	now = bpf_ktime_get_ns();
	if (now > hit_until)
		return 0;
	counts->stand_for += hit_each;
	slot = alloc_take(ctx, cookie, size, &number);
	if (!slot)
		return 0;
	alloc_pace(now);
	hit_end(slot, st, task, tgid_of(task));
	return 0;
}

#endif
