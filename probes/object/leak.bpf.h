/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that keep the ledger of blocks (leak.h). */
#ifndef YRT_LEAK_BPF_H
#define YRT_LEAK_BPF_H

#include "object/alloc.bpf.h"
#include "object/leak.h"

#define LEAK_ERRORS 4095ull /* mmap() returns -errno */

struct leak_call { /* of a thread, between the entry and the return of an allocation function */
	u64 at;    /* where its return address is */
	u64 out;   /* where posix_memalign() puts the address; 0: it returns it */
	struct leak_block block;
	struct leak_key old; /* of realloc(): what is there again if it fails; addr 0: nothing */
	struct leak_block before;
};

struct { /* by thread; all these are sized by leak.c */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct leak_call);
} leak_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct leak_key);
	__type(value, struct leak_block);
} leak_blocks SEC(".maps");

struct { /* by hash */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct leak_stack);
} leak_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct leak_counters);
} leak_counted SEC(".maps");

static inline struct leak_counters *leak_counters_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&leak_counted, &zero);
}

/* A block is there no more. */
static __attribute__((noinline)) int leak_over(struct leak_block *block)
{
	struct leak_stack *stack = bpf_map_lookup_elem(&leak_stacks, &block->hash);
	struct hit_counts *counts = hit_counts_here();
	struct leak_counters *own = leak_counters_here();

	if (!stack || !counts || !own)
		return 0;
	__sync_fetch_and_add(&stack->freed, block->blocks);
	__sync_fetch_and_add(&stack->freed_bytes, block->bytes);
	__sync_fetch_and_add(&stack->life_ns, bpf_ktime_get_ns() - block->ns);
	__sync_fetch_and_add(&stack->lives, 1);
	counts->under_way--;
	own->freed++;
	return 0;
}

static __attribute__((noinline)) int leak_free(u64 addr)
{
	struct leak_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf())};
	struct leak_block *block = addr ? bpf_map_lookup_elem(&leak_blocks, &key) : NULL;

	if (!block)
		return 0;
	leak_over(block);
	bpf_map_delete_elem(&leak_blocks, &key);
	return 0;
}

/* realloc() takes a block away, until it fails. */
static inline void leak_take_old(struct leak_call *call, u64 addr)
{
	struct leak_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf())};
	struct leak_block *block = bpf_map_lookup_elem(&leak_blocks, &key);

	if (!block)
		return;
	call->old = key;
	call->before = *block;
	bpf_map_delete_elem(&leak_blocks, &key);
}

/* A call begins. Returns the bytes that its block stands for, and 1 for none; 0: its block is not chosen. */
static __attribute__((noinline)) u64 leak_begin(struct pt_regs *ctx, u64 size, u64 cookie, u64 *bytes)
{
	u32 thread = (u32)bpf_get_current_pid_tgid(), shape = ALLOC_COOKIE_SHAPE(cookie), each = hit_each;
	struct leak_call call = {.at = ctx->rsp + 8 * ALLOC_COOKIE_PUSHED(cookie)};
	bool chosen = alloc_choose(size, &call.block.bytes, &call.block.blocks);

	if (shape == ALLOC_RESIZE && ctx->rdi)
		leak_take_old(&call, ctx->rdi);
	if (!chosen && !call.old.addr)
		return 0;
	if (shape == ALLOC_SIZE_3)
		call.out = ctx->rdi;
	call.block.bytes *= each;
	call.block.blocks *= each;
	call.block.ns = bpf_ktime_get_ns();
	call.block.shift = hit_shift;
	*bytes = call.block.bytes;
	bpf_map_update_elem(&leak_calls, &thread, &call, BPF_ANY);
	return chosen;
}

/* The stack of the call that this thread has begun; 0: it could not be taken. */
static __attribute__((noinline)) int leak_stack_is(u64 hash)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct leak_call *call = bpf_map_lookup_elem(&leak_calls, &thread);
	struct leak_stack none = {0};

	if (!call)
		return 0;
	call->block.hash = hash;
	if (hash && !bpf_map_lookup_elem(&leak_stacks, &hash))
		bpf_map_update_elem(&leak_stacks, &hash, &none, BPF_NOEXIST);
	return 0;
}

/* False: it is no call whose block may be watched. */
static __attribute__((noinline)) int leak_enter(struct pt_regs *ctx, u64 cookie, u64 *bytes)
{
	struct alloc_counters *own;
	u32 zero = 0;
	u64 size = 0;

	if (!alloc_hit(ctx, cookie, &size)) {
		if (ALLOC_COOKIE_SHAPE(cookie) == ALLOC_RESIZE && !ctx->rsi)
			leak_free(ctx->rdi);
		return 0;
	}
	own = bpf_map_lookup_elem(&alloc_counted, &zero);
	if (bpf_ktime_get_ns() > hit_until || !own)
		return 0;
	own->calls += hit_each;
	own->bytes += size * hit_each;
	if (!leak_begin(ctx, size, cookie, bytes))
		return 0;
	own->taken++;
	return 1;
}

WALKING("uprobe", on_leak_enter)
int on_leak_enter_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u64 bytes = 0;
	u32 number, tgid = tgid_of(task);
	struct slot *slot;
	int lost;

	if (!st || !leak_enter(ctx, bpf_get_attach_cookie(ctx), &bytes))
		return 0;
	alloc_pace(bpf_ktime_get_ns());
	slot = event_begin(st, find_target(), tgid, bytes, &number);
	if (!slot)
		return 0;
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), false);
	count_stop(st, slot->head.stop, bytes);
	slot->head.value = 0; /* it is known later */
	lost = event_emit(slot, st);
	leak_stack_is(lost < 0 ? slot->head.hash : 0);
	slot->head.value = lost < 0 ? 0 : bytes;
	event_end(slot, st, lost);
	return 0;
}

/* The block is there, at this address. */
static __attribute__((noinline)) int leak_keep(struct leak_call *call, u64 addr)
{
	struct leak_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf())};
	struct leak_stack *stack = bpf_map_lookup_elem(&leak_stacks, &call->block.hash);
	struct hit_counts *counts = hit_counts_here();
	struct leak_counters *own = leak_counters_here();

	if (!stack || !counts || !own)
		return 0;
	if (bpf_map_lookup_elem(&leak_blocks, &key))
		own->left++;
	if (bpf_map_update_elem(&leak_blocks, &key, &call->block, BPF_ANY)) {
		own->full++;
		return 0;
	}
	own->watched++;
	counts->under_way++;
	__sync_fetch_and_add(&stack->made, call->block.blocks);
	__sync_fetch_and_add(&stack->made_bytes, call->block.bytes);
	return 0;
}

/* Its cookie says that it goes on as memset(). */
SEC("uprobe")
int on_leak_return(struct pt_regs *ctx)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct leak_call *call = bpf_map_lookup_elem(&leak_calls, &thread);
	struct hit_counts *counts = hit_counts_here();
	struct leak_counters *own = leak_counters_here();
	u64 addr = ctx->rax, first = ctx->rdi;

	WALK_BARRIER(first);
	if (bpf_get_attach_cookie(ctx))
		addr = first;
	if (counts && find_target())
		counts->exits++;
	if (!call || call->at != ctx->rsp || !own)
		return 0;
	if (call->out && (addr || bpf_probe_read_user(&addr, sizeof(addr), (const void *)call->out)))
		addr = 0;
	if (!addr || addr >= -LEAK_ERRORS) {
		own->failed++;
		if (call->old.addr)
			bpf_map_update_elem(&leak_blocks, &call->old, &call->before, BPF_NOEXIST);
	} else {
		if (call->old.addr)
			leak_over(&call->before);
		if (call->block.hash)
			leak_keep(call, addr);
	}
	bpf_map_delete_elem(&leak_calls, &thread);
	return 0;
}

SEC("uprobe")
int on_leak_free(struct pt_regs *ctx)
{
	struct hit_counts *counts = hit_counts_here();

	if (ticks != TICKS_TAKEN || !counts || !find_target())
		return 0;
	counts->exits++;
	leak_free(ctx->rdi);
	return 0;
}

#endif
