/* SPDX-License-Identifier: Apache-2.0 */
#include "pools.h"

#include <bpf/libbpf.h>
#include <stdlib.h>

#include "alloc_places.h"
#include "alloc_windows.h"
#include "leak_stacks.h"
#include "pools_places.h"
#include "pools_report.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/now.h"

#define THREADS 4096
#define ALIVE   65536
#define MORE    262144
#define MAKERS  4096
#define SHARE   0.25 /* of --max-cpu */
#define MOST    10   /* stacks in 10 ms, before blocks are taken by chance */
#define SWEEP   1000000000ull

struct pools {
	const struct event_host *host;
	const struct pool_options *options;
	struct alloc_windows *windows;
	struct pool_places *places;
	struct leak_stacks stacks; /* their places in the profile */
	u64 began_ns, ended_ns, swept_ns;
	bool started;
	char *report;
	struct pool_summary summary;
};

static void prepare(struct object *o)
{
	struct sample *skel = object_skeleton(o);
	struct bpf_program *programs[] = {skel->progs.on_pool, skel->progs.on_pool_walk, skel->progs.on_pool_end,
	        skel->progs.on_pool_free, skel->progs.on_pool_out};

	object_want(o, "on_pool");
	object_want(o, "on_pool_end");
	object_want(o, "on_pool_free");
	object_want(o, "on_pool_out");
	alloc_windows_prepare(o);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		uprobe_prepare(programs[i]);
	alloc_places_prepare(skel, THREADS);
	bpf_map__set_max_entries(skel->maps.pool_alive, ALIVE);
	bpf_map__set_max_entries(skel->maps.pool_more, MORE);
	bpf_map__set_max_entries(skel->maps.pool_makers, MAKERS);
	bpf_map__set_max_entries(skel->maps.pool_outs, THREADS);
}

static void destroy(void *event)
{
	struct pools *p = event;

	if (!p)
		return;
	pool_places_destroy(p->places);
	alloc_windows_destroy(p->windows);
	leak_stacks_free(&p->stacks);
	free(p->report);
	free(p);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct pools *p = calloc(1, sizeof(*p));
	struct alloc_windows_options windows = {
	        .host = host, .share = host->options->cpu_percent / 100 * SHARE, .cpu_least = ALLOC_CPU_LEAST};
	struct error *err;

	if (!p)
		return &error_no_memory;
	p->host = host;
	p->options = host->options->of_event;
	err = alloc_windows_create(&windows, &p->windows);
	if (!err)
		err = pool_places_create(host, p->windows, &p->places);
	if (err)
		destroy(p);
	else
		*ret = p;
	return err;
}

static struct error *start(void *event, bool at_exec)
{
	struct pools *p = event;
	struct error *err = at_exec ? NULL : pool_places_look(p->places);

	if (!err && !at_exec && !p->host->options->selection)
		err = pool_places_check(p->places);
	if (err)
		return err;
	object_skeleton(p->host->object)->bss->alloc_most = p->host->options->cpu_percent ? MOST : 0;
	p->began_ns = p->swept_ns = now_ns();
	leak_stacks_begin(&p->stacks, p->began_ns);
	p->started = true;
	object_take_ticks(p->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

/* A process that came later, or a file: what can not be in it is reported, and the run goes on. */
static struct error *poll(void *event, u64 now)
{
	struct pools *p = event;
	struct error *err = pool_places_look(p->places);

	if (!err && now - p->swept_ns > SWEEP) {
		p->swept_ns = now;
		err = pools_sweep(p->host->object);
	}
	return event_goes_on(p->host, err);
}

static struct error *stop(void *event)
{
	struct pools *p = event;
	struct error *err;

	alloc_windows_end(p->windows);
	object_take_ticks(p->host->object, TICKS_IGNORED);
	p->ended_ns = now_ns();
	err = p->started ? pool_places_check(p->places) : NULL;
	if (err)
		p->host->options->warn(p->host->options->ctx, err);
	return NULL;
}

static struct error *stack(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct pools *p = event;

	return leak_stacks_place(&p->stacks, p->host->collector, record, frames, n);
}

/* When all stacks are there. */
static struct error *finish(void *event)
{
	struct pools *p = event;
	const struct pools_reporting r = {.object = p->host->object,
	        .stacks = &p->stacks,
	        .profile = collector_profile(p->host->collector),
	        .began_ns = p->began_ns,
	        .ended_ns = p->ended_ns};
	struct error *err;

	p->summary.older_s = p->options->older_s;
	err = pools_report(&r, &p->summary, &p->report);
	p->summary.report = p->report;
	return err;
}

static struct error *seen(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct pools *p = event;
	const struct process *target = targets_find(p->host->targets, record->instance);

	return target ? alloc_windows_see(p->windows, target, frames, n) : NULL;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct pools *p = event;
	struct object *o = p->host->object;

	error_free(object_sum(
	        o, object_skeleton(o)->maps.alloc_counted, (u64 *)&p->summary.calls, sizeof(p->summary.calls)));
	error_free(object_sum(
	        o, object_skeleton(o)->maps.pool_counted, (u64 *)&p->summary.counters, sizeof(p->summary.counters)));
	alloc_windows_estimate(p->windows, &p->summary.estimate);
	p->summary.from = pool_places_text(p->places);
	st->probed = p->summary.estimate.windows ? p->summary.estimate.part : 0;
	st->of_event = &p->summary;
}

const struct event_ops pools_event = {
        .name = "pools",
        .command = "pools",
        .topic = TOPIC_MEMORY,
        .summary = "what lives in memory pools (nginx, APR, others): by stack, by who made the pool, by age",
        .unit = "bytes",
        .more = "blocks",
        .slots = 4,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .stop = stop,
        .finish = finish,
        .halve = event_halve_by_weight,
        .seen = seen,
        .stack = stack,
        .stats = stats,
        .command_line = &pools_command,
        .words = &pools_words,
};
