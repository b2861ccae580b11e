/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_latency.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define CALLS_MAX  65536 /* that are under way */
#define MOVING_MAX 4096  /* processes whose stacks move */

void hit_latency_prepare(struct object *o, u64 over_ns)
{
	struct sample *skel = object_skeleton(o);

	object_want(o, "on_enter");
	object_want(o, "on_again");
	object_want(o, "on_return");
	uprobe_prepare(skel->progs.on_enter);
	uprobe_prepare(skel->progs.on_again);
	uprobe_prepare(skel->progs.on_return);
	uprobe_prepare(skel->progs.on_return_walk);
	bpf_map__set_max_entries(skel->maps.latency_calls, CALLS_MAX);
	bpf_map__set_max_entries(skel->maps.latency_moving, MOVING_MAX);
	hit_latency_prepare_jumps(o);
	skel->bss->latency_over_ns = over_ns;
}

void hit_latency_prepare_jumps(struct object *o)
{
	bpf_map__set_max_entries(object_skeleton(o)->maps.latency_jumps, LATENCY_JUMPS);
}

void hit_latency_tell(struct object *o, const struct process *p)
{
	int map = bpf_map__fd(object_skeleton(o)->maps.latency_moving);
	struct runtime_process view = process_view(p);
	struct latency_stacks all = {0};
	u32 tgid = (u32)p->pid;

	for (u32 i = 0; i < p->ninstances && all.n < LATENCY_MOVING; i++) {
		const struct instance *instance = &p->instances[i];
		struct runtime_stacks one;

		if (!instance->data || !instance->ops->moving_stacks ||
		        !instance->ops->moving_stacks(instance->data, &view, &one))
			continue;
		all.of[all.n].pointer = one.pointer;
		all.of[all.n].bounds = one.bounds;
		all.of[all.n].thread = one.thread;
		all.of[all.n++].own = one.own;
	}
	if (all.n)
		bpf_map_update_elem(map, &tgid, &all, BPF_ANY);
	else
		bpf_map_delete_elem(map, &tgid); /* of the program that it was before exec() */
}

struct error *hit_latency_jump(struct object *o, struct hit_jumps *jumps, const struct latency_jump *jump, u64 *ret)
{
	struct error *err;

	for (u32 i = 0; i < jumps->n; i++)
		if (!memcmp(&jumps->of[i], jump, sizeof(*jump))) { /* of another process, too */
			*ret = i + 1;
			return NULL;
		}
	if (jumps->n == LATENCY_JUMPS)
		return error_new(ERROR_UNSUPPORTED, "more than %u jumps of the function may leave it", LATENCY_JUMPS);
	err = grow(&jumps->of, jumps->n, sizeof(*jumps->of));
	if (err)
		return err;
	if (bpf_map_update_elem(bpf_map__fd(object_skeleton(o)->maps.latency_jumps), &jumps->n, jump, BPF_ANY))
		return error_errno(errno, "cannot tell BPF of a jump");
	jumps->of[jumps->n++] = *jump;
	*ret = jumps->n;
	return NULL;
}

void hit_latency_sum(struct object *o, struct latency_stats *ret)
{
	u32 n = (u32)object_ncpus(o), zero = 0;
	cleanup(free) struct latency_stats *each = calloc(n, sizeof(*each));

	*ret = (struct latency_stats){0};
	if (!each || bpf_map_lookup_elem(bpf_map__fd(object_skeleton(o)->maps.latency_counters), &zero, each))
		return;
	for (u32 i = 0; i < n; i++) {
		u64 max = ret->max_ns > each[i].max_ns ? ret->max_ns : each[i].max_ns;

		for (size_t k = 0; k < sizeof(*ret) / sizeof(u64); k++)
			((u64 *)ret)[k] += ((const u64 *)&each[i])[k];
		ret->max_ns = max;
	}
}
