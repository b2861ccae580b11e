/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs of places that were asked for (hit.h). */
#ifndef YRT_HIT_BPF_H
#define YRT_HIT_BPF_H

u32 hit_tracepoint = 0; /* the reason of tracepoints */

struct { /* hits of targets, whether they were taken or not */
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} hit_counts SEC(".maps");

/* NULL: it is none of a target, or it was not chosen. */
static inline struct slot *hit_begin(struct probe_stats *st, u32 tgid, u32 reason)
{
	u64 *count, each = weight;
	u32 zero = 0, number;
	struct slot *slot;
	int instance;

	if (ticks != TICKS_TAKEN || !st)
		return NULL;
	instance = find_target();
	count = bpf_map_lookup_elem(&hit_counts, &zero);
	if (!instance || !count)
		return NULL;
	++*count;
	if (each > 1 && bpf_get_prandom_u32() % (u32)each)
		return NULL;
	slot = event_begin(st, instance, tgid, each, &number);
	if (!slot)
		return NULL;
	slot->head.reason = reason;
	event_reason(slot);
	return slot;
}

static __attribute__((always_inline)) inline void hit_end(
        struct slot *slot, struct probe_stats *st, struct task_struct *task, u32 tgid)
{
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
}

WALKING("uprobe", on_hit)
int on_hit_walk(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task);
	struct slot *slot = hit_begin(st, tgid, (u32)bpf_get_attach_cookie(ctx));

	if (slot)
		hit_end(slot, st, task, tgid);
	return 0;
}

WALKING("raw_tp", on_tracepoint)
int on_tracepoint_walk(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	u32 tgid = tgid_of(task);
	struct slot *slot = hit_begin(st, tgid, hit_tracepoint);

	if (!slot)
		return 0;
	event_kernel(ctx, slot, 0);
	hit_end(slot, st, task, tgid);
	return 0;
}

#endif
