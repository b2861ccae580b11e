/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define STEP_OF_OTHERS_NS 1000 /* of what is no time, as bytes */

bool samples_is_code(const struct profile *p, u32 node)
{
	enum profile_kind kind = p->functions[p->nodes[node].function].kind;

	return node && kind != KIND_CONTAINER && kind != KIND_PROCESS && kind != KIND_THREAD;
}

/* "worker (tid 42)": 42. */
static u32 number_in(const char *name, const char *mark)
{
	const char *at = strstr(name, mark), *next;

	while (at && (next = strstr(at + 1, mark)))
		at = next;
	return at ? (u32)strtoul(at + strlen(mark), NULL, 10) : 0;
}

const char *samples_name(const struct samples_thread *t, bool process, char ret[SAMPLES_NAME])
{
	const struct profile_function *f = process || !t->thread ? t->process : t->thread;
	char clean[TEXT_CLEAN];
	char *end;

	text_clean(f ? text_name(f) : "yrt", clean);
	end = strstr(clean, f && f->kind == KIND_PROCESS ? " (pid " : " (tid ");
	snprintf(ret, SAMPLES_NAME, "%.*s", end ? (int)(end - clean) : (int)strlen(clean), clean);
	return ret;
}

/* The thread of each node, numbered as they come in preorder. of: by node. */
static struct error *find_threads(const struct profile *p, const struct order *o, struct samples *s, u32 *of)
{
	struct error *err = grow(&s->threads, 0, sizeof(*s->threads));

	if (err)
		return err;
	s->threads[s->nthreads++] = (struct samples_thread){0};
	for (u32 i = 1; i < p->nnodes && !err; i++) {
		u32 node = o->nodes[i], parent = of[p->nodes[node].parent];
		const struct profile_function *f = &p->functions[p->nodes[node].function];
		struct samples_thread t;

		of[node] = parent;
		if (samples_is_code(p, node) || f->kind == KIND_CONTAINER)
			continue;
		t = s->threads[parent];
		if (f->kind == KIND_PROCESS)
			t = (struct samples_thread){.process = f, .pid = f->line, .tid = f->line};
		else
			t.thread = f;
		if (f->kind == KIND_THREAD)
			t.tid = number_in(text_name(f), " (tid ");
		err = grow(&s->threads, s->nthreads, sizeof(*s->threads));
		if (err)
			return err;
		of[node] = s->nthreads;
		s->threads[s->nthreads++] = t;
	}
	return err;
}

static u32 count_samples(const struct profile *p, bool timed)
{
	u32 n = 0;

	for (u32 i = 0; i < p->nnodes; i++)
		n += p->nodes[i].self > 0;
	return timed ? p->ntimes : n;
}

static void add(struct samples *s, u32 node, u32 thread, u64 ns, u64 count)
{
	s->list[s->n++] = (struct sample_of){node, thread, ns, count};
	s->threads[thread].n++;
}

static void add_timed(const struct profile *p, struct samples *s, const u32 *of)
{
	for (u32 i = 0; i < p->ntimes; i++)
		add(s, p->times[i].node, of[p->times[i].node], (u64)p->times[i].when * PROFILE_TIME_STEP_NS, 1);
}

static void add_untimed(const struct profile *p, const struct order *o, struct samples *s, const u32 *of, u64 *ends)
{
	for (u32 i = 0; i < p->nnodes; i++) {
		u32 node = o->nodes[i], thread = of[node];
		u64 count = p->nodes[node].self;

		if (!count)
			continue;
		add(s, node, thread, ends[thread], count);
		ends[thread] += text_scaled(count, s->step_ns);
	}
}

static int compare(const void *a, const void *b)
{
	const struct sample_of *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Of time that a timeline has divided into samples a count is a sample. */
static double step_of(const struct profile *p)
{
	double period = text_period_ns(&p->meta);

	if (text_is_time(&p->meta))
		return p->ntimes && p->meta.frequency > 0 ? 1e9 / p->meta.frequency : 1;
	return period ? period : STEP_OF_OTHERS_NS;
}

struct error *samples_create(const struct profile *p, const struct order *o, struct samples *ret)
{
	cleanup(free) u32 *of = calloc(p->nnodes, sizeof(*of));
	cleanup(free) u64 *ends = NULL;
	struct samples s = {.timed = p->ntimes > 0, .step_ns = step_of(p)};
	struct error *err = of ? find_threads(p, o, &s, of) : &error_no_memory;

	if (!err) {
		s.list = calloc(count_samples(p, s.timed) + 1, sizeof(*s.list));
		ends = calloc(s.nthreads, sizeof(*ends));
	}
	if (err || !s.list || !ends) {
		samples_free(&s);
		return err ? err : &error_no_memory;
	}
	if (s.timed)
		add_timed(p, &s, of);
	else
		add_untimed(p, o, &s, of, ends);
	qsort(s.list, s.n, sizeof(*s.list), compare);
	for (u32 i = 1; i < s.nthreads; i++)
		s.threads[i].first = s.threads[i - 1].first + s.threads[i - 1].n;
	*ret = s;
	return NULL;
}

static int compare_times(const void *a, const void *b)
{
	const struct sample_of *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

void samples_sort_by_time(struct samples *s)
{
	qsort(s->list, s->n, sizeof(*s->list), compare_times);
}

void samples_free(struct samples *s)
{
	free(s->list);
	free(s->threads);
}
