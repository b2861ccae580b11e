/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_latency.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hit_awaits.h"
#include "probes/cpu_ticks.h"
#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define FUNCTIONS_MAX ((1u << LATENCY_SPEC) - 1)
#define CALLS_MAX     65536 /* that are under way */
#define MOVING_MAX    4096  /* processes whose stacks move */
#define TARGETS_MAX   4096  /* where jumps lead */
#define LINES_MAX     8192  /* threads that are in a call */
#define TICK_HZ       199

struct hit_latency {
	const struct event_host *host;
	const struct hit_options *options;
	struct hit_calls *calls; /* not owned */
	struct bpf_link *on_switch;
	struct cpu_ticks ticks;
	struct hit_function *functions;
	u32 nfunctions;
	struct slow_calls slow[HIT_SPECS_MAX];
	struct hit_awaits *awaits; /* NULL: no call can be suspended */
	struct latency_summary summary;
};

void hit_latency_prepare(struct object *o, const struct hit_options *options)
{
	struct sample *skel = object_skeleton(o);

	object_want(o, "on_enter");
	object_want(o, "on_keep");
	object_want(o, "on_second");
	object_want(o, "on_again");
	object_want(o, "on_tail");
	object_want(o, "on_return");
	uprobe_prepare(skel->progs.on_enter);
	uprobe_prepare(skel->progs.on_keep);
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
	hit_latency_prepare_counts(o, options);
}

void hit_latency_prepare_counts(struct object *o, const struct hit_options *options)
{
	struct sample *skel = object_skeleton(o);

	bpf_map__set_max_entries(skel->maps.latency_counters, options->n);
	skel->bss->latency_over_ns = options->over_ns;
	if (!options->over_ns)
		return;
	object_want(o, "on_call_switch");
	object_want(o, "on_call_tick");
	object_want(o, "on_call_park");
	object_want(o, "on_call_resume");
	uprobe_prepare(skel->progs.on_call_park);
	uprobe_prepare(skel->progs.on_call_park_walk);
	uprobe_prepare(skel->progs.on_call_resume);
	skel->data->latency_tick_ns = 1000000000ull / TICK_HZ;
	bpf_map__set_max_entries(skel->maps.slow_lines, LINES_MAX);
	bpf_map__set_max_entries(skel->maps.slow_away, LINES_MAX);
	bpf_map__set_max_entries(skel->maps.slow_parked, LINES_MAX);
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

static bool has_language(const struct hit_options *options)
{
	for (u32 i = 0; i < options->n; i++)
		if (options->spec[i].language)
			return true;
	return false;
}

struct error *hit_latency_create(const struct event_host *host, const struct hit_options *options,
        struct hit_calls *calls, struct hit_latency **ret)
{
	struct hit_latency *l = calloc(1, sizeof(*l));
	struct error *err = NULL;

	if (!l)
		return &error_no_memory;
	l->host = host;
	l->options = options;
	l->calls = calls;
	if (options->over_ns && has_language(options))
		err = hit_awaits_create(host, options->looked_ns ?: options->over_ns, &l->awaits);
	if (err)
		hit_latency_destroy(l);
	else
		*ret = l;
	return err;
}

void hit_latency_destroy(struct hit_latency *l)
{
	if (!l)
		return;
	bpf_link__destroy(l->on_switch);
	hit_awaits_destroy(l->awaits);
	cpu_ticks_close(&l->ticks);
	for (u32 i = 0; i < l->nfunctions; i++) {
		image_put(l->functions[i].img);
		free(l->functions[i].name);
	}
	free(l->functions);
	for (u32 i = 0; i < HIT_SPECS_MAX; i++)
		slow_calls_free(&l->slow[i]);
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

static u32 number_of(u32 spec, u32 i)
{
	return spec << LATENCY_SPEC | (i + 1);
}

static struct error *add(struct hit_latency *l, u32 spec, const char *name, u32 *number)
{
	struct hit_function *f;
	struct error *err;

	if (l->nfunctions == FUNCTIONS_MAX)
		return error_new(ERROR_UNSUPPORTED, "more than %u functions are measured", FUNCTIONS_MAX);
	err = grow(&l->functions, l->nfunctions, sizeof(*l->functions));
	if (err)
		return err;
	f = &l->functions[l->nfunctions];
	*f = (struct hit_function){.spec = spec, .name = strdup(name)};
	if (!f->name)
		return &error_no_memory;
	*number = number_of(spec, l->nfunctions++);
	return NULL;
}

struct error *hit_latency_add(
        struct hit_latency *l, u32 spec, const struct process *p, struct image *img, u64 addr, u32 *number)
{
	struct hit_function *f;
	struct error *err;

	for (u32 i = 0; i < l->nfunctions; i++)
		if (l->functions[i].spec == spec && l->functions[i].img == img && l->functions[i].addr == addr) {
			*number = number_of(spec, i);
			return NULL;
		}
	err = add(l, spec, l->options->spec[spec].name, number);
	if (err)
		return err;
	f = &l->functions[l->nfunctions - 1];
	f->addr = addr;
	f->pid = p->pid;
	f->own_convention = moves_stacks(p, img);
	f->img = image_get(img);
	return NULL;
}

struct error *hit_latency_add_callee(struct hit_latency *l, u32 spec, const struct runtime_callee *callee, u32 *number)
{
	struct error *err;

	for (u32 i = 0; i < l->nfunctions; i++)
		if (l->functions[i].spec == spec && !l->functions[i].img &&
		        !strcmp(l->functions[i].name, callee->name)) {
			*number = number_of(spec, i);
			return NULL;
		}
	err = add(l, spec, callee->name, number);
	if (!err)
		l->functions[l->nfunctions - 1].suspends =
		        (callee->makes || callee->switched) && callee->place.own == RUNTIME_OWN_FRAME;
	return err;
}

struct hit_function *hit_latency_function(const struct hit_latency *l, const struct latency_record *record)
{
	u32 which = record->which & FUNCTIONS_MAX;

	return which && which <= l->nfunctions ? &l->functions[which - 1] : NULL;
}

struct error *hit_latency_awaits(
        const struct hit_latency *l, const struct latency_record *record, struct slow_stack *ret)
{
	return hit_awaits_of(l->awaits, record, ret);
}

struct error *hit_latency_watch(struct hit_latency *l)
{
	if (!l->options->over_ns)
		return NULL;
	l->on_switch = bpf_program__attach(object_skeleton(l->host->object)->progs.on_call_switch);
	if (!l->on_switch)
		return error_errno(errno, "cannot attach to the scheduler's tracepoints");
	return cpu_ticks_open(&l->ticks, TICK_HZ, object_program(l->host->object, "on_call_tick"));
}

/* "f(arguments) = result", as far as they were recorded. NULL if nothing was, or without memory. */
static char *text_of(const struct hit_arguments *arguments, const struct latency_record *record)
{
	const char *call = arguments ? hit_arguments_text(arguments, record->call) : NULL;
	const char *result = call ? hit_arguments_result(arguments, record) : NULL;
	char *ret;

	return call && asprintf(&ret, "%s%s%s", call, result ? " = " : "", result ? result : "") >= 0 ? ret : NULL;
}

struct error *hit_latency_record(
        struct hit_latency *l, const void *data, size_t size, const struct hit_arguments *arguments)
{
	struct sample *skel = object_skeleton(l->host->object);
	const struct latency_record *record = data;
	cleanup(free) char *text = NULL;
	struct slow_call *slow;
	u32 spec;
	struct hit_function *f;
	struct error *err;

	if (size == sizeof(struct latency_target))
		return hit_calls_ask(l->calls, data);
	f = size < sizeof(*record) ? NULL : hit_latency_function(l, record);
	if (!f)
		return NULL;
	spec = f->spec;
	text = text_of(arguments, record);
	err = slow_calls_add(&l->slow[spec], f, text, record, skel->bss->taken_ns, &slow);
	if (!err && slow)
		err = hit_awaits_of(l->awaits, record, slow->await);
	skel->bss->latency_told_ns[spec] = slow_calls_least(&l->slow[spec]);
	return err;
}

void hit_latency_name(struct hit_latency *l)
{
	for (u32 i = 0; i < l->options->n; i++)
		slow_calls_name(&l->slow[i], l->host->collector);
}

struct error *hit_latency_poll(struct hit_latency *l, u64 now)
{
	hit_latency_name(l);
	return hit_awaits_poll(l->awaits, now);
}

u64 hit_latency_due(const struct hit_latency *l)
{
	return hit_awaits_due(l->awaits);
}

static void sum_up(struct object *o, u32 spec, struct latency_stats *ret)
{
	u32 n = (u32)object_ncpus(o);
	cleanup(free) struct latency_stats *each = calloc(n, sizeof(*each));

	*ret = (struct latency_stats){0};
	if (!each || bpf_map_lookup_elem(bpf_map__fd(object_skeleton(o)->maps.latency_counters), &spec, each))
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
	l->summary.n = l->options->n;
	for (u32 i = 0; i < l->options->n; i++) {
		l->summary.of[i].what = l->options->spec[i].text;
		l->summary.of[i].slow = &l->slow[i];
		sum_up(l->host->object, i, &l->summary.of[i].counts);
		if (l->options->condition[i]) /* most are of calls that do not meet it */
			l->summary.of[i].counts.unpaired = 0;
	}
	return &l->summary;
}
