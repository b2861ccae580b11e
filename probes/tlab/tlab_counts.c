/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_counts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>
#include <xxhash.h>

#include "grow.h"
#include "probes/targets.h"
#include "tlab_reweight.h"
#include "tlab_survey.h"
#include "tlab_threads.h"
#include "unwind/error.h"
#include "unwind/runtime_alloc.h"
#include "unwind/table.h"

/*
 * The innermost frames of a stack that was taken where an object was made: the runtime knows more about that place than
 * about other leaves. It is asked once for each place.
 */

struct tlab_leaves;

#define LEAF_FRAMES 4

struct leaf {
	struct frame frame[LEAF_FRAMES];
};

struct tlab_leaves {
	const struct targets *targets;
	struct leaf *list; /* placed exactly */
	u32 n;
	struct table by_frames; /* hash of what they were before: index in list */
};

static struct error *tlab_leaves_create(const struct targets *targets, struct tlab_leaves **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	(*ret)->targets = targets;
	return NULL;
}

static void tlab_leaves_destroy(struct tlab_leaves *l)
{
	if (!l)
		return;
	free(l->list);
	table_free(&l->by_frames);
	free(l);
}

/* Replaces frames by exact ones (runtime_alloc_ops.place). process: its number. */
static struct error *tlab_leaves_place(struct tlab_leaves *l, u32 process, struct frame *frames, u32 n)
{
	const struct process *p = targets_find(l->targets, process);
	const struct instance *in = tlab_runtime(p);
	u64 size = (n < LEAF_FRAMES ? n : LEAF_FRAMES) * sizeof(*frames),
	    key = XXH3_64bits_withSeed(frames, size, process) | 1;
	u64 *known = table_get(&l->by_frames, key);
	struct runtime_process view;
	struct error *err;

	if (!in || !in->ops->alloc->place)
		return NULL;
	if (known) {
		memcpy(frames, l->list[*known].frame, size);
		return NULL;
	}
	view = process_view(p);
	in->ops->alloc->place(in->data, &view, frames, (u32)(size / sizeof(*frames)));
	err = grow((void **)&l->list, l->n, sizeof(*l->list));
	if (!err)
		err = table_put(&l->by_frames, key, l->n);
	if (!err)
		memcpy(l->list[l->n++].frame, frames, size);
	return err;
}

static bool is_in_file(const struct process *p, const struct instance *in, u64 addr)
{
	const struct mapping *m = process_mapping(p, addr);

	return m && m->image && m->image == in->loaded->image;
}

/* How many of the innermost frames are a library's function (memset) by which the runtime fills the object. */
static u32 tlab_leaves_filling(const struct tlab_leaves *l, u32 process, const struct frame *frames, u32 n)
{
	const struct process *p = targets_find(l->targets, process);
	const struct instance *in = tlab_runtime(p);

	for (u32 i = 0; in && i < n && i < LEAF_FRAMES && frame_kind(&frames[i]) == FRAME_NATIVE; i++)
		if (is_in_file(p, in, frame_addr(&frames[i])))
			return i;
	return 0;
}

struct cell {                        /* what samples of a thread in a node stand for */
	u32 thread;                  /* tlab_threads.h */
	u32 node;                    /* COLLECTOR_FILTERED: left out as asked, but the thread has allocated it */
	u32 kind;                    /* tlab_reweight.h */
	struct reweighting *weights; /* NULL: none */
	double bytes, objects;
	double sizeless; /* bytes of objects whose size is not known */
	bool unseen;     /* without a stack */
};

struct of_process {
	u32 process;
	struct reweighting *weights;
};

struct tlab_counts {
	struct tlab_counts_options options;
	struct survey *survey;
	struct of_process *processes;
	u32 nprocesses;
	struct tlab_leaves *leaves;
	struct cell *cells;
	u32 ncells;
	struct table by_cell; /* hash of (thread, node, kind): index in cells */
	struct tlab_totals totals;
	u64 samples, unclassed;
	u64 unknown;                /* classes that a site gave */
	double estimated, variance; /* of what samples stand for */
	double trust;
	bool watching;
};

struct error *tlab_counts_create(const struct tlab_counts_options *options, struct tlab_counts **ret)
{
	struct tlab_counts *c = calloc(1, sizeof(*c));
	struct error *err;

	if (!c)
		return &error_no_memory;
	c->options = *options;
	err = survey_create(&c->survey);
	if (!err)
		err = tlab_leaves_create(options->targets, &c->leaves);
	if (err) {
		tlab_counts_destroy(c);
		return err;
	}
	*ret = c;
	return NULL;
}

void tlab_counts_destroy(struct tlab_counts *c)
{
	if (!c)
		return;
	survey_destroy(c->survey);
	tlab_leaves_destroy(c->leaves);
	for (u32 i = 0; i < c->nprocesses; i++)
		reweight_destroy(c->processes[i].weights);
	free(c->processes);
	table_free(&c->by_cell);
	free(c->cells);
	free(c);
}

void tlab_counts_set_watching(struct tlab_counts *c, bool watching)
{
	c->watching = watching;
}

u64 tlab_counts_unknown(const struct tlab_counts *c)
{
	return c->unknown;
}

static struct error *cell_of(struct tlab_counts *c, const struct cell *wanted, struct cell **ret)
{
	u64 words[] = {wanted->thread, wanted->node, wanted->weights ? wanted->kind + 1ull : 0};
	u64 key = XXH3_64bits(words, sizeof(words)) | 1, *known = table_get(&c->by_cell, key);
	struct error *err;

	if (known) {
		*ret = &c->cells[*known];
		return NULL;
	}
	err = grow((void **)&c->cells, c->ncells, sizeof(*c->cells));
	if (!err)
		err = table_put(&c->by_cell, key, c->ncells);
	if (err)
		return err;
	c->cells[c->ncells] = (struct cell){
	        .thread = wanted->thread, .node = wanted->node, .kind = wanted->kind, .weights = wanted->weights};
	*ret = &c->cells[c->ncells++];
	return NULL;
}

static struct error *add_cell(struct tlab_counts *c, const struct cell *more)
{
	struct cell *cell;
	struct error *err = cell_of(c, more, &cell);

	if (err)
		return err;
	cell->bytes += more->bytes;
	cell->objects += more->objects;
	cell->sizeless += more->sizeless;
	cell->unseen |= more->unseen;
	tlab_threads_add(c->options.threads, more->thread, 0, more->bytes);
	return NULL;
}

static struct error *reweight_of(struct tlab_counts *c, u32 process, struct reweighting **ret)
{
	struct error *err;

	for (u32 i = 0; i < c->nprocesses; i++)
		if (c->processes[i].process == process) {
			*ret = c->processes[i].weights;
			return NULL;
		}
	err = grow((void **)&c->processes, c->nprocesses, sizeof(*c->processes));
	if (!err)
		err = reweight_create(ret);
	if (!err)
		c->processes[c->nprocesses++] = (struct of_process){.process = process, .weights = *ret};
	return err;
}

/* A node for what is not known, below another one. */
static struct error *child_unknown(struct tlab_counts *c, u32 node, const char *text, u32 *ret)
{
	struct profile *p = collector_profile(c->options.collector);
	struct profile_function fn = {.name = text, .module = "", .file = "", .kind = KIND_UNKNOWN};
	struct error *err = profile_function(p, 0, &fn, false, ret);

	return err ? err : profile_child(p, node, *ret, ret);
}

/* Threads that are shown by themselves have stacks of their own. */
static u64 apart(const struct tlab_counts *c, u32 thread)
{
	return c->options.threads_apart ? thread + 1ull : 0;
}

/* A stack for what is counted without one; a refill stands for its whole buffer. */
static struct error *add_to_survey(
        struct tlab_counts *c, const struct tlab_class *p, u32 thread, u32 node, double bytes, double objects)
{
	u32 kind = 0;
	struct error *err =
	        survey_kind(c->survey, p->record.instance, &p->frame, p->record.size, apart(c, thread), &kind);

	return err ? err : survey_stack(c->survey, kind, p->record.how == ALLOC_BY_SLOW, thread, node, bytes, objects);
}

/* The probability that what a site reported as one became a sample. */
static double chance_of(const struct alloc_record *r)
{
	return -expm1(-(double)r->stands / (double)r->interval);
}

static void note_sample(struct tlab_counts *c, const struct tlab_class *p, double bytes, double chance)
{
	c->estimated += bytes;
	c->variance += bytes * bytes * (1 - chance);
	c->samples++;
	c->unclassed += !p->known;
	c->unknown += !p->known && p->record.klass;
}

/* An object in a buffer is of a kind that a survey covers; one outside is reported in any case. */
static struct error *choose_kind(struct tlab_counts *c, const struct tlab_class *p, u64 size, struct cell *ret)
{
	bool outside = p->record.how == ALLOC_BY_SLOW;
	struct reweighting *weights = NULL;
	struct error *err;

	if (!c->watching || !size || !(p->known || outside))
		return NULL;
	err = reweight_of(c, p->record.instance, &weights);
	if (!err)
		err = outside ? reweight_outside(weights, alloc_size_class(size), &ret->kind)
		              : reweight_kind(weights, &p->frame, size, &ret->kind);
	if (err)
		return err;
	ret->weights = weights;
	reweight_sample(weights, ret->kind, ret->bytes);
	return NULL;
}

static struct error *count(struct tlab_counts *c, const struct tlab_class *p, u32 node)
{
	const struct alloc_record *r = &p->record;
	double seen = (double)r->duty / ALLOC_ALWAYS, chance = r->how == ALLOC_BY_WATCH ? 0 : chance_of(r);
	u64 size = r->how == ALLOC_BY_WATCH ? p->size : r->size;
	bool whole = r->how == ALLOC_BY_REFILL && r->stands != r->size;
	struct cell more = {.node = node};
	struct error *err = tlab_threads_find(c->options.threads, r->instance, r->thread, &more.thread);

	if (err || !r->duty)
		return err;
	more.bytes = (chance > 0 ? (double)r->stands / chance : (double)r->interval) / seen;
	more.objects = size ? more.bytes / (double)size : 0;
	more.sizeless = size ? 0 : more.bytes;
	if (!whole) {
		err = choose_kind(c, p, size, &more);
		if (!err)
			err = add_cell(c, &more);
	}
	if (!err && (whole || (r->how == ALLOC_BY_SLOW && !c->watching)))
		err = add_to_survey(c, p, more.thread, node, more.bytes, more.objects);
	if (err)
		return err;
	tlab_threads_add(c->options.threads, more.thread, 1, 0);
	if (node != COLLECTOR_FILTERED)
		note_sample(c, p, more.bytes, chance * seen);
	return NULL;
}

/* The node of a kind without a stack: "[no stack seen]" and the class. */
static struct error *unseen_node(struct tlab_counts *c, const struct tlab_class *p, u32 *ret)
{
	struct stack_record record = {
	        .instance = p->record.instance, .tgid = p->record.tgid, .tid = p->record.tid, .stop = STOP_ROOT};
	struct profile *profile = collector_profile(c->options.collector);
	struct error *err = collector_place(c->options.collector, &record, NULL, 0, &p->frame, ret);
	u32 function, parent;

	if (err || *ret == COLLECTOR_FILTERED)
		return err;
	function = profile->nodes[*ret].function;
	parent = profile->nodes[*ret].parent;
	err = child_unknown(c, parent, "[no stack seen]", &parent);
	return err ? err : profile_child(profile, parent, function, ret);
}

/* Spread over the stacks of its kind, or by itself. */
static struct error *count_without_stack(struct tlab_counts *c, const struct tlab_class *p, double by)
{
	u32 thread = 0, kind = 0, node = 0;
	struct error *err = tlab_threads_find(c->options.threads, p->record.instance, p->record.thread, &thread);

	if (!err)
		err = survey_kind(c->survey, p->record.instance, &p->frame, p->size, apart(c, thread), &kind);
	if (!err && p->known)
		err = unseen_node(c, p, &node);
	else if (!err)
		err = child_unknown(c, 0, "[no stack seen]", &node);
	return err ? err : survey_count(c->survey, kind, thread, node, (double)p->bytes * by, (double)p->objects * by);
}

struct error *tlab_counts_survey(void *counts, const struct tlab_class *p)
{
	struct tlab_counts *c = counts;
	double by = ALLOC_ALWAYS / chance_of(&p->record) / (double)p->record.duty;
	struct reweighting *weights = NULL;
	struct error *err;
	u32 kind = 0;

	if (!p->record.duty)
		return NULL;
	if (!c->watching)
		return count_without_stack(c, p, by);
	err = reweight_of(c, p->record.instance, &weights);
	if (!err)
		err = reweight_kind(weights, &p->frame, p->size, &kind);
	if (!err)
		reweight_counted(weights, kind, (double)p->bytes, (double)p->whole, (double)p->record.stands, by);
	return err;
}

struct error *tlab_counts_stack(
        void *counts, const struct tlab_class *class, const struct stack_record *record, struct frame *frames, u32 n)
{
	struct tlab_counts *c = counts;
	struct error *err =
	        class->record.how == ALLOC_BY_WATCH ? tlab_leaves_place(c->leaves, record->instance, frames, n) : NULL;
	u32 node = COLLECTOR_FILTERED, skip = tlab_leaves_filling(c->leaves, record->instance, frames, n);

	if (!err)
		err = collector_place(c->options.collector, record, frames + skip, n - skip,
		        class->known ? &class->frame : NULL, &node);
	if (!err && node != COLLECTOR_FILTERED && !class->known)
		err = child_unknown(c, node, "[class not seen]", &node);
	return err ? err : count(c, class, node);
}

static struct error *add_unseen(struct tlab_counts *c)
{
	struct profile *p = collector_profile(c->options.collector);
	struct error *err;
	u32 node = 0;

	if (c->totals.unseen < 1)
		return NULL;
	err = child_unknown(c, 0, "[no stack seen]", &node);
	if (!err)
		profile_add(p, node, (u64)llround(c->totals.unseen));
	return err;
}

static struct error *add_spread(void *ctx, const struct survey_result *r)
{
	return add_cell(ctx, &(struct cell){.thread = r->allocator,
	                             .node = r->node,
	                             .bytes = r->bytes,
	                             .objects = r->objects,
	                             .unseen = r->unseen});
}

struct handed {
	struct object *object;
	pid_t pid;
};

static double handed_out(void *ctx, u32 size_class)
{
	const struct handed *h = ctx;

	return tlab_object_handed_out(h->object, h->pid, size_class);
}

/* By what is known of all, beside samples, where there are watchpoints. */
static void weigh(struct tlab_counts *c)
{
	for (u32 i = 0; i < c->nprocesses; i++) {
		const struct process *p = targets_find(c->options.targets, c->processes[i].process);
		struct handed h = {c->options.object, p ? p->pid : 0};

		reweight_handed(c->processes[i].weights, handed_out, &h);
		c->trust = fmax(c->trust, reweight_weigh(c->processes[i].weights, handed_out(&h, ALLOC_BUFFERS)));
	}
	for (u32 i = 0; i < c->ncells; i++) {
		struct cell *cell = &c->cells[i];
		double by = cell->weights ? reweight_factor(cell->weights, cell->kind) : 1;

		tlab_threads_add(c->options.threads, cell->thread, 0, cell->bytes * (by - 1));
		cell->bytes *= by;
		cell->objects *= by;
	}
}

/* What was of no known size has that of the others. */
static double objects_a_byte(const struct tlab_counts *c)
{
	double bytes = 0, objects = 0;

	for (u32 i = 0; i < c->ncells; i++) {
		bytes += c->cells[i].bytes - c->cells[i].sizeless;
		objects += c->cells[i].objects;
	}
	return bytes > 0 ? objects / bytes : 0;
}

static void move_into_profile(const struct tlab_counts *c)
{
	struct profile *p = collector_profile(c->options.collector);
	double density = objects_a_byte(c);

	for (u32 i = 0; i < c->ncells; i++) {
		const struct cell *cell = &c->cells[i];
		double by = tlab_threads_factor(c->options.threads, cell->thread);

		if (cell->node == COLLECTOR_FILTERED)
			continue;
		profile_add(p, cell->node, (u64)llround(cell->bytes * by));
		profile_add_more(p, cell->node, (u64)llround((cell->objects + cell->sizeless * density) * by));
	}
}

struct error *tlab_counts_finish(struct tlab_counts *c)
{
	struct error *err = survey_spread(c->survey, add_spread, c);

	if (err)
		return err;
	weigh(c);
	tlab_threads_scale(c->options.threads, &c->totals);
	move_into_profile(c);
	err = add_unseen(c);
	for (u32 i = 0; i < c->ncells; i++)
		if (c->cells[i].unseen && c->cells[i].node != COLLECTOR_FILTERED)
			c->totals.unseen +=
			        c->cells[i].bytes * tlab_threads_factor(c->options.threads, c->cells[i].thread);
	return err;
}

void tlab_counts_summarize(const struct tlab_counts *c, struct tlab_summary *ret)
{
	ret->samples = c->samples;
	ret->unclassed = c->unclassed;
	ret->effective = c->variance > 0 ? fmin(c->estimated * c->estimated / c->variance, (double)c->samples)
	                                 : (double)c->samples;
	ret->bytes = c->totals.bytes;
	ret->unseen = c->totals.unseen;
	ret->threads = c->totals.threads;
	ret->survey = survey_usable(c->survey);
	ret->trust = c->trust;
}
