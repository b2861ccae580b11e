/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own format, by its file-format-schema.json: frames, to which samples refer, root first, and the weight
 * of each sample. Threads become profiles of their own, the busiest first; if there are several processes, as "process:
 * thread".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "order.h"
#include "text.h"
#include "unwind/cleanup.h"

struct speedscope {
	const struct profile *p;
	struct order *order;
	u32 *frame; /* the number of each function */
	u32 *path;  /* frames from the root; indexed by depth */
	u32 *top;   /* places in the preorder of threads */
	u32 ntop;
	u64 threads;   /* total of those */
	double weight; /* of one count */
	const char *unit;
	FILE *out;
};

static void cleanup_speedscope(struct speedscope *w)
{
	order_destroy(w->order);
	free(w->frame);
	free(w->path);
	free(w->top);
}

static const struct profile_node *node_at(const struct speedscope *w, u32 place)
{
	return &w->p->nodes[w->order->nodes[place]];
}

static u32 depth_at(const struct speedscope *w, u32 place)
{
	return w->order->depth[w->order->nodes[place]];
}

static bool is_thread(const struct speedscope *w, u32 place)
{
	return w->p->functions[node_at(w, place)->function].kind == KIND_THREAD;
}

static void put_name(struct speedscope *w, const struct profile_function *f)
{
	char name[TEXT_CLEAN + TEXT_MARKS_MAX];

	snprintf(name, sizeof(name), "%s%s", text_marks(f->flags), text_name(f));
	text_json(w->out, name);
}

static void put_frames(struct speedscope *w)
{
	u32 n = 0;

	for (u32 i = 0; i < w->p->nfunctions; i++) {
		const struct profile_function *f = &w->p->functions[w->order->functions[i]];

		if (f->kind == KIND_ROOT || f->kind == KIND_THREAD)
			continue;
		w->frame[w->order->functions[i]] = n;
		fputs(n++ ? ",\n{\"name\":" : "\n{\"name\":", w->out);
		put_name(w, f);
		if (*f->file || *f->module)
			fputs(",\"file\":", w->out);
		if (*f->file || *f->module)
			text_json(w->out, *f->file ? f->file : f->module);
		if (f->line)
			fprintf(w->out, ",\"line\":%u", f->line);
		putc('}', w->out);
	}
}

/* The place behind the last node below that at this place. */
static u32 end_of(const struct speedscope *w, u32 place)
{
	u32 depth = depth_at(w, place);

	do
		place++;
	while (place < w->p->nnodes && depth_at(w, place) > depth);
	return place;
}

static void put_sample(struct speedscope *w, u32 above, u32 depth, bool first)
{
	fputs(first ? "\n[" : ",\n[", w->out);
	for (u32 d = above; d <= depth; d++) {
		if (d > above)
			putc_unlocked(',', w->out);
		text_number(w->out, w->path[d]);
	}
	putc_unlocked(']', w->out);
}

static u64 weight_of(const struct speedscope *w, u64 count)
{
	return w->weight == 1 ? count : text_scaled(count, w->weight);
}

/* The next node with samples of its own from place on, of those that belong to no thread if the range is the whole. */
static u32 next_sample(struct speedscope *w, u32 place, u32 end, bool whole)
{
	while (place < end) {
		if (whole && w->ntop && place && is_thread(w, place)) {
			place = end_of(w, place);
			continue;
		}
		if (place)
			w->path[depth_at(w, place)] = w->frame[node_at(w, place)->function];
		if (node_at(w, place)->self)
			break;
		place++;
	}
	return place;
}

/* Nodes from first to end; of the whole tree (first is 0) those that belong to no thread. */
static void put_profile(struct speedscope *w, u32 first, u32 end, const char *name, bool comma)
{
	u32 above = first ? depth_at(w, first) + 1 : 1;
	bool any = false;
	u64 total = 0;

	fputs(comma ? ",\n{\"type\":\"sampled\",\"name\":" : "\n{\"type\":\"sampled\",\"name\":", w->out);
	text_json(w->out, name);
	fprintf(w->out, ",\"unit\":\"%s\",\"startValue\":0,\"samples\":[", w->unit);
	for (u32 i = next_sample(w, first, end, !first); i < end; i = next_sample(w, i + 1, end, !first), any = true)
		put_sample(w, above, depth_at(w, i), !any);
	fputs("],\"weights\":[", w->out);
	any = false;
	for (u32 i = next_sample(w, first, end, !first); i < end; i = next_sample(w, i + 1, end, !first), any = true) {
		u64 weight = weight_of(w, node_at(w, i)->self);

		if (any)
			putc_unlocked(',', w->out);
		text_number(w->out, weight);
		total += weight;
	}
	fprintf(w->out, "],\"endValue\":%" PRIu64 "}", total);
}

static int compare_totals(const void *a, const void *b, void *arg)
{
	const struct speedscope *w = arg;
	u64 i = node_at(w, *(const u32 *)a)->total, j = node_at(w, *(const u32 *)b)->total;

	return i != j ? (i < j) - (i > j) : (*(const u32 *)a > *(const u32 *)b) - (*(const u32 *)a < *(const u32 *)b);
}

static void find_threads(struct speedscope *w)
{
	for (u32 i = 1; i < w->p->nnodes; i++)
		if (is_thread(w, i)) {
			w->top[w->ntop++] = i;
			w->threads += node_at(w, i)->total;
		}
	qsort_r(w->top, w->ntop, sizeof(*w->top), compare_totals, w);
}

/* What a viewer shows of the whole, with what was lost. Owned by the caller; NULL: out of memory. */
static char *with_loss(const struct profile *p, const char *name)
{
	char *text;

	return asprintf(&text, "%s%s%s", name, p->meta.loss ? ": " : "", p->meta.loss ? p->meta.loss : "") < 0 ? NULL
	                                                                                                       : text;
}

static void put_thread(struct speedscope *w, u32 place, bool comma)
{
	const struct profile_node *node = node_at(w, place);
	const struct profile_function *process = &w->p->functions[w->p->nodes[node->parent].function];
	const char *name = text_name(&w->p->functions[node->function]);
	char both[2 * TEXT_CLEAN];

	if (process->kind == KIND_PROCESS) {
		snprintf(both, sizeof(both), "%s: %s", text_name(process), name);
		name = both;
	}
	put_profile(w, place, end_of(w, place), name, comma);
}

static void put_profiles(struct speedscope *w, const char *whole)
{
	u64 rest;

	find_threads(w);
	for (u32 i = 0; i < w->ntop; i++)
		put_thread(w, w->top[i], i);
	rest = w->p->nodes[0].total - w->threads;
	if (rest || !w->ntop)
		put_profile(w, 0, w->p->nnodes, w->ntop ? "no thread" : whole, w->ntop);
}

static struct error *write_speedscope(const struct profile *p, FILE *out)
{
	double period = text_period_ns(&p->meta);
	cleanup(free) char *name = with_loss(p, text_title(&p->meta, "yrt"));
	cleanup(free) char *whole = with_loss(p, p->meta.target ? p->meta.target : "yrt");
	cleanup(speedscope) struct speedscope w = {.p = p,
	        .out = out,
	        .weight = period ? period : 1,
	        .unit = period || text_is_time(&p->meta)        ? "nanoseconds"
	                : !strcmp(text_unit(&p->meta), "bytes") ? "bytes"
	                                                        : "none"};
	struct error *err = order_create(p, &w.order);

	if (err)
		return err;
	w.frame = calloc(p->nfunctions, sizeof(*w.frame));
	w.path = calloc(w.order->deepest + 2, sizeof(*w.path));
	w.top = calloc(p->nnodes, sizeof(*w.top));
	if (!w.frame || !w.path || !w.top || !name || !whole)
		return &error_no_memory;
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"yrt " YRT_VERSION
	      "\",\"name\":",
	        out);
	text_json(out, name);
	fputs(",\"activeProfileIndex\":0,\"shared\":{\"frames\":[", out);
	put_frames(&w);
	fputs("]},\"profiles\":[", out);
	put_profiles(&w, whole);
	fputs("]}\n", out);
	return text_finish(out, "speedscope profile");
}

const struct format format_speedscope = {
        .name = "speedscope",
        .extension = ".json",
        .description = "for speedscope.app",
        .threads = true,
        .processes = PROCESSES_SEVERAL,
        .write = write_speedscope,
};
