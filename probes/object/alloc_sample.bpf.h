/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The program at USDT probes by which a process tells samples of its allocations (alloc_sample.h). */
#ifndef YRT_ALLOC_SAMPLE_BPF_H
#define YRT_ALLOC_SAMPLE_BPF_H

#include "object/alloc.bpf.h"
#include "object/alloc_sample.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ALLOC_SAMPLE_PLACES);
	__type(key, u32);
	__type(value, struct alloc_sample_place);
} alloc_sample_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct alloc_sampled);
} alloc_sampled SEC(".maps");

struct alloc_sample { /* what a hit tells */
	u64 block, size, bytes, calls;
};

static __attribute__((noinline)) u64 alloc_argument(const struct alloc_argument *a)
{
	u64 value = (u64)a->value;

	if (a->kind == ALLOC_ARGUMENT_REGISTER)
		value = alloc_register(a->base);
	if (a->kind == ALLOC_ARGUMENT_MEMORY) {
		value += alloc_register(a->base) + (a->scale ? alloc_register(a->index) * a->scale : 0);
		if (bpf_probe_read_user(&value, sizeof(value), (const void *)value))
			return 0;
	}
	return a->size < 8 ? value & ((1ull << (8 * a->size)) - 1) : value;
}

/* size / (1 - exp(-size / period)), between two points of the table. */
static inline u64 alloc_of_period(const struct alloc_sample_place *p, u64 size)
{
	u64 units = p->period ? size * (ALLOC_SAMPLE_STEPS / ALLOC_SAMPLE_REACH) * ALLOC_SAMPLE_UNIT / p->period : 0;
	u64 at = units / ALLOC_SAMPLE_UNIT, part = units % ALLOC_SAMPLE_UNIT;
	const u32 *between = &p->of_period[at & (ALLOC_SAMPLE_STEPS - 1)];

	if (size / (ALLOC_SAMPLE_REACH + 1) >= p->period || at >= ALLOC_SAMPLE_STEPS)
		return size;
	return (between[0] + (between[1] - between[0]) * part / ALLOC_SAMPLE_UNIT) * p->period / ALLOC_SAMPLE_UNIT;
}

/* False: it is not to be counted. */
static __attribute__((noinline)) int alloc_sample_read(u32 number, struct alloc_sample *ret)
{
	struct alloc_sample_place *p = bpf_map_lookup_elem(&alloc_sample_places, &number);
	u32 zero = 0;
	struct alloc_sampled *own = bpf_map_lookup_elem(&alloc_sampled, &zero);
	u64 over, units;

	if (!p || !own || !ret)
		return 0;
	ret->block = alloc_argument(&p->block);
	ret->size = alloc_argument(&p->size);
	if (ret->size >> 40) {
		own->strange++;
		return 0;
	}
	ret->bytes = p->weighted.kind ? alloc_argument(&p->weighted) : alloc_of_period(p, ret->size);
	if (ret->bytes >> 40) {
		own->strange++;
		return 0;
	}
	units = ret->size ? ret->size : 1;
	ret->calls = ret->bytes / units + (bpf_get_prandom_u32() % units < ret->bytes % units);
	ret->calls = ret->calls ? ret->calls : 1;
	over = ret->bytes > ret->size ? ret->bytes - ret->size : 0;
	own->samples++;
	own->calls += ret->calls;
	own->bytes += ret->bytes;
	own->calls_variance += ret->calls * (ret->calls - 1);
	own->bytes_variance += (ret->bytes / ALLOC_SAMPLE_UNIT) * (over / ALLOC_SAMPLE_UNIT);
	return 1;
}

WALKING("uprobe", on_alloc_sample)
int on_alloc_sample_walk(struct pt_regs *ctx)
{
	u32 tgid = tgid_of(bpf_get_current_task_btf()), number;
	struct task_struct *task = bpf_get_current_task_btf();
	struct probe_stats *st = my_stats();
	struct alloc_sample s = {0};
	struct slot *slot;

	if (ticks != TICKS_TAKEN || !find_target() || !st || !alloc_sample_read((u32)bpf_get_attach_cookie(ctx), &s) ||
	        (weight > 1 && bpf_get_prandom_u32() % (u32)weight))
		return 0;
	slot = event_begin(st, find_target(), tgid, s.bytes * weight, &number);
	if (!slot)
		return 0;
	slot->head.more = s.calls * weight;
	event_user(slot, NULL, task, bpf_map_lookup_elem(&processes, &tgid), true);
	event_end(slot, st, event_emit(slot, st));
	return 0;
}

#endif
