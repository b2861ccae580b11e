/* SPDX-License-Identifier: Apache-2.0 */
#include "leak.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc.h"
#include "alloc_counter_place.h"
#include "alloc_places.h"
#include "alloc_samples.h"
#include "leak_curve.h"
#include "leak_heap.h"
#include "leak_report.h"
#include "leak_stacks.h"
#include "leak_trap.h"
#include "leak_watch.h"
#include "probes/map_each.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/targets.h"
#include "probes/uprobe.h"
#include "probes/uprobe_cost.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

#define THREADS   16384
#define BLOCKS    (1u << 20)
#define STACKS    16384
#define POINT_NS  500000000ull
#define COUNTS    8192 /* stacks of a window */
#define SHARE     0.25 /* of --max-cpu */
#define CPU_LEAST 1    /* with it some thousand calls a second are all followed */
#define WATCHES   10   /* that follow each other in a register, in a run of a known length */

struct leak {
	const struct event_host *host;
	const struct alloc_options *options;
	struct alloc_windows *windows;
	struct alloc_places *places;
	struct alloc_samples *samples;
	struct leak_watch *watch;
	struct leak_heap *heap;
	struct alloc_counter_file counter;
	struct leak_stacks stacks;
	u64 point_ns, step_ns, ended_ns;
	bool started, warned;
	char *report;
	struct leak_summary summary;
};

static void prepare(struct object *o)
{
	struct sample *skel = object_skeleton(o);
	struct bpf_program *programs[] = {skel->progs.on_leak_enter, skel->progs.on_leak_enter_walk,
	        skel->progs.on_leak_return, skel->progs.on_leak_free, skel->progs.on_leak_sample,
	        skel->progs.on_leak_sample_walk, skel->progs.on_leak_sample_freed};

	object_want(o, "on_leak_enter");
	object_want(o, "on_leak_return");
	object_want(o, "on_leak_free");
	object_want(o, "on_leak_sample");
	object_want(o, "on_leak_sample_freed");
	object_want(o, "on_leak_trap");
	alloc_windows_prepare(o);
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		uprobe_prepare(programs[i]);
	alloc_places_prepare(skel, THREADS);
	bpf_map__set_max_entries(skel->maps.leak_calls, THREADS);
	bpf_map__set_max_entries(skel->maps.leak_blocks, BLOCKS);
	bpf_map__set_max_entries(skel->maps.leak_stacks, STACKS);
	bpf_map__set_max_entries(skel->maps.leak_codes, LEAK_CODES);
	bpf_map__set_max_entries(skel->maps.alloc_window_counts, COUNTS);
}

static void destroy(void *event)
{
	struct leak *l = event;

	if (!l)
		return;
	alloc_windows_destroy(l->windows);
	alloc_places_destroy(l->places);
	alloc_samples_destroy(l->samples);
	leak_watch_destroy(l->watch);
	leak_heap_destroy(l->heap);
	leak_stacks_free(&l->stacks);
	free(l->report);
	free(l);
}

static struct error *place(void *ctx, const struct process *p, struct image *img, const char *path,
        const struct alloc_function *f, u32 number)
{
	struct leak *l = ctx;
	const struct sample *skel = object_skeleton(l->host->object);
	u64 code = f->shape < ALLOC_MAP ? leak_watch_code(l->watch, p, img) : 0;
	bool frees = f->shape >= ALLOC_FREE;
	struct alloc_window_place at = {.program = frees ? skel->progs.on_leak_free : skel->progs.on_leak_enter,
	        .offset = f->offset,
	        .cookie = f->shape | f->pushed << 8 | (u32)f->tails << 16 | (u32)f->stepped << 18 |
	                  alloc_counter_cookie(&l->counter, f) | (u64)number << 24 | code << 56,
	        .pair = frees ? 0 : f->pair,
	        .following = frees,
	        .tail = frees || f->shape == ALLOC_RESIZE};

	return f->shape == ALLOC_MOVE_END ? NULL : alloc_windows_add(l->windows, p, path, &at);
}

static struct error *place_return(
        void *ctx, const struct process *p, struct image *img, const char *path, u64 offset, bool clearing)
{
	struct leak *l = ctx;
	u8 code[UPROBE_CODE] = {0};
	bool stepped = pread(img->fd, code, sizeof(code), (off_t)offset) <= 0 || !uprobe_is_emulated(code);
	struct alloc_window_place at = {.program = object_skeleton(l->host->object)->progs.on_leak_return,
	        .offset = offset,
	        .cookie = (u32)clearing | (u32)stepped << 18,
	        .following = true};

	return alloc_windows_add(l->windows, p, path, &at);
}

static struct error *allocator(void *ctx, const struct process *p, struct image *img, const char *path, u64 bias,
        const struct alloc_functions *f)
{
	struct leak *l = ctx;

	leak_watch_allocator(l->watch, p, img, bias, f);
	leak_heap_want(l->heap, leak_heap_books(img));
	return alloc_counter_place(&l->counter, l->host, l->windows, p, img, path, bias, f);
}

static void open_window(void *ctx, bool following)
{
	struct sample *skel = object_skeleton(((struct leak *)ctx)->host->object);

	skel->bss->leak_window++;
	skel->data->leak_follows = following;
}

static void close_window(void *ctx)
{
	leak_watch_take(((struct leak *)ctx)->watch);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct leak *l = calloc(1, sizeof(*l));
	struct alloc_places_options places = {
	        .host = host, .place = place, .place_return = place_return, .allocator = allocator, .ctx = l};
	struct alloc_windows_options windows = {.host = host,
	        .share = host->options->cpu_percent / 100 * SHARE,
	        .cpu_least = CPU_LEAST,
	        .open = open_window,
	        .close = close_window,
	        .ctx = l};
	const struct sample *skel = object_skeleton(host->object);
	struct error *err;

	if (!l)
		return &error_no_memory;
	l->host = host;
	l->options = host->options->of_event;
	l->step_ns = POINT_NS;
	windows.interval = l->options->interval;
	err = leak_watch_create(host->object, (u64)(host->options->duration_s / WATCHES * 1e9), &l->watch);
	if (!err)
		err = leak_heap_create(&l->heap);
	if (!err)
		err = alloc_windows_create(&windows, &l->windows);
	if (!err)
		err = alloc_samples_create(
		        host->object, skel->progs.on_leak_sample, skel->progs.on_leak_sample_freed, &l->samples);
	places.samples = l->samples;
	if (!err)
		err = alloc_places_create(&places, &l->places);
	if (err)
		destroy(l);
	else
		*ret = l;
	return err;
}

static void add_point(struct leak *l, u64 now)
{
	leak_curve_add(&l->summary, l->host->targets, now - l->stacks.began_ns, &l->step_ns);
	l->point_ns = now;
}

static struct error *start(void *event, bool at_exec)
{
	struct leak *l = event;
	struct error *err = alloc_places_start(l->places, at_exec);

	if (!err)
		err = alloc_windows_place(l->windows);
	if (err)
		return err;
	leak_stacks_begin(&l->stacks, now_ns());
	add_point(l, now_ns());
	l->started = true;
	object_take_ticks(l->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

static struct error *is_left(void *stacks, const void *key, const void *block)
{
	leak_stacks_left(stacks, block);
	return NULL;
}

static bool in_windows(const struct leak *l)
{
	return object_skeleton(l->host->object)->bss->alloc_window;
}

static void begin_windows(struct leak *l)
{
	if (l->warned || !in_windows(l))
		return;
	l->warned = true;
	alloc_windows_set_trap(l->windows, leak_watch_start(l->watch));
	l->host->options->warn(l->host->options->ctx,
	        error_hint(error_new(ERROR_INTERNAL,
	                           "hits would cost the target more than %.1f %% of its CPU time (half of it, if it "
	                           "uses little): calls are seen in windows, and some blocks are watched by debug "
	                           "registers",
	                           l->host->options->cpu_percent * SHARE),
	                "--max-cpu 0 counts all of them"));
}

static struct error *poll(void *event, u64 now)
{
	struct leak *l = event;
	struct error *err = alloc_places_look(l->places);

	if (!err)
		err = alloc_windows_place(l->windows);
	begin_windows(l);
	alloc_places_steer(l->places, now);
	if (l->started)
		leak_heap_look(l->heap, l->host->targets, now - l->stacks.began_ns);
	if (now - l->point_ns >= l->step_ns)
		add_point(l, now);
	return event_goes_on(l->host, err);
}

static struct error *stop(void *event)
{
	struct leak *l = event;
	struct error *err = l->started ? alloc_places_check(l->places) : NULL;

	l->ended_ns = now_ns();
	alloc_windows_end(l->windows);
	leak_watch_end(l->watch);
	object_take_ticks(l->host->object, TICKS_IGNORED);
	add_point(l, now_ns());
	leak_heap_end(l->heap);
	if (err)
		l->host->options->warn(l->host->options->ctx, err);
	return NULL;
}

static struct error *stack(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct leak *l = event;

	return leak_stacks_place(&l->stacks, l->host->collector, record, frames, n);
}

static void add_estimate(void *ctx, u32 epoch, u64 hash, u64 bytes, u64 calls)
{
	struct leak_site *site = leak_stacks_find(&((struct leak *)ctx)->stacks, hash);

	if (!site)
		return;
	site->bytes_made += (double)bytes;
	site->calls_made += (double)calls;
}

/* What was found of stacks: by BPF, in windows, by debug registers. */
static struct error *gather(struct leak *l)
{
	const struct bpf_map *map = object_skeleton(l->host->object)->maps.leak_stacks;
	const struct leak_seen *seen;

	for (u32 i = 0; i < l->stacks.n; i++) {
		struct leak_site *site = &l->stacks.of[i];

		bpf_map__lookup_elem(map, &site->hash, sizeof(u64), &site->all, sizeof(site->all), 0);
		seen = leak_watch_seen(l->watch, site->hash);
		if (seen)
			site->watch = *seen;
	}
	return alloc_windows_drain(l->windows, 0, add_estimate, l);
}

/* When all stacks are there. */
static struct error *finish(void *event)
{
	struct leak *l = event;
	struct error *err = map_each(object_skeleton(l->host->object)->maps.leak_blocks, false, is_left, &l->stacks,
	        "which blocks are left");

	if (!err)
		err = gather(l);
	l->summary.in_windows = in_windows(l);
	leak_watch_summary(l->watch, &l->summary);
	leak_heap_points(l->heap, &l->summary);
	alloc_windows_estimate(l->windows, &l->summary.estimate);
	if (!err)
		err = leak_report(&l->stacks, l->heap, collector_profile(l->host->collector), &l->summary, l->ended_ns,
		        &l->report);
	l->summary.report = l->report;
	return err;
}

static struct error *seen(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct leak *l = event;
	const struct process *target = targets_find(l->host->targets, record->instance);

	return target ? alloc_windows_see(l->windows, target, frames, n) : NULL;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct leak *l = event;
	struct object *o = l->host->object;
	struct alloc_counters calls;

	error_free(object_sum(o, object_skeleton(o)->maps.alloc_counted, (u64 *)&calls, sizeof(calls)));
	error_free(object_sum(
	        o, object_skeleton(o)->maps.leak_counted, (u64 *)&l->summary.counters, sizeof(l->summary.counters)));
	l->summary.left = l->stacks.seen;
	l->summary.left_bytes = l->stacks.bytes;
	l->summary.from = alloc_places_text(l->places);
	l->summary.sampled = alloc_samples_text(l->samples);
	alloc_windows_estimate(l->windows, &l->summary.estimate);
	alloc_samples_add(o, &l->summary.estimate);
	l->summary.calls = calls.calls + l->summary.estimate.sampled_calls;
	l->summary.bytes = calls.bytes + l->summary.estimate.sampled_bytes;
	st->probed = l->summary.estimate.windows ? l->summary.estimate.part : 0;
	st->of_event = &l->summary;
}

const struct event_ops leak_event = {
        .name = "leak",
        .command = "leak",
        .topic = TOPIC_MEMORY,
        .summary = "memory that a run has left behind: by stack and age, what grows",
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
        .command_line = &leak_command,
        .words = &leak_words,
};
