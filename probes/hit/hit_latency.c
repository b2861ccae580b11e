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

#define FUNCTIONS_MAX 65535u /* cookies have 16 bits for them */
#define CALLS_MAX     65536  /* that are under way */
#define MOVING_MAX    4096   /* processes whose stacks move */
#define TARGETS_MAX   4096   /* where jumps lead */
#define LINES_MAX     8192   /* threads that are in a call */

struct hit_latency {
	const struct event_host *host;
	u64 over_ns;
	struct hit_calls *calls; /* not owned */
	struct bpf_link *on_switch;
	struct hit_function *functions;
	u32 nfunctions;
	struct slow_calls slow;
	struct latency_summary summary;
};

void hit_latency_prepare(struct object *o, u64 over_ns)
{
	struct sample *skel = object_skeleton(o);

	object_want(o, "on_enter");
	object_want(o, "on_second");
	object_want(o, "on_again");
	object_want(o, "on_tail");
	object_want(o, "on_return");
	uprobe_prepare(skel->progs.on_enter);
	uprobe_prepare(skel->progs.on_second);
	uprobe_prepare(skel->progs.on_again);
	uprobe_prepare(skel->progs.on_tail);
	uprobe_prepare(skel->progs.on_return);
	uprobe_prepare(skel->progs.on_return_walk);
	bpf_map__set_max_entries(skel->maps.latency_calls, CALLS_MAX);
	bpf_map__set_max_entries(skel->maps.latency_moving, MOVING_MAX);
	bpf_map__set_max_entries(skel->maps.latency_targets, TARGETS_MAX);
	skel->bss->latency_pricing = 1;
	hit_latency_prepare_jumps(o);
	hit_latency_prepare_over(o, over_ns);
}

void hit_latency_prepare_over(struct object *o, u64 over_ns)
{
	struct sample *skel = object_skeleton(o);

	skel->bss->latency_over_ns = over_ns;
	if (!over_ns)
		return;
	object_want(o, "on_call_switch");
	bpf_map__set_max_entries(skel->maps.slow_lines, LINES_MAX);
	bpf_map__set_max_entries(skel->maps.slow_away, LINES_MAX);
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

struct error *hit_latency_create(
        const struct event_host *host, u64 over_ns, struct hit_calls *calls, struct hit_latency **ret)
{
	struct hit_latency *l = calloc(1, sizeof(*l));

	if (!l)
		return &error_no_memory;
	l->host = host;
	l->over_ns = over_ns;
	l->calls = calls;
	*ret = l;
	return NULL;
}

void hit_latency_destroy(struct hit_latency *l)
{
	if (!l)
		return;
	bpf_link__destroy(l->on_switch);
	for (u32 i = 0; i < l->nfunctions; i++) {
		image_put(l->functions[i].img);
		free(l->functions[i].name);
	}
	free(l->functions);
	slow_calls_free(&l->slow);
	free(l);
}

/* A runtime that moves stacks does not pass arguments as C does. */
static bool moves_stacks(const struct process *p, const struct image *img)
{
	for (u32 i = 0; i < p->ninstances; i++)
		if (p->instances[i].ops->moving_stacks && p->instances[i].loaded->image == img)
			return true;
	return false;
}

struct error *hit_latency_add(
        struct hit_latency *l, const struct process *p, struct image *img, u64 addr, const char *name, u32 *number)
{
	struct hit_function *f;
	struct error *err;

	for (u32 i = 0; i < l->nfunctions; i++)
		if (l->functions[i].img == img && l->functions[i].addr == addr) {
			*number = i + 1;
			return NULL;
		}
	if (l->nfunctions == FUNCTIONS_MAX)
		return error_new(ERROR_UNSUPPORTED, "more than %u functions are measured", FUNCTIONS_MAX);
	err = grow(&l->functions, l->nfunctions, sizeof(*l->functions));
	if (err)
		return err;
	f = &l->functions[l->nfunctions];
	*f = (struct hit_function){
	        .addr = addr, .pid = p->pid, .own_convention = moves_stacks(p, img), .name = strdup(name)};
	if (!f->name)
		return &error_no_memory;
	f->img = image_get(img);
	*number = ++l->nfunctions;
	return NULL;
}

struct error *hit_latency_add_callee(struct hit_latency *l, const char *name, u32 *number)
{
	struct error *err;

	for (u32 i = 0; i < l->nfunctions; i++)
		if (!l->functions[i].img && !strcmp(l->functions[i].name, name)) {
			*number = i + 1;
			return NULL;
		}
	if (l->nfunctions == FUNCTIONS_MAX)
		return error_new(ERROR_UNSUPPORTED, "more than %u functions are measured", FUNCTIONS_MAX);
	err = grow(&l->functions, l->nfunctions, sizeof(*l->functions));
	if (err)
		return err;
	l->functions[l->nfunctions] = (struct hit_function){.name = strdup(name)};
	if (!l->functions[l->nfunctions].name)
		return &error_no_memory;
	*number = ++l->nfunctions;
	return NULL;
}

struct error *hit_latency_watch(struct hit_latency *l)
{
	if (!l->over_ns)
		return NULL;
	l->on_switch = bpf_program__attach(object_skeleton(l->host->object)->progs.on_call_switch);
	return l->on_switch ? NULL : error_errno(errno, "cannot attach to the scheduler's tracepoints");
}

struct error *hit_latency_record(
        struct hit_latency *l, const void *data, size_t size, const struct hit_arguments *arguments)
{
	struct sample *skel = object_skeleton(l->host->object);
	const struct latency_record *record = data;
	struct error *err;

	if (size == sizeof(struct latency_target))
		return hit_calls_ask(l->calls, data);
	if (size < sizeof(*record) || !record->which || record->which > l->nfunctions)
		return NULL;
	err = slow_calls_add(&l->slow, &l->functions[record->which - 1],
	        arguments ? hit_arguments_text(arguments, record->call) : NULL, record, skel->bss->taken_ns);
	skel->bss->latency_told_ns = slow_calls_least(&l->slow);
	return err;
}

void hit_latency_name(struct hit_latency *l)
{
	slow_calls_name(&l->slow, l->host->collector);
}

static void sum_up(struct object *o, struct latency_stats *ret)
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

struct latency_summary *hit_latency_summary(struct hit_latency *l)
{
	sum_up(l->host->object, &l->summary.counts);
	l->summary.slow = &l->slow;
	return &l->summary;
}
