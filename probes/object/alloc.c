/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc.h"

#include <bpf/libbpf.h>
#include <stdlib.h>

#include "alloc_counter_place.h"
#include "alloc_places.h"
#include "alloc_samples.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/process/view.h"

#define THREADS 4096
#define SHARE   0.25 /* of --max-cpu */
#define COUNTS  8192 /* stacks of a window */

struct alloc {
	const struct event_host *host;
	const struct alloc_options *options;
	struct alloc_windows *windows;
	struct alloc_places *places;
	struct alloc_samples *samples; /* NULL: of --growth, or each call is to be seen */
	struct alloc_counter_file counter;
	bool started, warned;
	struct alloc_summary summary;
};

static void prepare(struct object *o)
{
	struct sample *skel = object_skeleton(o);

	object_want(o, "on_alloc");
	object_want(o, "on_alloc_sample");
	alloc_windows_prepare(o);
	uprobe_prepare(skel->progs.on_alloc);
	uprobe_prepare(skel->progs.on_alloc_walk);
	uprobe_prepare(skel->progs.on_alloc_sample);
	uprobe_prepare(skel->progs.on_alloc_sample_walk);
	bpf_map__set_max_entries(skel->maps.alloc_window_counts, COUNTS);
	alloc_places_prepare(skel, THREADS);
}

static void destroy(void *event)
{
	struct alloc *a = event;

	if (!a)
		return;
	alloc_windows_destroy(a->windows);
	alloc_places_destroy(a->places);
	alloc_samples_destroy(a->samples);
	free(a);
}

/* Is it one of those that are probed? */
static bool is_wanted(const struct alloc *a, enum alloc_shape shape)
{
	if (a->options->growth)
		return shape == ALLOC_MAP || shape == ALLOC_MOVE_END;
	return shape < ALLOC_FREE;
}

static struct error *place_counter(void *ctx, const struct process *p, struct image *img, const char *path, u64 bias,
        const struct alloc_functions *f)
{
	struct alloc *a = ctx;

	if (a->options->growth)
		return NULL;
	return alloc_counter_place(&a->counter, a->host, a->windows, p, img, path, bias, f);
}

static struct error *place(void *ctx, const struct process *p, struct image *img, const char *path,
        const struct alloc_function *f, u32 number)
{
	struct alloc *a = ctx;
	bool instruction = f->shape == ALLOC_AT || f->shape == ALLOC_BEFORE;
	bool inner = a->options->growth || f->shape == ALLOC_AT; /* calls count, too */
	u64 cookie = f->shape | f->pushed << 8 | (u32)f->tails << 16 | (u32)inner << 17 | (u32)f->stepped << 18 |
	             alloc_counter_cookie(&a->counter, f) | (u64)(instruction ? f->operand : number) << 24;

	const struct alloc_window_place at = {.program = object_skeleton(a->host->object)->progs.on_alloc,
	        .offset = f->offset,
	        .cookie = cookie,
	        .pair = f->pair};

	return is_wanted(a, f->shape) ? alloc_windows_add(a->windows, p, path, &at) : NULL;
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct alloc *a = calloc(1, sizeof(*a));
	struct alloc_places_options places = {.host = host, .place = place, .allocator = place_counter, .ctx = a};
	struct alloc_windows_options windows = {.host = host};
	struct error *err;

	if (!a)
		return &error_no_memory;
	a->host = host;
	a->options = host->options->of_event;
	windows.interval = a->options->interval;
	windows.share = host->options->cpu_percent / 100 * SHARE;
	windows.cpu_least = ALLOC_CPU_LEAST;
	err = alloc_windows_create(&windows, &a->windows);
	if (!err && !a->options->growth && host->options->cpu_percent)
		err = alloc_samples_create(
		        host->object, object_skeleton(host->object)->progs.on_alloc_sample, NULL, &a->samples);
	places.samples = a->samples;
	if (!err)
		err = alloc_places_create(&places, &a->places);
	if (err)
		destroy(a);
	else
		*ret = a;
	return err;
}

/* A program that is only starting has mapped nothing yet: poll() finds it. */
static struct error *start(void *event, bool at_exec)
{
	struct alloc *a = event;
	struct error *err = alloc_places_start(a->places, at_exec);

	if (!err)
		err = alloc_windows_place(a->windows);
	if (err)
		return err;
	a->started = true;
	object_take_ticks(a->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

static void count(const struct alloc *a, struct alloc_counters *ret)
{
	struct object *o = a->host->object;

	error_free(object_sum(o, object_skeleton(o)->maps.alloc_counted, (u64 *)ret, sizeof(*ret)));
}

static void warn(struct alloc *a)
{
	struct alloc_estimate e;

	if (a->warned || !object_skeleton(a->host->object)->bss->alloc_window)
		return;
	a->warned = true;
	alloc_windows_estimate(a->windows, &e);
	a->host->options->warn(a->host->options->ctx,
	        error_hint(error_new(ERROR_INTERNAL,
	                           "hits would cost the target more than %.1f %% of its CPU time (half of it, if it "
	                           "uses little), %.1f us each: calls are seen in windows, and stand for the others",
	                           a->host->options->cpu_percent * SHARE, e.exception_ns / 1000),
	                "--max-cpu 0 counts all of them"));
}

/*
 * By bytes alone a few large blocks would take all stacks, and calls of small ones be known by chance. A third of the
 * stacks is for calls, whatever their size.
 */
static void balance(struct alloc *a)
{
	struct alloc_counters seen;

	count(a, &seen);
	object_skeleton(a->host->object)->bss->alloc_call_bytes = seen.calls ? seen.bytes / seen.calls / 2 : 0;
}

/* A process that came later, or a file: what can not be in it is reported, and the run goes on. */
static struct error *poll(void *event, u64 now)
{
	struct alloc *a = event;
	struct error *err = alloc_places_look(a->places);

	if (!err)
		err = alloc_windows_place(a->windows);
	warn(a);
	balance(a);
	alloc_places_steer(a->places, now);
	return event_goes_on(a->host, err);
}

static struct error *stop(void *event)
{
	struct alloc *a = event;
	struct error *err;

	alloc_windows_end(a->windows);
	object_take_ticks(a->host->object, TICKS_IGNORED);
	err = a->started ? alloc_places_check(a->places) : NULL;
	if (err)
		a->host->options->warn(a->host->options->ctx, err);
	return NULL;
}

static void add(void *ctx, u32 epoch, u64 hash, u64 bytes, u64 calls)
{
	collector_count(((struct alloc *)ctx)->host->collector, epoch, hash, bytes, calls);
}

static struct error *drain(void *event, u32 epoch)
{
	struct alloc *a = event;

	return alloc_windows_drain(a->windows, epoch, add, a);
}

static struct error *seen(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct alloc *a = event;
	const struct process *target = targets_find(a->host->targets, record->instance);

	return target ? alloc_windows_see(a->windows, target, frames, n) : NULL;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct alloc *a = event;

	count(a, &a->summary.counters);
	a->summary.interval = object_skeleton(a->host->object)->bss->alloc_interval_most;
	a->summary.from = alloc_places_text(a->places);
	a->summary.unknown = alloc_places_unknown(a->places);
	a->summary.missed = alloc_places_missed(a->places);
	a->summary.sampled = alloc_samples_text(a->samples);
	alloc_windows_estimate(a->windows, &a->summary.estimate);
	alloc_samples_add(a->host->object, &a->summary.estimate);
	st->probed = a->summary.estimate.windows ? a->summary.estimate.part : 0;
	st->of_event = &a->summary;
}

static bool has_view(const struct view *v)
{
	return v->allocator;
}

const struct event_ops alloc_event = {
        .name = "alloc",
        .command = "alloc",
        .topic = TOPIC_MEMORY,
        .summary = "memory that malloc, new, mmap allocate: bytes and calls, by stack",
        .view = "memory that %s asks its allocator for: bytes and calls, by stack",
        .has_view = has_view,
        .unit = "bytes",
        .more = "calls",
        .slots = 4,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .drain = drain,
        .stop = stop,
        .halve = event_halve_by_weight,
        .seen = seen,
        .stats = stats,
        .command_line = &alloc_command,
        .words = &alloc_words,
};
