/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace events as JSON ("Trace Event Format"), for Perfetto, chrome://tracing and speedscope. A frame is one
 * box (ph X) from the first to the end of the last of the consecutive samples that contain it.
 */
#include <stdlib.h>

#include "format.h"
#include "samples.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "unwind/search.h"
#include "words.h"

#define GAP 2.5 /* periods without a sample: the thread did not run */

struct chrome {
	FILE *out;
	const struct profile *p;
	struct samples s;
	struct order *order;
	u32 *path; /* nodes whose boxes are open, outermost first */
	u64 *since;
	u32 n;
	bool any;
};

static void cleanup_chrome(struct chrome *w)
{
	samples_free(&w->s);
	order_destroy(w->order);
	free(w->path);
	free(w->since);
}

static void begin_event(struct chrome *w, const char *phase, const struct samples_thread *t)
{
	fprintf(w->out, "%s{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,", w->any ? ",\n" : "\n", phase, t->pid, t->tid);
	w->any = true;
}

static void put_names(struct chrome *w, const struct samples_thread *t)
{
	char name[SAMPLES_NAME];

	begin_event(w, "M", t);
	fputs("\"name\":\"process_name\",\"args\":{\"name\":", w->out);
	text_json(w->out, samples_name(t, true, name));
	fputs("}}", w->out);
	begin_event(w, "M", t);
	fputs("\"name\":\"thread_name\",\"args\":{\"name\":", w->out);
	text_json(w->out, samples_name(t, false, name));
	fputs("}}", w->out);
}

static void put_box(struct chrome *w, const struct samples_thread *t, u32 node, u64 since, u64 until)
{
	const struct profile_function *f = &w->p->functions[w->p->nodes[node].function];

	begin_event(w, "X", t);
	fprintf(w->out, "\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":", (double)since / 1e3,
	        (double)(until - since) / 1e3, text_kind(words_kind(f)));
	text_json(w->out, text_name(f));
	if (*f->module || *f->file) {
		fputs(",\"args\":{\"in\":", w->out);
		text_json(w->out, *f->file ? f->file : f->module);
		putc('}', w->out);
	}
	putc('}', w->out);
}

static void close_to(struct chrome *w, const struct samples_thread *t, u32 n, u64 now)
{
	while (w->n > n) {
		w->n--;
		put_box(w, t, w->path[w->n], w->since[w->n], now);
	}
}

/* How many open boxes the path to node goes through. */
static u32 common(const struct chrome *w, u32 node, u32 depth)
{
	u32 n = depth;

	for (; n && (n > w->n || w->path[n - 1] != node); n--)
		node = w->p->nodes[node].parent;
	return n;
}

static u32 depth_of(const struct chrome *w, u32 node)
{
	u32 depth = 0;

	for (; samples_is_code(w->p, node); node = w->p->nodes[node].parent)
		depth++;
	return depth;
}

static void open_to(struct chrome *w, u32 node, u32 depth, u64 now)
{
	for (u32 d = depth; d > w->n; d--, node = w->p->nodes[node].parent) {
		w->path[d - 1] = node;
		w->since[d - 1] = now;
	}
	w->n = depth;
}

/* The entry of the same pid and tid before or after exec() or a change of name; NULL if there is none. */
static const struct samples_thread *find_twin(const struct chrome *w, const struct samples_thread *t)
{
	for (u32 i = 0; i < w->s.nthreads; i++) {
		const struct samples_thread *o = &w->s.threads[i];

		if (o != t && o->n && o->pid == t->pid && o->tid == t->tid)
			return o;
	}
	return NULL;
}

/* Where a box ends that no sample of its thread follows: at most where the twin goes on. */
static u64 end_before(const struct chrome *w, const struct samples_thread *twin, u64 last, u64 end)
{
	const struct sample_of *list = twin ? &w->s.list[twin->first] : NULL;
	u32 next = twin ? SEARCH(twin->n, k, list[k].ns <= last) : 0;

	return twin && next < twin->n && list[next].ns < end ? list[next].ns : end;
}

static void put_thread(struct chrome *w, const struct samples_thread *t)
{
	const struct samples_thread *twin = find_twin(w, t);
	u64 end = 0;

	if (!t->n)
		return;
	put_names(w, t);
	for (u32 i = t->first; i < t->first + t->n; i++) {
		const struct sample_of *s = &w->s.list[i];
		u32 depth = depth_of(w, s->node);

		if (w->s.timed && (double)s->ns > (double)end + (GAP - 1) * w->s.step_ns)
			close_to(w, t, 0, end);
		close_to(w, t, common(w, s->node, depth), s->ns);
		open_to(w, s->node, depth, s->ns);
		end = end_before(w, twin, s->ns, s->ns + text_scaled(s->count, w->s.step_ns));
	}
	close_to(w, t, 0, end);
}

static struct error *write_chrome(const struct profile *p, FILE *out)
{
	cleanup(chrome) struct chrome w = {.p = p, .out = out};
	struct error *err = order_create(p, &w.order);

	if (!err)
		err = samples_create(p, w.order, &w.s);
	if (err)
		return err;
	w.path = calloc(w.order->deepest + 1, sizeof(*w.path));
	w.since = calloc(w.order->deepest + 1, sizeof(*w.since));
	if (!w.path || !w.since)
		return &error_no_memory;
	fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"exporter\":\"yrt " YRT_VERSION "\",\"loss\":", out);
	text_json(out, p->meta.loss ? p->meta.loss : "");
	fputs("},\"traceEvents\":[", out);
	for (u32 i = 0; i < w.s.nthreads && !ferror(out); i++)
		put_thread(&w, &w.s.threads[i]);
	fputs("]}\n", out);
	return text_finish(out, "trace");
}

const struct format format_chrome = {
        .name = "chrome",
        .extension = ".trace.json",
        .description = "trace events, for Perfetto and chrome://tracing",
        .threads = true,
        .processes = PROCESSES_EACH,
        .write = write_chrome,
};
