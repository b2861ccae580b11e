/* SPDX-License-Identifier: Apache-2.0 */
#include "growth_event.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "leak_curve.h"
#include "leak_report.h"
#include "leak_stacks.h"
#include "probes/event_command.h"
#include "probes/fault/fault.h"
#include "probes/fault/fault_events.h"
#include "probes/loss.h"
#include "probes/object.h"
#include "probes/sampler.h"
#include "probes/skeleton.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/now.h"
#include "unwind/profile/names.h"

#define PAGES    (1u << 20)
#define POINT_NS 500000000ull
#define TOLD     10 /* stacks in the text */

struct growth {
	const struct event_host *host;
	struct bpf_link *on_enter, *on_exit;
	struct fault_events faults;
	struct growth_ledgers ledgers;
	struct leak_stacks stacks;
	struct table mapping; /* hashes of stacks that map */
	u64 point_ns, step_ns, ended_ns;
	char *report;
	struct growth_summary summary;
};

static void prepare(struct object *o)
{
	struct sample *skel = object_skeleton(o);

	object_want(o, "growth_enter");
	object_want(o, "growth_exit");
	object_want(o, "on_growth_fault");
	bpf_map__set_max_entries(skel->maps.growth_pages, PAGES);
	skeleton_fit_fault(skel);
}

static void destroy(void *event)
{
	struct growth *g = event;

	if (!g)
		return;
	bpf_link__destroy(g->on_enter);
	bpf_link__destroy(g->on_exit);
	fault_events_close(&g->faults);
	growth_ledgers_free(&g->ledgers);
	leak_stacks_free(&g->stacks);
	table_free(&g->mapping);
	free(g->report);
	free(g);
}

static struct error *attach(struct growth *g)
{
	struct sample *skel = object_skeleton(g->host->object);

	g->on_exit = bpf_program__attach(skel->progs.growth_exit);
	g->on_enter = g->on_exit ? bpf_program__attach(skel->progs.growth_enter) : NULL;
	if (!g->on_enter)
		return error_errno(errno, "cannot attach to the tracepoints of system calls");
	return fault_events_open(object_program(g->host->object, "on_growth_fault"), &g->faults);
}

static struct error *create(const struct event_host *host, void **ret)
{
	struct growth *g = calloc(1, sizeof(*g));
	struct error *err;

	if (!g)
		return &error_no_memory;
	g->host = host;
	g->step_ns = POINT_NS;
	err = attach(g);
	if (err)
		destroy(g);
	else
		*ret = g;
	return err;
}

static void add_point(struct growth *g, u64 now)
{
	leak_curve_add(&g->summary.memory, g->host->targets, now - g->stacks.began_ns, &g->step_ns);
	g->point_ns = now;
}

static struct error *start(void *event, bool at_exec)
{
	struct growth *g = event;

	g->summary.left.at_exec = at_exec;
	leak_stacks_begin(&g->stacks, now_ns());
	add_point(g, now_ns());
	object_take_ticks(g->host->object, at_exec ? TICKS_AT_EXEC : TICKS_TAKEN);
	return NULL;
}

static struct error *poll(void *event, u64 now)
{
	struct growth *g = event;

	if (now - g->point_ns >= g->step_ns)
		add_point(g, now);
	return NULL;
}

static struct error *stop(void *event)
{
	struct growth *g = event;

	g->ended_ns = now_ns();
	object_take_ticks(g->host->object, TICKS_IGNORED);
	add_point(g, g->ended_ns);
	return NULL;
}

static struct error *record(void *event, const void *data, size_t size)
{
	struct growth *g = event;
	struct growth_record r;
	struct error *err = NULL;

	if (size < sizeof(r))
		return NULL;
	memcpy(&r, data, sizeof(r));
	if (r.added_size && r.hash)
		err = table_put(&g->mapping, r.hash, 1);
	return err ? err : growth_ledgers_add(&g->ledgers, &r);
}

static struct error *stack(void *event, const struct stack_record *record, const struct frame *frames, u32 n)
{
	struct growth *g = event;

	return leak_stacks_place(&g->stacks, g->host->collector, record, frames, n);
}

struct grown { /* a stack */
	const struct leak_site *site;
	struct leak_growth growth;
	u64 blocks, bytes;
	bool mapped;
};

/*
 * Bytes in memory are those of stacks that touched them, bytes of addresses of those that mapped them. mapped: the
 * latter are what is shown.
 */
static struct error *show(struct profile *p, const struct grown *of, bool mapped)
{
	char text[128];
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_LABEL};
	struct error *err;
	u32 function, node;

	leak_describe(&of->growth, text, sizeof(text));
	err = profile_function(p, 0, &fn, false, &function);
	if (!err)
		err = profile_child(p, of->site->node, function, &node);
	if (err)
		return err;
	if (of->mapped != mapped)
		profile_add_more(p, node, of->bytes);
	else
		profile_add(p, node, of->bytes);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	const struct grown *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void print_part(
        FILE *out, const struct profile *p, const struct grown *all, u32 n, bool mapped, const char *still)
{
	char text[128], bytes[LOSS_AMOUNT];
	u32 told = 0, of = 0;

	for (u32 i = 0; i < n; i++) {
		if (all[i].mapped != mapped || ++of > TOLD)
			continue;
		if (!told++)
			fprintf(out, "yrt: %s, and %s %s:\n", mapped ? "mapped" : "touched", still,
			        mapped ? "mapped" : "in memory");
		leak_describe(&all[i].growth, text, sizeof(text));
		fprintf(out, "  %s: %s in %lu %s\n    ", text, loss_amount((double)all[i].bytes, bytes), all[i].blocks,
		        mapped ? "mappings" : "pages");
		leak_print_stack(out, p, all[i].site->node);
	}
	if (of > told)
		fprintf(out, "  and %u more stacks\n", of - told);
}

static void judge(const struct growth *g, const struct leak_site *site, struct grown *ret)
{
	struct leak_left left;

	*ret = (struct grown){.site = site, .mapped = table_get(&g->mapping, site->hash)};
	leak_stacks_thirds(&g->stacks, site, g->ended_ns, &left);
	ret->growth = leak_judge(&left, (double)(g->ended_ns - g->stacks.began_ns) / 1e9);
	for (u32 i = 0; i < LEAK_SLOTS; i++) {
		ret->blocks += site->blocks[i];
		ret->bytes += site->bytes[i];
	}
}

static struct error *report(struct growth *g, struct profile *p)
{
	const struct alloc_options *options = g->host->options->of_event;
	cleanup(free) struct grown *all = calloc(g->stacks.n + 1, sizeof(*all));
	const char *still = g->summary.left.at_their_end ? "at the end" : "still";
	size_t size;
	FILE *out = all ? open_memstream(&g->report, &size) : NULL;
	struct error *err = out ? leak_join_sites(&g->stacks, p) : &error_no_memory;
	u32 n = 0;

	for (u32 i = 0; !err && i < g->stacks.n; i++) {
		judge(g, &g->stacks.of[i], &all[n]);
		if (!all[n].bytes)
			continue;
		g->summary.grows += all[n].growth.verdict == LEAK_GROWS;
		err = show(p, &all[n++], options->mapped);
	}
	if (!err) {
		qsort(all, n, sizeof(*all), by_size);
		print_part(out, p, all, n, false, still);
		print_part(out, p, all, n, true, still);
	}
	if (out)
		fclose(out);
	return err;
}

static struct error *finish(void *event)
{
	struct growth *g = event;
	struct error *err = growth_left(g->host, &g->ledgers, &g->stacks, &g->summary.left);

	if (!err)
		err = report(g, collector_profile(g->host->collector));
	g->summary.report = g->report;
	return err;
}

static void stats(void *event, struct sampler_stats *st)
{
	struct growth *g = event;
	struct object *o = g->host->object;

	error_free(object_sum(
	        o, object_skeleton(o)->maps.growth_counted, (u64 *)&g->summary.counters, sizeof(g->summary.counters)));
	g->summary.part = object_skeleton(o)->bss->weight;
	g->summary.no_room = g->ledgers.mapped.full;
	st->of_event = &g->summary;
}

static void reason(u32 reason, char *text)
{
	static const char *const words[GROWTH_REASONS] = {[FAULT_UNKNOWN] = "touched: memory",
	        [FAULT_STACK] = "touched: stack",
	        [FAULT_HEAP] = "touched: heap",
	        [FAULT_ANONYMOUS] = "touched: anonymous memory",
	        [FAULT_FILE] = "touched: copy of a file's page",
	        [FAULT_SHARED] = "touched: shared memory",
	        [GROWTH_ANONYMOUS] = "mapped: anonymous memory",
	        [GROWTH_FILE] = "mapped: file",
	        [GROWTH_SHARED] = "mapped: shared memory",
	        [GROWTH_BRK] = "mapped: heap",
	        [GROWTH_MOVED] = "mapped: larger by mremap"};

	snprintf(text, REASON_LEN, "%s", reason < GROWTH_REASONS && words[reason] ? words[reason] : "memory");
}

static const char *more(const void *own)
{
	return ((const struct alloc_options *)own)->mapped ? "touched bytes" : "mapped bytes";
}

static const struct event_command command = {.size = sizeof(struct alloc_options), .more = more};

const struct event_ops growth_event = {
        .name = "growth",
        .topic = TOPIC_MEMORY,
        .summary = "what makes a process larger: memory that it mapped and touched, and still has",
        .unit = "bytes",
        .more = "mapped bytes",
        .slots = 4,
        .prepare = prepare,
        .create = create,
        .destroy = destroy,
        .start = start,
        .poll = poll,
        .stop = stop,
        .finish = finish,
        .record = record,
        .halve = event_halve_by_weight,
        .stack = stack,
        .stats = stats,
        .reason = reason,
        .command_line = &command,
        .words = &growth_words,
};
