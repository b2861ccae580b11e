/* SPDX-License-Identifier: Apache-2.0 */
/* The walk: breadth-first from the roots, rank by rank; each wave in order of address. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "cleanup.h"
#include "grow.h"
#include "heap_cache.h"
#include "heap_coarse.h"
#include "heap_internal.h"
#include "runtime.h"
#include "search.h"
#include "sort_keys.h"

#define PREFETCHED 8
#define HURRY      -20        /* priority */
#define AHEAD_FROM 256        /* objects of a wave, from which whole blocks are read */
#define TORN_MAX   4096       /* objects; then it must have helped some to read them once more */
#define WAVE_MAX   (1u << 20) /* objects that are put in order at once, in 32 MB */
#define PIECE_MAX  (1u << 18) /* of a coarse heap */
#define SOON_EACH  256        /* objects after which those that may be gone soon are read, or when there are so many */
#define NO_OBJECT  1          /* heap_kind.size of what was read, and is none */
#define EDGES_MAX  0xfffffff0u
#define EDGE_BYTES 12 /* at most, as it is read and turned */
#define NODE_BYTES 16
#define REFS_EACH  256 /* references for each object that there is room for: a process that has more is hostile */

struct walk_of {
	struct heap *h;
	struct heap_reading *r;
	const struct runtime_heap_ops *ops;
	void *reader;
	struct runtime_process process; /* its memory is the cache */
	u64 room;                       /* bytes that can be read: no object is larger */
};

struct place {
	u64 addr;
	u32 node;
};

static void add_edge(const struct walk_of *w, u32 from, u32 to)
{
	struct heap *h = w->h;
	struct error *err;

	if (!w->r->references || from == to)
		return;
	if (h->edges.n >= EDGES_MAX || !heap_has_room(h, EDGE_BYTES)) {
		h->counts.refused++;
		return;
	}
	err = heap_edges_add(&h->edges, from, to);
	if (err && !w->r->err)
		w->r->err = err;
}

static void add_way(const struct walk_of *w, u32 from, u32 to, u32 label)
{
	struct heap *h = w->h;
	struct error *err;

	if (!w->r->ways)
		return;
	if (h->nways >= EDGES_MAX || !heap_has_room(h, sizeof(*h->ways))) {
		h->counts.refused++;
		return;
	}
	err = grow(&h->ways, (u32)h->nways, sizeof(*h->ways));
	if (!err)
		h->ways[h->nways++] = (struct heap_way){from, to, label};
	else if (!w->r->err)
		w->r->err = err;
}

/*
 * What an earlier rank keeps is not this one's, and what a root itself refers to is the root's: modules import each
 * other, but a module does not live because another uses it.
 */
static bool counts(const struct walk_of *w, u32 from, u32 to)
{
	const struct heap *h = w->h;

	return to >= w->r->first_of_rank && (!heap_is_root(h, h->nodes.parents[to]) || heap_is_root(h, from));
}

static bool put_soon(const struct walk_of *w, u64 addr, u32 node, u32 label)
{
	struct heap_reading *r = w->r;
	struct error *err;

	if (!w->ops->soon || !w->ops->soon(w->reader, addr))
		return false;
	err = grow(&r->soon, r->nsoon, sizeof(*r->soon));
	if (err)
		error_free(err);
	else
		r->soon[r->nsoon++] = (struct heap_pending){addr, node, label};
	return !err;
}

/* *from: who refers; its number changes if the heap becomes coarse. */
static void refer(const struct walk_of *w, u32 *at, u32 label, u64 addr)
{
	bool fresh;
	u32 to, from;

	w->h->counts.references++;
	if (!heap_fits_on(w->h, at))
		return;
	from = *at;
	if (w->h->coarse) {
		if (heap_coarse_mark(w->h, addr) && !put_soon(w, addr, from, label))
			heap_coarse_push(w->h, from, label, addr);
		return;
	}
	to = heap_now(w->h, heap_discover(w->h, addr, from, label, &fresh));
	if (fresh)
		put_soon(w, addr, to, label);
	if (!fresh && to)
		add_way(w, from, to, label);
	if (!fresh && counts(w, from, to))
		add_edge(w, from, to);
}

static bool fits_process(const struct walk_of *w, u64 size)
{
	return !w->process.nmappings || size <= w->room;
}

static enum heap_seen look(const struct walk_of *w, u64 addr, u32 label, struct heap_object *ret)
{
	enum heap_seen seen;

	*ret = (struct heap_object){0};
	w->r->nfound = 0;
	w->r->seen = w->r->more = 0;
	seen = w->ops->object(w->reader, addr, label, ret);
	return seen == HEAP_OBJECT && !fits_process(w, ret->size) ? HEAP_TORN : seen;
}

/* What was moved away as a whole is not there a moment later either. */
static bool helps(const struct heap_counts *c)
{
	return c->torn < TORN_MAX || c->torn / 16 < c->mended;
}

/* What does not fit together may have been read while it changed: its page, once more. */
static enum heap_seen look_twice(const struct walk_of *w, u64 addr, u32 label, struct heap_object *ret)
{
	enum heap_seen seen = look(w, addr, label, ret);

	if (seen != HEAP_TORN || (label & HEAP_MAYBE))
		return seen;
	if (helps(&w->h->counts)) {
		heap_cache_forget(w->h->cache, addr, 64);
		seen = look(w, addr, label, ret);
	}
	w->h->counts.mended += seen != HEAP_TORN;
	w->h->counts.torn += seen == HEAP_TORN;
	w->h->counts.torn_bytes += seen == HEAP_TORN && fits_process(w, ret->size) ? ret->size : 0;
	return seen;
}

static enum heap_seen see(const struct walk_of *w, u64 addr, u32 label, struct heap_object *ret)
{
	enum heap_seen seen = look_twice(w, addr, label, ret);

	return seen == HEAP_OBJECT && (!ret->type || ret->type >= w->h->ntypes) ? HEAP_NOTHING : seen;
}

/* The references of an object, whose node is self.from, but for so many that were followed before. */
static void follow(const struct walk_of *w, struct heap_pending self, u64 skip)
{
	u32 n = w->r->nfound, i = 0;

	for (u32 k = 0; k < n && k < PREFETCHED; k++)
		heap_nodes_prefetch(&w->h->nodes, w->r->found[k].addr);
	for (; i < n && !w->r->err && !(w->h->coarse && heap_coarse_full(w->h)); i++) {
		if (i + PREFETCHED < n)
			heap_nodes_prefetch(&w->h->nodes, w->r->found[i + PREFETCHED].addr);
		refer(w, &self.from, w->r->found[i].label, w->r->found[i].addr);
	}
	if (w->h->coarse && (i < n || w->r->more))
		heap_coarse_rest(w->h, &self, skip + i);
	w->r->nfound = 0;
	if (w->r->found_room > HEAP_FOUND_KEPT) {
		free(TAKE(w->r->found));
		w->r->found_room = 0;
	}
}

/* What refers to the object of a node refers to this address in truth. */
static void move(const struct walk_of *w, u32 node, u64 addr)
{
	struct heap *h = w->h;
	const u32 label = heap_kind(h, node)->label;
	u32 from = h->nodes.parents[node], to;
	struct error *err = NULL;

	refer(w, &from, label, addr);
	h->counts.references--;
	if (h->coarse)
		return; /* it is pending there */
	heap_nodes_set(&h->nodes, node, &(struct heap_kind){.size = NO_OBJECT, .label = label});
	to = heap_nodes_find(&h->nodes, addr);
	if (to && to != node)
		err = table_put(&h->moved, node, to);
	if (err && !w->r->err)
		w->r->err = err;
}

static void visit(const struct walk_of *w, u32 node)
{
	const u32 label = heap_kind(w->h, node)->label;
	const u64 addr = heap_addr(w->h, node);
	struct heap_object object;
	enum heap_seen seen;

	if (heap_kind(w->h, node)->type || heap_kind(w->h, node)->size)
		return; /* it was read, as it might have been gone */
	w->r->number = node;
	seen = see(w, addr, label, &object);
	if (!heap_fits_on(w->h, NULL) || w->h->coarse)
		return; /* it is pending there */
	if (seen == HEAP_MOVED)
		move(w, node, object.moved_to);
	else if (seen != HEAP_OBJECT)
		heap_nodes_set(&w->h->nodes, node, &(struct heap_kind){.size = NO_OBJECT, .label = label});
	else if (heap_describe(w->h, node, object.type, object.size))
		follow(w, (struct heap_pending){addr, node, label}, 0);
}

static void visit_pending(const struct walk_of *w, const struct heap_pending *p)
{
	struct heap_object object;
	enum heap_seen seen = see(w, p->addr, p->label, &object);
	u32 node = p->from;

	if (seen == HEAP_MOVED) {
		refer(w, &node, p->label, object.moved_to);
		w->h->counts.references--;
	} else if (seen == HEAP_OBJECT) {
		node = heap_coarse_count(w->h, p, object.type, object.size);
		follow(w, (struct heap_pending){p->addr, node, p->label}, 0);
	}
}

static bool visit_rest(const struct walk_of *w)
{
	struct heap_object object;
	struct heap_pending p;
	enum heap_seen seen;

	if (!heap_coarse_take_rest(w->h, &p, &w->r->skip))
		return false;
	seen = see(w, p.addr, p.label, &object);
	if (seen == HEAP_MOVED)
		seen = see(w, p.addr = object.moved_to, p.label, &object);
	if (seen == HEAP_OBJECT)
		follow(w, p, w->r->skip);
	w->r->skip = 0;
	return true;
}

static bool is_too_much(const struct walk_of *w)
{
	if (w->h->counts.references / REFS_EACH * NODE_BYTES < w->r->room)
		return false;
	w->h->counts.refused++;
	return true;
}

/* In place of what is done: those that may be gone soon, and what they lead to of that kind. */
static void visit_soon(const struct walk_of *w)
{
	struct heap_reading *r = w->r;

	while (r->nsoon && !r->err && !is_too_much(w)) {
		cleanup(free) struct heap_pending *wave = TAKE(r->soon);
		u32 n = r->nsoon;
		bool was_coarse = w->h->coarse;

		r->nsoon = 0;
		sort_keys(wave, n, sizeof(*wave));
		heap_cache_ahead(w->h->cache, n >= AHEAD_FROM);
		for (u32 i = 0; i < n && !r->err && was_coarse == !!w->h->coarse; i++)
			if (was_coarse)
				visit_pending(w, &wave[i]);
			else
				visit(w, wave[i].from);
	}
}

/* After each of a wave of n, in order of address. */
static void visit_soon_after(const struct walk_of *w, u32 i, u32 n)
{
	if (!w->r->nsoon || (w->r->nsoon < SOON_EACH && i % SOON_EACH && i + 1 < n))
		return;
	visit_soon(w);
	heap_cache_ahead(w->h->cache, n >= AHEAD_FROM);
}

/* The nodes from `from` up to `to`, in order of address. */
static struct error *visit_wave(const struct walk_of *w, u32 from, u32 to)
{
	cleanup(free) struct place *places = malloc((to - from) * sizeof(*places));

	if (!places)
		return &error_no_memory;
	for (u32 i = from; i < to; i++)
		places[i - from] = (struct place){heap_addr(w->h, i), i};
	sort_keys(places, to - from, sizeof(*places));
	heap_cache_ahead(w->h->cache, to - from >= AHEAD_FROM);
	for (u32 i = 0; i < to - from && !w->r->err && !w->h->coarse && !is_too_much(w); i++)
		if (places[i].addr) {
			visit(w, places[i].node);
			visit_soon_after(w, i, to - from);
		}
	return NULL;
}

/* What is pending, until nothing is. */
static struct error *walk_coarse(const struct walk_of *w)
{
	cleanup(free) struct heap_pending *wave = malloc(PIECE_MAX * sizeof(*wave));
	u32 n;

	if (!wave)
		return &error_no_memory;
	heap_cache_release(w->h->cache);
	while (!w->r->err && ((n = heap_coarse_take(w->h, PIECE_MAX, wave)) || visit_rest(w))) {
		if (n)
			sort_keys(wave, n, sizeof(*wave));
		heap_cache_ahead(w->h->cache, n >= AHEAD_FROM);
		for (u32 i = 0; i < n && !w->r->err && !is_too_much(w); i++) {
			visit_pending(w, &wave[i]);
			visit_soon_after(w, i, n);
		}
	}
	return NULL;
}

/* From the nodes that were found since on. */
static struct error *walk_on(const struct walk_of *w, u32 done)
{
	struct heap_reading *r = w->r;
	struct error *err = NULL;

	while (!err && !r->err && !w->h->coarse && done < w->h->nodes.n) {
		u32 end = w->h->nodes.n - done < WAVE_MAX ? w->h->nodes.n : done + WAVE_MAX;

		err = visit_wave(w, done, end);
		done = end;
	}
	if (!err && !r->err && w->h->coarse)
		err = walk_coarse(w);
	return err ? err : TAKE(r->err);
}

static struct error *walk_rank(const struct walk_of *w, enum heap_rank rank)
{
	struct heap_reading *r = w->r;
	u32 done = w->h->nodes.n;

	r->first_of_rank = done;
	for (u32 i = 0; i < r->nrefs; i++) {
		u32 from = r->root_nodes[r->refs[i].node];

		if (r->ranks[r->refs[i].node] == rank)
			refer(w, &from, r->refs[i].label, r->refs[i].addr);
	}
	visit_soon(w);
	return walk_on(w, done);
}

/* --- what no root reaches --- */

/* Who of the candidates, which are in order of address, is referred to by others of them, and how often. */
static void count_incoming(const struct walk_of *w)
{
	struct heap_reading *r = w->r;
	struct heap_object object;

	heap_cache_ahead(w->h->cache, true);
	for (u32 i = 0; i < r->ncandidates && !r->err; i++) {
		r->nfound = 0;
		if (w->ops->object(w->reader, r->candidates[i].addr, HEAP_ANY, &object) != HEAP_OBJECT)
			continue;
		for (u32 k = 0; k < r->nfound; k++) {
			u64 to = r->found[k].addr;
			u32 at = SEARCH(r->ncandidates, j, r->candidates[j].addr < to);

			if (at == r->ncandidates || r->candidates[at].addr != to)
				continue;
			r->candidates[at].incoming += r->candidates[at].incoming < UINT32_MAX;
			r->candidates[at].part |= !!(r->found[k].label & HEAP_PART);
		}
	}
}

/*
 * A candidate whose references are not all from candidates is held by something that is no object. Of the others those
 * that nobody refers to come first; what is left are cycles, of which whoever comes first stands for all, but for what
 * is part of others.
 */
static struct error *walk_candidates(const struct walk_of *w, bool only)
{
	enum { HELD, UNREFERRED, CYCLES, PARTS, PASSES };
	struct heap *h = w->h;
	struct heap_reading *r = w->r;
	struct error *err = NULL;
	u32 root[PASSES], above = only ? 0 : heap_root(h, 0, HEAP_RUNTIME, "(no root leads to it)");

	r->first_of_rank = h->nodes.n;
	h->first = only ? h->nodes.n : h->first;
	root[HELD] = heap_root(h, above, HEAP_RUNTIME, "(counted as used, though nothing that is known refers to it)");
	root[UNREFERRED] = heap_root(h, above, HEAP_RUNTIME, "(nothing refers to it)");
	root[CYCLES] = root[PARTS] = heap_root(h, above, HEAP_RUNTIME, "(cycles that only refer to themselves)");
	for (u32 pass = 0; !err && pass < PASSES; pass++) {
		u32 begun = h->nodes.n;

		for (u32 i = 0; !err && !r->err && i < r->ncandidates; i++) {
			const struct candidate *c = &r->candidates[i];
			u32 done = h->nodes.n, from = r->root_nodes[root[pass]];

			if ((pass == HELD && c->count <= c->incoming) || (pass == UNREFERRED && c->incoming) ||
			        (pass == CYCLES && c->part) || heap_has(h, c->addr))
				continue;
			refer(w, &from, HEAP_ANY, c->addr);
			err = pass >= CYCLES ? walk_on(w, done) : NULL;
		}
		if (!err && pass < CYCLES)
			err = walk_on(w, begun);
	}
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* only: what the roots reach is not shown. */
static struct error *walk_unreachable(const struct walk_of *w, bool only)
{
	struct heap_reading *r = w->r;
	struct error *err;

	if (!w->ops->all)
		return error_new(ERROR_UNSUPPORTED,
		        "--unreachable: the objects of this runtime cannot be listed without "
		        "a walk from the roots");
	err = w->ops->all(w->reader);
	if (!err)
		err = TAKE(r->err);
	if (err)
		return err;
	if (r->ncandidates)
		qsort(r->candidates, r->ncandidates, sizeof(*r->candidates), by_address);
	count_incoming(w);
	err = walk_candidates(w, only);
	r->ncandidates = 0;
	free(TAKE(r->candidates));
	return err ? err : TAKE(r->err);
}

/* What must be of one moment is read before others: it is short, and longer where a full machine takes turns. */
static void hurry(const struct heap_reading *r)
{
	if (r->nice)
		setpriority(PRIO_PROCESS, 0, HURRY);
}

/* To the process that is read. */
static void give_way(const struct heap_reading *r)
{
	if (getpriority(PRIO_PROCESS, 0) < r->nice)
		setpriority(PRIO_PROCESS, 0, r->nice);
}

static struct error *walk(const struct walk_of *w)
{
	bool walks = w->ops->object && (!w->ops->blocks_are_all || w->r->live),
	     counts = w->ops->blocks && (!w->ops->blocks_are_all || !w->r->live);
	struct error *err = NULL;

	if (walks)
		hurry(w->r);
	if (walks && w->ops->copied && w->process.pid)
		err = heap_copy_written(w->h, w->process.pid);
	if (!err && walks && w->ops->roots)
		err = w->ops->roots(w->reader);
	give_way(w->r);
	if (!err)
		err = TAKE(w->r->err);
	for (u32 rank = 0; !err && walks && rank < HEAP_RANKS; rank++)
		err = walk_rank(w, rank);
	w->r->nrefs = 0;
	free(TAKE(w->r->refs));
	if (!err && w->r->unreachable)
		return walk_unreachable(w, true);
	if (!err && w->r->references && !w->h->coarse && w->ops->leaks && w->ops->leaks(w->reader)) {
		w->r->unreachable = true;
		err = walk_unreachable(w, false);
		w->r->unreachable = false;
	}
	if (!walks)
		heap_cache_ahead(w->h->cache, true);
	if (!err && counts)
		err = w->ops->blocks(w->reader);
	return err ? err : TAKE(w->r->err);
}

/* The reader may refer to w->process. */
static struct error *open_reader(struct walk_of *w, void *instance, const struct runtime_process *p, bool *found)
{
	struct error *err;

	w->process = *p;
	w->process.memory = heap_cache_memory(w->h->cache);
	for (u32 i = 0; i < p->nmappings; i++)
		w->room += p->mappings[i].prot & PROT_READ ? p->mappings[i].end - p->mappings[i].start : 0;
	err = w->ops->open(instance, &w->process, w->h, &w->reader);
	*found = !err && w->reader;
	return err;
}

struct error *heap_read(struct heap *h, const struct runtime_heap_ops *ops, void *instance,
        const struct runtime_process *p, bool *found)
{
	struct walk_of w = {.h = h, .r = h->private, .ops = ops};
	struct error *err = open_reader(&w, instance, p, found);
	int nice = getpriority(PRIO_PROCESS, 0);

	if (!*found)
		return err;
	err = walk(&w);
	*found = !err;
	ops->close(w.reader);
	setpriority(PRIO_PROCESS, 0, nice); /* for the next reading, where it is allowed */
	return err;
}

struct error *heap_dump(struct heap *h, const struct runtime_heap_ops *ops, void *instance,
        const struct runtime_process *p, FILE *out, bool contents, bool *found, bool *moved)
{
	struct walk_of w = {.h = h, .r = h->private, .ops = ops};
	struct error *err = open_reader(&w, instance, p, found);

	if (!*found)
		return err;
	give_way(w.r);
	heap_cache_ahead(h->cache, true);
	err = ops->dump(w.reader, out, contents, moved);
	*found = !err;
	ops->close(w.reader);
	return err ? err : TAKE(w.r->err);
}
