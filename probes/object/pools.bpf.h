/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that follow pools (pools.h). */
#ifndef YRT_POOLS_BPF_H
#define YRT_POOLS_BPF_H

#include "object/alloc.bpf.h"
#include "object/pools.h"
#include "object/pools_cookie.h"

u64 pool_ids = 0;

struct { /* all these are sized by pools.c */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct pool_key);
	__type(value, struct pool);
} pool_alive SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct pool_more_key);
	__type(value, struct pool_part);
} pool_more SEC(".maps");

struct { /* by hash */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct pool_maker);
} pool_makers SEC(".maps");

struct { /* by thread: where a function that makes a pool puts its address */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} pool_outs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pool_counters);
} pool_counted SEC(".maps");

struct { /* a pool is too large for the stack */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pool);
} pool_new SEC(".maps");

static inline struct pool_counters *pool_counters_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&pool_counted, &zero);
}

/* Each is read first: clang would choose the register by its address, which the verifier refuses. */
static __attribute__((noinline)) u64 pool_argument(struct pt_regs *ctx, u32 number)
{
	u64 value[6] = {ctx->rdi, ctx->rsi, ctx->rdx, ctx->rcx, ctx->r8, ctx->r9};

	for (u32 i = 0; i < 6; i++) {
		WALK_BARRIER(value[i]);
		if (i == number)
			return value[i];
	}
	return 0;
}

/* n times alloc_each, in units of 1 / ALLOC_EACH; rounded up or down at random, so that the mean is right. */
static inline u64 pool_weighed(u64 n)
{
	return (n * alloc_each + (bpf_get_prandom_u32() & (ALLOC_EACH - 1))) / ALLOC_EACH;
}

/* A pool is there. maker 0: since before the run. again: it was emptied. */
static __attribute__((noinline)) struct pool *pool_begins(u64 addr, u64 maker, int again)
{
	struct pool_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf())};
	struct pool_maker none = {0}, *of;
	u32 zero = 0;
	struct pool *pool = bpf_map_lookup_elem(&pool_new, &zero);
	struct pool_counters *own = pool_counters_here();

	if (!pool || !own || !addr)
		return NULL;
	pool->id = __sync_fetch_and_add(&pool_ids, 1) + 1;
	pool->made_ns = maker ? bpf_ktime_get_ns() : 0;
	pool->maker = maker;
	if (bpf_map_update_elem(&pool_alive, &key, pool, BPF_ANY)) {
		own->full++;
		return NULL;
	}
	if (maker && !again) {
		own->made++;
		of = bpf_map_lookup_elem(&pool_makers, &maker);
		if (!of) {
			bpf_map_update_elem(&pool_makers, &maker, &none, BPF_NOEXIST);
			of = bpf_map_lookup_elem(&pool_makers, &maker);
		}
		if (of)
			__sync_fetch_and_add(&of->made, 1);
	}
	return bpf_map_lookup_elem(&pool_alive, &key);
}

static __attribute__((noinline)) int pool_adds_more(u64 id, u64 hash, s64 bytes, s64 blocks)
{
	struct pool_more_key key = {.id = id, .hash = hash};
	struct pool_part none = {.hash = hash}, *part = bpf_map_lookup_elem(&pool_more, &key);
	struct pool_counters *own = pool_counters_here();

	if (!part) {
		bpf_map_update_elem(&pool_more, &key, &none, BPF_NOEXIST);
		part = bpf_map_lookup_elem(&pool_more, &key);
	}
	if (part) {
		__sync_fetch_and_add(&part->bytes, bytes);
		__sync_fetch_and_add(&part->blocks, blocks);
	} else if (own) {
		own->full++;
	}
	return 0;
}

/* A block is taken. */
static __attribute__((noinline)) int pool_adds(u64 addr, u64 hash, u64 size, s64 bytes, s64 blocks)
{
	struct pool_key key = {.addr = addr, .tgid = tgid_of(bpf_get_current_task_btf())};
	struct pool *pool = bpf_map_lookup_elem(&pool_alive, &key);
	u64 now = bpf_ktime_get_ns();

	if (!pool)
		pool = pool_begins(addr, 0, false);
	if (!pool)
		return 0;
	pool->bytes += bytes;
	pool->blocks += blocks;
	if (!pool->first_ns)
		pool->first_ns = now;
	pool->last_ns = now;
	for (u32 i = 0; i < POOL_PARTS; i++) {
		struct pool_part *part = &pool->part[i];

		if (part->hash && part->hash != hash)
			continue;
		part->hash = hash;
		part->size = size;
		part->bytes += bytes;
		part->blocks += blocks;
		return 0;
	}
	return pool_adds_more(pool->id, hash, bytes, blocks);
}

/*
 * A block goes back to malloc() before its pool ends. It is charged to a stack by its size, which glibc keeps in the
 * word in front of it (malloc.c: request2size()).
 */
SEC("uprobe")
int on_pool_free(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), ptr = pool_argument(ctx, POOL_COOKIE_SIZE(cookie)), chunk, bytes,
	    blocks;
	struct pool_key key = {.addr = pool_argument(ctx, POOL_COOKIE_POOL(cookie))};
	struct pool_counters *own = pool_counters_here();
	struct pool_part *of = NULL;
	struct pool *pool;

	if (ticks != TICKS_TAKEN || !find_target() || !own || !alloc_open)
		return 0; /* what is taken outside of a window does not count either */
	key.tgid = tgid_of(bpf_get_current_task_btf());
	pool = bpf_map_lookup_elem(&pool_alive, &key);
	if (!pool || bpf_probe_read_user(&chunk, sizeof(chunk), (const void *)(ptr - 8)))
		return 0;
	for (u32 i = 0; i < POOL_PARTS; i++) {
		struct pool_part *part = &pool->part[i];

		if (!part->hash || ((part->size + 8 + 15) & ~15ull) != (chunk & ~15ull))
			continue;
		of = part;
		if (of->blocks > 0)
			break;
	}
	if (!of) {
		own->unmatched++;
		return 0;
	}
	bytes = pool_weighed(of->size);
	blocks = pool_weighed(1);
	of->bytes -= bytes;
	of->blocks -= blocks;
	pool->bytes -= bytes;
	pool->blocks -= blocks;
	own->freed++;
	return 0;
}

/* It is over, or begins anew (reset). */
SEC("uprobe")
int on_pool_end(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct pool_key key = {.addr = pool_argument(ctx, POOL_COOKIE_POOL(cookie))};
	struct pool_counters *own = pool_counters_here();
	struct pool_maker *maker;
	struct pool *pool;
	u64 hash, bytes;

	if (ticks != TICKS_TAKEN || !find_target() || !own)
		return 0;
	key.tgid = tgid_of(bpf_get_current_task_btf());
	if (POOL_COOKIE_RESET(cookie))
		own->reset++;
	else
		own->destroyed++;
	pool = bpf_map_lookup_elem(&pool_alive, &key);
	if (!pool)
		return 0;
	hash = pool->maker;
	bytes = pool->bytes > 0 ? pool->bytes : 0;
	maker = bpf_map_lookup_elem(&pool_makers, &hash);
	if (maker && !POOL_COOKIE_RESET(cookie)) {
		__sync_fetch_and_add(&maker->gone, 1);
		__sync_fetch_and_add(&maker->life_ns, bpf_ktime_get_ns() - pool->made_ns);
		__sync_fetch_and_add(&maker->bytes, bytes);
		if (bytes > maker->most)
			maker->most = bytes;
	}
	bpf_map_delete_elem(&pool_alive, &key);
	if (POOL_COOKIE_RESET(cookie) && hash)
		pool_begins(key.addr, hash, true);
	return 0;
}

/* Where the address of a new pool will be. */
SEC("uprobe")
int on_pool_out(struct pt_regs *ctx)
{
	u64 out = pool_argument(ctx, POOL_COOKIE_POOL(bpf_get_attach_cookie(ctx)));
	u32 thread = (u32)bpf_get_current_pid_tgid();

	if (ticks == TICKS_TAKEN && find_target())
		bpf_map_update_elem(&pool_outs, &thread, &out, BPF_ANY);
	return 0;
}

/* The address of a pool that was just made; 0: there is none. */
static __attribute__((noinline)) u64 pool_made(struct pt_regs *ctx, u64 cookie)
{
	u32 thread = (u32)bpf_get_current_pid_tgid();
	u64 *out, addr = ctx->rax;

	if (!POOL_COOKIE_OUT(cookie))
		return addr;
	out = bpf_map_lookup_elem(&pool_outs, &thread);
	if (!out || bpf_probe_read_user(&addr, sizeof(addr), (const void *)*out))
		addr = 0;
	bpf_map_delete_elem(&pool_outs, &thread);
	return addr;
}

/* Of a block that is taken: what it counts for. False: nothing. */
static __attribute__((noinline)) int pool_takes(struct pt_regs *ctx, u64 cookie, u64 *bytes, u64 *blocks)
{
	u64 size = pool_argument(ctx, POOL_COOKIE_SIZE(cookie));
	u32 zero = 0;
	struct alloc_counters *own = bpf_map_lookup_elem(&alloc_counted, &zero);

	if (!own || !alloc_open)
		return 0;
	if (alloc_is_inner(ctx->rsp, ctx->rip, cookie)) {
		own->inner++;
		return 0;
	}
	if (size >> 47) {
		own->strange++;
		return 0;
	}
	own->calls++;
	own->bytes += size;
	if (!alloc_choose(size, bytes, blocks))
		return 0;
	own->taken++;
	*bytes = pool_weighed(*bytes);
	*blocks = pool_weighed(*blocks);
	return 1;
}

WALKING("uprobe", on_pool)
int on_pool_walk(struct pt_regs *ctx)
{
	u64 began = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(ctx), addr, bytes = 0, blocks = 0;
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number, tgid = tgid_of(task), takes = !POOL_COOKIE_MAKES(cookie);
	struct probe_stats *st = my_stats();
	struct slot *slot = NULL;
	int lost;

	if (ticks != TICKS_TAKEN || !find_target() || !st)
		return 0;
	addr = takes ? pool_argument(ctx, POOL_COOKIE_POOL(cookie)) : pool_made(ctx, cookie);
	if (addr && (!takes || pool_takes(ctx, cookie, &bytes, &blocks)))
		slot = event_begin(st, find_target(), tgid, bytes, &number);
	if (slot) {
		if (takes)
			alloc_pace(began);
		event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), false);
		count_stop(st, slot->head.stop, bytes);
		slot->head.value = 0; /* it is known later */
		lost = event_emit(slot, st);
		if (lost < 0 && takes)
			pool_adds(addr, slot->head.hash, pool_argument(ctx, POOL_COOKIE_SIZE(cookie)), bytes, blocks);
		else if (lost < 0)
			pool_begins(addr, slot->head.hash, false);
		slot->head.value = lost < 0 ? 0 : bytes;
		event_end(slot, st, lost);
	}
	if (takes)
		alloc_hit_ends(began, cookie);
	return 0;
}

#endif
