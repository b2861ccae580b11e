/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_threads.h"

#include <stdlib.h>
#include <xxhash.h>

#include "grow.h"
#include "unwind/runtime_alloc.h"
#include "unwind/table.h"

#define THREADS_MAX 16384
#define OWN_SCALE   20 /* samples from which on a thread is scaled by itself */

struct allocator {
	u64 first, last; /* exact bytes when first and last seen */
	u64 before;      /* of threads that had this structure before it */
	double estimated;
	u64 samples;
	double scale;
	bool known; /* by the runtime */
};

struct tlab_threads {
	const struct targets *targets;
	bool apart;
	struct allocator *list;
	u32 n;
	struct table by_key;          /* hash of (process, thread): index in list */
	struct alloc_thread *scratch; /* THREADS_MAX */
};

const struct instance *tlab_runtime(const struct process *p)
{
	for (u32 i = 0; p && i < p->ninstances; i++)
		if (p->instances[i].ops->alloc && p->instances[i].data)
			return &p->instances[i];
	return NULL;
}

struct error *tlab_threads_create(const struct targets *targets, bool apart, struct tlab_threads **ret)
{
	struct tlab_threads *t = calloc(1, sizeof(*t));

	if (!t)
		return &error_no_memory;
	t->targets = targets;
	t->apart = apart;
	t->scratch = malloc(THREADS_MAX * sizeof(*t->scratch));
	if (!t->scratch) {
		tlab_threads_destroy(t);
		return &error_no_memory;
	}
	*ret = t;
	return NULL;
}

void tlab_threads_destroy(struct tlab_threads *t)
{
	if (!t)
		return;
	free(t->list);
	table_free(&t->by_key);
	free(t->scratch);
	free(t);
}

struct error *tlab_threads_find(struct tlab_threads *t, u32 process, u64 thread, u32 *ret)
{
	u64 words[] = {process, thread}, key = XXH3_64bits(words, sizeof(words)) | 1,
	    *known = table_get(&t->by_key, key);
	struct error *err;

	if (known) {
		*ret = (u32)*known;
		return NULL;
	}
	err = grow((void **)&t->list, t->n, sizeof(*t->list));
	if (!err)
		err = table_put(&t->by_key, key, t->n);
	if (err)
		return err;
	t->list[t->n] = (struct allocator){.scale = 1};
	*ret = t->n++;
	return NULL;
}

static void note(struct allocator *a, u64 allocated, bool first)
{
	if (!a->known) {
		a->first = first ? allocated : 0;
	} else if (allocated < a->last) { /* another thread, with a structure at the same address */
		a->before += a->last - a->first;
		a->first = 0;
	}
	a->known = true;
	a->last = allocated;
}

static struct error *count_process(struct tlab_threads *t, const struct process *p, bool first)
{
	const struct instance *in = tlab_runtime(p);
	struct runtime_process view;
	struct error *err = NULL;
	u32 n, index = 0;

	if (!in || p->dead)
		return NULL;
	view = process_view(p);
	n = in->ops->alloc->threads(in->data, &view, t->scratch, THREADS_MAX);
	for (u32 i = 0; i < n && !err; i++) {
		err = tlab_threads_find(t, p->number, t->scratch[i].thread, &index);
		if (!err)
			note(&t->list[index], t->scratch[i].allocated, first);
	}
	return err;
}

struct error *tlab_threads_count(struct tlab_threads *t, bool first)
{
	struct error *err = NULL;

	for (u32 i = 0; i < t->targets->nprocesses && !err; i++)
		err = count_process(t, t->targets->processes[i], first);
	return err;
}

void tlab_threads_add(struct tlab_threads *t, u32 index, u32 samples, double bytes)
{
	t->list[index].samples += samples;
	t->list[index].estimated += bytes;
}

static double exact(const struct allocator *a)
{
	return a->known ? (double)(a->before + a->last - a->first) : 0;
}

static bool is_pooled(const struct tlab_threads *t, const struct allocator *a)
{
	return a->known && (a->samples < OWN_SCALE || a->estimated <= 0) && (a->estimated > 0 || !t->apart);
}

/* The scale of those that have few samples; 1: nothing is known of them. *estimated: what these stand for. */
static double scale_together(const struct tlab_threads *t, double *estimated)
{
	double bytes = 0;

	*estimated = 0;
	for (u32 i = 0; i < t->n; i++) {
		if (!is_pooled(t, &t->list[i]))
			continue;
		bytes += exact(&t->list[i]);
		*estimated += t->list[i].estimated;
	}
	return *estimated > 0 ? bytes / *estimated : 1;
}

void tlab_threads_scale(struct tlab_threads *t, struct tlab_totals *ret)
{
	double estimated, together = scale_together(t, &estimated);

	*ret = (struct tlab_totals){0};
	for (u32 i = 0; i < t->n; i++) {
		struct allocator *a = &t->list[i];

		ret->bytes += exact(a);
		ret->threads += exact(a) > 0;
		if (is_pooled(t, a))
			a->scale = together;
		else if (a->known && a->estimated > 0)
			a->scale = exact(a) / a->estimated;
		if (a->known && a->estimated <= 0 && (t->apart || estimated <= 0))
			ret->unseen += exact(a);
	}
}

double tlab_threads_factor(const struct tlab_threads *t, u32 index)
{
	return t->list[index].scale;
}
