/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs that measure calls (latency.h). */
#ifndef YRT_HIT_LATENCY_BPF_H
#define YRT_HIT_LATENCY_BPF_H

#include "hit/hit.bpf.h"
#include "hit/hit_key.bpf.h"
#include "hit/hit_park.bpf.h"
#include "hit/hit_slow.bpf.h"

struct { /* by number of the -e; sized where calls are measured */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct latency_stats);
} latency_counters SEC(".maps");

struct latency_target_key {
	u64 to;
	u32 tgid, function;
};

struct { /* where calls were left to by jumps: enum latency_target_state; sized where calls are measured */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct latency_target_key);
	__type(value, u32);
} latency_targets SEC(".maps");

/* The last call that was entered on a CPU, while the price of a hit is measured (hit_price.h). */
struct latency_entry {
	struct latency_key key;
	u64 began; /* 0: none, or it was looked at */
	u64 thread;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct latency_entry);
} latency_entries SEC(".maps");

u32 latency_pricing = 0;
u32 latency_nprices = 0; /* hits of on_second(), whether they told a price or not */
u64 latency_prices[LATENCY_PRICES] = {0};

static inline struct latency_call *latency_find(const struct latency_key *key)
{
	struct latency_call *call = bpf_map_lookup_elem(&latency_calls, key);

	return call && call->shift == hit_shift ? call : NULL;
}

/* Of the -e that a function is of. */
static inline struct latency_stats *latency_stats_of(u64 function)
{
	u32 spec = (u32)function >> LATENCY_SPEC;

	return bpf_map_lookup_elem(&latency_counters, &spec);
}

static inline struct latency_stats *latency_here(struct task_struct *task, struct latency_key *key, u64 cookie)
{
	latency_where(key);
	key->function = cookie >> LATENCY_FUNCTION & 0xffff;
	return ticks == TICKS_TAKEN && find_target() ? latency_stats_of(key->function) : NULL;
}

/* The registers by their DWARF numbers. */
static inline void latency_registers(const struct pt_regs *ctx, u64 *reg)
{
	reg[DWREG_RAX] = ctx->rax;
	reg[DWREG_RDX] = ctx->rdx;
	reg[DWREG_RCX] = ctx->rcx;
	reg[DWREG_RBX] = ctx->rbx;
	reg[DWREG_RSI] = ctx->rsi;
	reg[DWREG_RDI] = ctx->rdi;
	reg[DWREG_RBP] = ctx->rbp;
	reg[DWREG_RSP] = ctx->rsp;
	reg[DWREG_R8] = ctx->r8;
	reg[DWREG_R9] = ctx->r9;
	reg[DWREG_R10] = ctx->r10;
	reg[DWREG_R11] = ctx->r11;
}

static inline void latency_entered(const struct latency_key *key, u64 began)
{
	u32 zero = 0;
	struct latency_entry *entry = bpf_map_lookup_elem(&latency_entries, &zero);

	if (!entry)
		return;
	entry->key = *key;
	entry->began = began;
	entry->thread = bpf_get_current_pid_tgid();
}

/* A call begins, and counts. */
static __attribute__((always_inline)) inline int latency_begins(struct pt_regs *ctx, const struct latency_key *key,
        struct latency_call *call, struct latency_stats *all, struct hit_counts *counts)
{
	all->entered += hit_each;
	counts->under_way++;
	if (latency_over_ns) {
		call->which = key->function;
		latency_registers(ctx, call->reg);
		slow_begin(bpf_get_current_task_btf(), key, call->began, 0);
	}
	bpf_map_update_elem(&latency_calls, key, call, BPF_ANY);
	if (latency_pricing)
		latency_entered(key, call->began);
	return 0;
}

SEC("uprobe")
int on_enter(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct latency_key key = {0};
	struct latency_stats *all = latency_here(task, &key, bpf_get_attach_cookie(ctx));
	struct latency_call call = {.began = bpf_ktime_get_ns(), .shift = hit_shift}, *before;
	struct hit_counts *counts = hit_counts_here();

	if (!all || !counts)
		return 0;
	counts->entries++;
	before = latency_find(&key);
	if (before && before->again) {
		before->again = before->left = 0;
		return 0;
	}
	if (call.began > hit_until)
		return 0;
	if (before && !before->refused) {
		all->left += hit_each;
		counts->under_way--;
	}
	if (hit_asks) { /* it is kept if it is refused, too: its exits are its own */
		call.refused = 1;
		bpf_map_update_elem(&latency_calls, &key, &call, BPF_ANY);
		bpf_tail_call(ctx, &hit_ifs, (u32)key.function >> LATENCY_SPEC);
		call.refused = 0;
	}
	return latency_begins(ctx, &key, &call, all, counts);
}

#define LATENCY_TRIES 2

/*
 * A keyed function's entry, too: takes what tells the call apart until it is over (slow_values()). Another thread that
 * has the CPU meanwhile takes its own into the same place, and says so.
 */
SEC("uprobe")
int on_keep(struct pt_regs *ctx)
{
	u32 tid = (u32)bpf_get_current_pid_tgid(), function = bpf_get_attach_cookie(ctx) & LATENCY_COOKIE_KEY;
	struct values_record *r = values_here();
	struct latency_key key = {0};
	struct values_call call;

	if (!find_target() || !function || !r || !values_places(function))
		return 0;
	latency_where(&key);
	call = slow_values_key(&key);
	for (u32 i = 0; i < LATENCY_TRIES; i++) {
		*(volatile u32 *)&r->tgid = tid;
		values_ahead(function);
		bpf_map_update_elem(&values_calls, &call, r, BPF_ANY);
		if (*(volatile u32 *)&r->tgid == tid)
			return 0;
	}
	bpf_map_delete_elem(&values_calls, &call);
	return 0;
}

/* The second instruction: since the entry nothing but hits took time. The call begins here. */
SEC("uprobe")
int on_second(struct pt_regs *ctx)
{
	u64 now = bpf_ktime_get_ns(), began;
	u32 zero = 0, number;
	struct latency_entry *entry = bpf_map_lookup_elem(&latency_entries, &zero);
	struct latency_call *call;

	if (!latency_pricing || !entry || !find_target())
		return 0;
	number = __sync_fetch_and_add(&latency_nprices, 1);
	began = entry->began;
	entry->began = 0;
	if (!began || entry->thread != bpf_get_current_pid_tgid())
		return 0;
	WALK_BARRIER(number);
	if (number < LATENCY_PRICES)
		latency_prices[number] = now - began;
	call = latency_find(&entry->key);
	if (call)
		call->began = bpf_ktime_get_ns();
	return 0;
}

SEC("uprobe")
int on_again(struct pt_regs *ctx)
{
	struct latency_key key = {0};
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct latency_call *call = latency_here(bpf_get_current_task_btf(), &key, cookie) ? latency_find(&key) : NULL;

	if (call && (call->left || !(cookie & LATENCY_BORROWED)) && latency_jumps_away(cookie))
		call->again = 1;
	return 0;
}

/* What is known of where the jump leads. The first time user space is told. */
static __attribute__((noinline)) u32 latency_state_of(u64 cookie, u32 tgid)
{
	struct latency_target_key key = {.to = latency_leads(cookie), .tgid = tgid};
	u32 *state, told = LATENCY_TOLD;
	struct latency_target *record;

	if (!(cookie & LATENCY_ASK))
		return cookie & LATENCY_LOST ? LATENCY_TOLD : LATENCY_FOLLOWED;
	key.function = cookie >> LATENCY_FUNCTION & 0xffff;
	state = bpf_map_lookup_elem(&latency_targets, &key);
	if (state)
		return *state;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record)
		return LATENCY_TOLD;
	*record =
	        (struct latency_target){.type = RECORD_EVENT, .tgid = key.tgid, .function = key.function, .to = key.to};
	bpf_ringbuf_submit(record, wake());
	bpf_map_update_elem(&latency_targets, &key, &told, BPF_NOEXIST);
	return LATENCY_TOLD;
}

/* A jump to another function: its return is the call's. */
SEC("uprobe")
int on_tail(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 cookie = bpf_get_attach_cookie(ctx);
	struct latency_key key = {0};
	struct latency_stats *all = latency_here(task, &key, cookie);
	struct latency_call *call = all ? latency_find(&key) : NULL;
	struct hit_counts *counts = hit_counts_here();
	u32 state;

	if (!all || !counts)
		return 0;
	counts->exits++;
	if ((cookie & LATENCY_BORROWED && (!call || !call->left)) || !latency_jumps_away(cookie))
		return 0;
	if (!call) {
		all->unpaired++;
		return 0;
	}
	state = latency_state_of(cookie, (u32)key.tgid);
	if (state == LATENCY_AGAIN) {
		call->again = 1;
	} else if (state == LATENCY_FOLLOWED) {
		call->left = 1;
	} else {
		if (!call->refused) {
			counts->under_way--;
			all->lost += hit_each;
			if (latency_over_ns)
				slow_end(task, &key, call, 0, false);
		}
		bpf_map_delete_elem(&latency_calls, &key);
	}
	return 0;
}

/* Counts a call that is over, for `each`. 1: it was slow. */
WALK_GLOBAL int latency_count(u64 ns, u64 function, u32 each)
{
	u32 bucket = latency_bucket(ns);
	struct latency_stats *all = latency_stats_of(function);

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

/* The call that is over here. 0: none that was entered, or it was fast. */
WALK_GLOBAL u64 latency_of_call(u64 cookie)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct latency_key key = {0};
	struct latency_stats *all = latency_here(task, &key, cookie);
	struct latency_call *call = all ? latency_find(&key) : NULL;
	struct hit_counts *counts = hit_counts_here();
	int slow;
	u64 ns;

	if (!all || !counts)
		return 0;
	counts->exits++;
	if (cookie & LATENCY_BORROWED && (!call || !call->left))
		return 0;
	if (!call) {
		all->unpaired++;
		return 0;
	}
	if (call->refused) {
		bpf_map_delete_elem(&latency_calls, &key);
		return 0;
	}
	counts->under_way--;
	ns = bpf_ktime_get_ns() - call->began;
	slow = latency_count(ns, key.function, hit_each);
	if (latency_over_ns)
		slow_end(task, &key, call, ns, slow);
	bpf_map_delete_elem(&latency_calls, &key);
	return slow ? ns : 0;
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
	slot = event_begin(st, instance, tgid, slow_rest(ns, calls) * calls, &number);
	if (!slot)
		return 0;
	slot->head.more = calls;
	hit_end(slot, st, task, tgid);
	return 0;
}

#endif
