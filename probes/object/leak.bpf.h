/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that keep the ledger of blocks (leak.h). */
#ifndef YRT_LEAK_BPF_H
#define YRT_LEAK_BPF_H

#include "object/alloc.bpf.h"
#include "object/alloc_sample.bpf.h"
#include "object/leak.h"
#include "object/leak_trap.h"

#define LEAK_ERRORS 4095ull /* mmap() returns -errno */

u32 leak_follows = 1; /* blocks are to be followed in this window, */
u32 leak_window = 0;  /* whose number this is: calls that began in another one are forgotten */

struct leak_call { /* of a thread, between the entry and the return of an allocation function */
	u64 at;    /* where its return address is */
	u64 out;   /* where posix_memalign() puts the address; 0: it returns it */
	struct leak_block block;
	struct leak_key old; /* of realloc(): what is there again if it fails; addr 0: nothing */
	struct leak_block before;
	u64 window;
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

struct { /* a new one: it is too large for BPF's stack */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct leak_stack);
} leak_none SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct leak_counters);
} leak_counted SEC(".maps");

struct { /* kept by leak_watch.c */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LEAK_TRAPS);
	__type(key, u32);
	__type(value, struct leak_trap);
} leak_traps SEC(".maps");

struct { /* by LEAK_COOKIE_CODE; sized by leak.c */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct leak_code);
} leak_codes SEC(".maps");

static inline struct leak_counters *leak_counters_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&leak_counted, &zero);
}

/* A block is there no more. */
static __attribute__((noinline)) int leak_over(struct leak_block *block)
{
	struct leak_stack *stack = bpf_map_lookup_elem(&leak_stacks, &block->hash);
	struct leak_counters *own = leak_counters_here();
	u64 ns = bpf_ktime_get_ns() - block->ns;
	u32 age = leak_age(ns);

	if (!stack || !own)
		return 0;
	__sync_fetch_and_add(&stack->freed, block->blocks);
	__sync_fetch_and_add(&stack->freed_bytes, block->bytes);
	__sync_fetch_and_add(&stack->life_ns, ns);
	__sync_fetch_and_add(&stack->lives, 1);
	WALK_BARRIER(age);
	if (age < LEAK_AGES)
		__sync_fetch_and_add(&stack->died[age], 1);
	own->freed++;
	return 0;
}

WALK_GLOBAL int leak_free(u64 addr)
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

/* A call begins. 0: its block is not chosen. */
static __attribute__((noinline)) u64 leak_begin(struct pt_regs *ctx, u64 size, u64 cookie, u64 *bytes)
{
	u32 thread = (u32)bpf_get_current_pid_tgid(), shape = ALLOC_COOKIE_SHAPE(cookie);
	struct leak_call call = {.at = ctx->rsp + 8 * ALLOC_COOKIE_PUSHED(cookie), .window = leak_window};
	bool chosen = alloc_choose(size, &call.block.bytes, &call.block.blocks);

	if (shape == ALLOC_RESIZE && ctx->rdi)
		leak_take_old(&call, ctx->rdi);
	if (!chosen && !call.old.addr) {
		bpf_map_delete_elem(&leak_calls, &thread);
		return 0;
	}
	if (shape == ALLOC_SIZE_3)
		call.out = ctx->rdi;
	call.block.ns = bpf_ktime_get_ns();
	call.block.size = size;
	call.block.code = LEAK_COOKIE_CODE(cookie);
	*bytes = call.block.bytes;
	bpf_map_update_elem(&leak_calls, &thread, &call, BPF_ANY);
	return chosen;
}

/* The stack of the call that this thread has begun; 0: it could not be taken. False: there is no room for it. */
WALK_GLOBAL int leak_stack_is(u64 hash)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct leak_call *call = bpf_map_lookup_elem(&leak_calls, &thread);
	u32 zero = 0;
	struct leak_stack *none = bpf_map_lookup_elem(&leak_none, &zero);

	if (!call || !none)
		return 1;
	call->block.hash = hash;
	if (hash && !bpf_map_lookup_elem(&leak_stacks, &hash))
		bpf_map_update_elem(&leak_stacks, &hash, none, BPF_NOEXIST);
	return !alloc_window || leak_follows || !hash ||
	       alloc_count_in_window(hash, 0, call->block.bytes, call->block.blocks);
}

/* Between windows no call counts, but what realloc() takes is freed. */
static __attribute__((noinline)) int leak_closed(struct pt_regs *ctx, u64 cookie)
{
	if (ALLOC_COOKIE_SHAPE(cookie) == ALLOC_RESIZE)
		leak_free(ctx->rdi);
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
	if (!alloc_open)
		return leak_closed(ctx, cookie);
	own = bpf_map_lookup_elem(&alloc_counted, &zero);
	if (!own)
		return 0;
	if (!alloc_window || !leak_follows) {
		own->calls++;
		own->bytes += size;
		alloc_count_rounded(size, cookie);
	}
	if (!leak_begin(ctx, size, cookie, bytes))
		return 0;
	own->taken++;
	return 1;
}

static __attribute__((always_inline)) inline void leak_take_stack(
        struct probe_stats *st, struct task_struct *task, u64 bytes)
{
	u32 number, tgid = tgid_of(task);
	struct slot *slot;
	int lost;

	alloc_pace(bpf_ktime_get_ns());
	slot = event_begin(st, find_target(), tgid, bytes, &number);
	if (!slot)
		return;
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), false);
	count_stop(st, slot->head.stop, bytes);
	slot->head.value = 0; /* it is known later */
	lost = event_emit(slot, st);
	if (!leak_stack_is(lost < 0 ? slot->head.hash : 0))
		lost = LOST_TABLE;
	slot->head.value = lost < 0 ? 0 : bytes;
	event_end(slot, st, lost);
}

WALKING("uprobe", on_leak_enter)
int on_leak_enter_walk(struct pt_regs *ctx)
{
	u64 began = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx), bytes = 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();

	if (ticks != TICKS_TAKEN || !find_target() || !st)
		return 0;
	if (leak_enter(ctx, cookie, &bytes))
		leak_take_stack(st, task, bytes);
	alloc_hit_ends(began, cookie);
	return 0;
}

/* The block is there, at this address. */
static __attribute__((noinline)) int leak_keep(struct leak_call *call, u64 addr)
{
	struct leak_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf())};
	struct leak_stack *stack = bpf_map_lookup_elem(&leak_stacks, &call->block.hash);
	struct leak_counters *own = leak_counters_here();

	if (!stack || !own)
		return 0;
	if (bpf_map_lookup_elem(&leak_blocks, &key))
		own->left++;
	if (bpf_map_update_elem(&leak_blocks, &key, &call->block, BPF_ANY)) {
		own->full++;
		return 0;
	}
	own->watched++;
	__sync_fetch_and_add(&stack->made, call->block.blocks);
	__sync_fetch_and_add(&stack->made_bytes, call->block.bytes);
	return 0;
}

/* A call of this thread is over, with this result. */
static __attribute__((noinline)) int leak_returned(struct leak_call *call, u64 addr)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct leak_counters *own = leak_counters_here();

	if (!own)
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
		if (call->block.hash && alloc_open && leak_follows)
			leak_keep(call, addr);
	}
	bpf_map_delete_elem(&leak_calls, &thread);
	return 0;
}

SEC("uprobe")
int on_leak_return(struct pt_regs *ctx)
{
	u64 began = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx), addr = ctx->rax, first = ctx->rdi;
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct leak_call *call = bpf_map_lookup_elem(&leak_calls, &thread);
	struct hit_counts *counts = hit_counts_here();

	WALK_BARRIER(first);
	if (cookie & LEAK_COOKIE_RETURN_CLEARS)
		addr = first;
	if (!counts || !find_target())
		return 0;
	counts->exits++;
	if (call && call->at == ctx->rsp && call->window == leak_window)
		leak_returned(call, addr);
	alloc_hit_ends(began, cookie);
	return 0;
}

/* A block that the program itself has chosen (alloc_sample.h) is there. What it stands for; 0: it does not count. */
static __attribute__((noinline)) u64 leak_sample_begin(u32 number)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct leak_call call = {.window = leak_window};
	struct alloc_sample s = {0};

	if (!alloc_sample_read(number, &s))
		return 0;
	call.at = s.block;
	call.block.bytes = s.bytes;
	call.block.blocks = s.calls;
	call.block.size = s.size;
	call.block.ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&leak_calls, &thread, &call, BPF_ANY);
	return s.bytes;
}

static __attribute__((noinline)) int leak_sample_ends(void)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();
	struct leak_call *call = bpf_map_lookup_elem(&leak_calls, &thread);

	if (call && call->block.hash && call->at)
		leak_keep(call, call->at);
	bpf_map_delete_elem(&leak_calls, &thread);
	return 0;
}

WALKING("uprobe", on_leak_sample)
int on_leak_sample_walk(struct pt_regs *ctx)
{
	struct probe_stats *st = my_stats();
	u64 bytes;

	if (ticks != TICKS_TAKEN || !find_target() || !st)
		return 0;
	bytes = leak_sample_begin((u32)bpf_get_attach_cookie(ctx));
	if (!bytes)
		return 0;
	leak_take_stack(st, bpf_get_current_task_btf(), bytes);
	leak_sample_ends();
	return 0;
}

SEC("uprobe")
int on_leak_sample_freed(struct pt_regs *ctx)
{
	u32 number = (u32)bpf_get_attach_cookie(ctx);
	struct alloc_sample_place *p = bpf_map_lookup_elem(&alloc_sample_places, &number);

	if (ticks != TICKS_TAKEN || !p || !find_target())
		return 0;
	leak_free(alloc_argument(&p->block));
	return 0;
}

SEC("uprobe")
int on_leak_free(struct pt_regs *ctx)
{
	u64 began = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx), first = ctx->rdi, second = ctx->rsi;
	struct hit_counts *counts = hit_counts_here();

	if (ticks != TICKS_TAKEN || !counts || !find_target())
		return 0;
	counts->exits++;
	leak_free(ALLOC_COOKIE_SHAPE(cookie) == ALLOC_FREE_2 ? second : first);
	alloc_hit_ends(began, cookie);
	return 0;
}

/* Was it the allocator that wrote there? rip is behind the instruction. */
static __attribute__((noinline)) int leak_is_allocator(u32 number, u64 rip)
{
	struct leak_code *code = bpf_map_lookup_elem(&leak_codes, &number);

	if (!code)
		return false;
	for (u32 i = 0; i < LEAK_RANGES; i++)
		if (rip > code->from[i] && rip <= code->to[i])
			return true;
	return false;
}

/* The header of glibc's chunk was written. Is the block gone? */
static __attribute__((noinline)) int leak_header_says(struct leak_trap *t)
{
	u64 value = 0;

	if (bpf_probe_read_user(&value, sizeof(value), (const void *)t->header_at))
		return LEAK_TRAP_FREED;
	if (value == t->header || ((value ^ t->header) & ~LEAK_HEADER_BITS))
		return LEAK_TRAP_FREED;
	t->header = value;
	return value & LEAK_HEADER_PREV_IN_USE ? LEAK_TRAP_ARMED : LEAK_TRAP_BLIND;
}

static __attribute__((noinline)) int leak_trapped(struct leak_trap *t, u64 addr, u64 rip)
{
	u32 state = LEAK_TRAP_ARMED;

	t->traps++;
	if (leak_is_allocator(t->code, rip))
		state = addr == t->header_at ? leak_header_says(t) : LEAK_TRAP_FREED;
	if (state == LEAK_TRAP_ARMED)
		return 0;
	t->state = state;
	if (state == LEAK_TRAP_FREED)
		leak_free(t->block);
	return 0;
}

SEC("perf_event")
int on_leak_trap(struct bpf_perf_event_data *ctx)
{
	u64 began = bpf_ktime_get_ns(), addr = ctx->addr, rip = ctx->regs.rip;
	u32 zero = 0, tgid = tgid_of(bpf_get_current_task_btf());
	struct alloc_progress *p = bpf_map_lookup_elem(&alloc_progressed, &zero);

	if (!p)
		return 0;
	p->traps++;
	for (u32 i = 0; i < LEAK_TRAPS; i++) {
		u32 number = i;
		struct leak_trap *t = bpf_map_lookup_elem(&leak_traps, &number);

		if (t && t->state == LEAK_TRAP_ARMED && t->tgid == tgid && (t->word == addr || t->header_at == addr))
			leak_trapped(t, addr, rip);
	}
	p->bpf_ns += bpf_ktime_get_ns() - began;
	return 0;
}

#endif
