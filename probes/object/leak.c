/* SPDX-License-Identifier: Apache-2.0 */
#include "leak.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "alloc.h"
#include "alloc_places.h"
#include "leak_curve.h"
#include "leak_report.h"
#include "leak_stacks.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/uprobe.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"

#define THREADS  16384
#define BLOCKS   (1u << 20)
#define STACKS   16384
#define POINT_NS 500000000ull
#define AT_ONCE  4096 /* blocks that are read together */
#define WATCH_S  1.0  /* of a shift's blocks: hit_shifts.c's period, at most */

struct leak {
	const struct event_host *host;
	const struct alloc_options *options;
	struct hit_shifts *shifts;
	struct alloc_places *places;
	struct leak_stacks stacks;
	u64 point_ns, step_ns, ended_ns;
	u32 shift; /* that was looked at last */
	bool started;
	char *report;
	struct leak_summary summary;
};

static void prepare(struct object *o)
{
	struct sample *skel = object_skeleton(o);
	struct bpf_program *programs[] = {skel->progs.on_leak_enter, skel->progs.on_leak_enter_walk,
	        skel->progs.on_leak_return, skel->progs.on_leak_free};

	object_want(o, "on_leak_enter");
	object_want(o, "on_leak_return");
	object_want(o, "on_leak_free");
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		uprobe_prepare(programs[i]);
	alloc_places_prepare(skel, THREADS);
	bpf_map__set_max_entries(skel->maps.leak_calls, THREADS);
	bpf_map__set_max_entries(skel->maps.leak_blocks, BLOCKS);
	bpf_map__set_max_entries(skel->maps.leak_stacks, STACKS);
}

static void destroy(void *event)
{
	struct leak *l = event;

	if (!l)
		return;
	hit_shifts_destroy(l->shifts);
	alloc_places_destroy(l->places);
	leak_stacks_free(&l->stacks);
	free(l->report);
	free(l);
}

static struct error *place(void *ctx, const struct process *p, struct image *img, const char *path,
        const struct alloc_function *f, u32 number)
{
	struct leak *l = ctx;
	const struct sample *skel = object_skeleton(l->host->object);
	bool frees = f->shape == ALLOC_FREE;
	struct hit_uprobe u = {.program = frees ? skel->progs.on_leak_free : skel->progs.on_leak_enter,
	        .at.offset = f->offset,
	        .cookie = f->shape | f->pushed << 8 | (u32)f->tails << 16 | (u64)number << 24,
	        .exit = frees};

	return f->shape == ALLOC_MOVE_END ? NULL : hit_shifts_place(l->shifts, p, img, path, &u);
}

static struct error *place_return(
        void *ctx, const struct process *p, struct image *img, const char *path, u64 offset, bool clearing)
{
	struct leak *l = ctx;
	struct hit_uprobe u = {.program = object_skeleton(l->host->object)->progs.on_leak_return,
	        .at.offset = offset,
	        .cookie = clearing,
	        .exit = true};

	return hit_shifts_place(l->shifts, p, img, path, &u);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct leak *l = calloc(1, sizeof(*l));
	struct alloc_places_options places = {.host = host, .place = place, .place_return = place_return, .ctx = l};
	struct error *err;

	if (!l)
		return &error_no_memory;
	l->host = host;
	l->options = host->options->of_event;
	l->step_ns = POINT_NS;
	err = hit_shifts_create(host, &l->shifts);
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

	if (err)
		return err;
	leak_stacks_begin(&l->stacks, now_ns());
	add_point(l, now_ns());
	l->started = true;
	object_take_ticks(l->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

/* Blocks of shifts before this one are not watched any more: they are left. */
static struct error *take_left(struct leak *l, u32 before)
{
	const struct bpf_map *map = object_skeleton(l->host->object)->maps.leak_blocks;
	cleanup(free) struct leak_key *keys = calloc(AT_ONCE, sizeof(*keys));
	cleanup(free) struct leak_block *blocks = calloc(AT_ONCE, sizeof(*blocks));
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	u32 position, n;
	void *from = NULL;
	int code = 0;

	if (!keys || !blocks)
		return &error_no_memory;
	while (!code) {
		n = AT_ONCE;
		code = bpf_map_lookup_batch(bpf_map__fd(map), from, &position, keys, blocks, &n, &options);
		if (code && errno != ENOENT)
			return error_errno(errno, "cannot read which blocks are left");
		for (u32 i = 0; i < n; i++) {
			if (blocks[i].shift >= before)
				continue;
			if (!bpf_map__delete_elem(map, &keys[i], sizeof(keys[i]), 0)) /* else it was freed meanwhile */
				leak_stacks_left(&l->stacks, &blocks[i]);
		}
		from = &position;
	}
	return NULL;
}

static struct error *poll(void *event, u64 now)
{
	struct leak *l = event;
	struct error *err = alloc_places_look(l->places);
	u32 shift = object_skeleton(l->host->object)->bss->hit_shift;

	hit_shifts_steer(l->shifts, now);
	if (now - l->point_ns >= l->step_ns)
		add_point(l, now);
	if (!err && shift != l->shift && hit_shifts_part(l->shifts) > 0)
		err = take_left(l, shift);
	l->shift = shift;
	return event_goes_on(l->host, err);
}

static struct error *stop(void *event)
{
	struct leak *l = event;
	struct error *err = l->started ? alloc_places_check(l->places) : NULL;

	object_take_ticks(l->host->object, TICKS_IGNORED);
	l->ended_ns = now_ns();
	add_point(l, l->ended_ns);
	hit_shifts_end(l->shifts);
	if (err)
		l->host->options->warn(l->host->options->ctx, err);
	return NULL;
}

static struct error *stack(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct leak *l = event;

	return leak_stacks_place(&l->stacks, l->host->collector, record, frames, n);
}

/* When all stacks are there. */
static struct error *finish(void *event)
{
	struct leak *l = event;
	const struct bpf_map *map = object_skeleton(l->host->object)->maps.leak_stacks;
	struct error *err = take_left(l, UINT32_MAX);

	for (u32 i = 0; i < l->stacks.n; i++)
		bpf_map__lookup_elem(
		        map, &l->stacks.of[i].hash, sizeof(u64), &l->stacks.of[i].all, sizeof(l->stacks.of[i].all), 0);
	l->summary.in_shifts = hit_shifts_part(l->shifts) > 0;
	l->summary.watch_s = WATCH_S;
	if (!err)
		err = leak_report(
		        &l->stacks, collector_profile(l->host->collector), &l->summary, l->ended_ns, &l->report);
	l->summary.report = l->report;
	return err;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct leak *l = event;
	struct object *o = l->host->object;
	struct alloc_counters calls;

	error_free(object_sum(o, object_skeleton(o)->maps.alloc_counted, (u64 *)&calls, sizeof(calls)));
	error_free(object_sum(
	        o, object_skeleton(o)->maps.leak_counted, (u64 *)&l->summary.counters, sizeof(l->summary.counters)));
	l->summary.calls = calls.calls;
	l->summary.bytes = calls.bytes;
	l->summary.left = l->stacks.seen;
	l->summary.left_bytes = l->stacks.bytes;
	l->summary.from = alloc_places_text(l->places);
	st->probed = hit_shifts_part(l->shifts);
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
        .stack = stack,
        .stats = stats,
        .command_line = &leak_command,
        .words = &leak_words,
};
