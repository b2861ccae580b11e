/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where a thread is among its calls: which stack it runs on, and how far down. */
#ifndef YRT_HIT_KEY_BPF_H
#define YRT_HIT_KEY_BPF_H

#include "hit/latency.h"

struct latency_key {
	u64 tgid;     /* not the thread: a goroutine may return on another one, and no two have the same stack */
	u64 stack;    /* where it is described, of one that moves; else 0 */
	u64 function; /* its number, as cookies have it; 0 in slow_lines */
	u64 at;       /* the stack pointer where it is entered and left: how far below the stack's end, or itself */
};

struct { /* of processes whose stacks move; sized where calls are measured */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct latency_stacks);
} latency_moving SEC(".maps");

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

/* Of the thread that runs here. */
WALK_GLOBAL int latency_where(struct latency_key *key)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs___kernel *r = (void *)bpf_task_pt_regs(task);
	u64 sp = BPF_CORE_READ(r, sp), end = 0;

	if (!key)
		return 0;
	key->tgid = tgid_of(task);
	key->stack = latency_stack(task, (u32)key->tgid, sp, &end);
	key->at = key->stack ? end - sp : sp;
	return 0;
}

#endif
