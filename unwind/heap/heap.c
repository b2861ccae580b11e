/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a heap: labels, types, roots. */
#include "heap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "binary/maps.h"
#include "cleanup.h"
#include "grow.h"
#include "heap_cache.h"
#include "heap_coarse.h"
#include "heap_dominators.h"
#include "heap_internal.h"

#define FORGET_BYTES    64
#define LABELS_MAX      (1u << 20)
#define TYPES_MAX       (1u << 20)
#define ROOTS_MAX       (1u << 20)
#define REFS_MAX        (1u << 26) /* of one object */
#define NOTES_MAX       64
#define LIST_MAX        (1u << 27)                     /* objects of a collector's list */
#define CACHE_SHARE     8                              /* of the memory, for blocks */
#define COPY_SHARE      2                              /* of what is left of it, for copies */
#define CACHE_MAX       (64ull << 20)                  /* more was not faster */
#define COPIES          2                              /* the last takes half the time: its pages are there by then */
#define SIZE_MOST       (1ull << 43)                   /* of an object: sums are below 2^64 */
#define EDGE_BYTES      4                              /* turned */
#define CANDIDATE_BYTES (2 * sizeof(struct candidate)) /* to sort them */
#define NODES_MAX       0x7fffffffu
#define MOVES_MAX       64 /* of one object */
#define EACH_BYTES      64 /* at most, of an object that is found: a node, a reference, a kind */

/* --- nodes --- */

bool heap_has(const struct heap *h, u64 addr)
{
	return h->coarse ? heap_coarse_has(h, addr) : heap_nodes_find(&h->nodes, addr);
}

static u64 used_bytes(const struct heap *h, u64 nodes)
{
	const struct heap_reading *r = heap_reading(h);

	return heap_nodes_bytes(&h->nodes, nodes) + heap_cache_kept(h->cache) + (h->coarse ? heap_coarse_bytes(h) : 0) +
	       h->edges.bytes + h->edges.n * EDGE_BYTES + h->nways * sizeof(*h->ways) +
	       r->ncandidates * (u64)CANDIDATE_BYTES +
	       ((u64)r->nrefs + (h->coarse ? r->slice : r->nfound)) * sizeof(*r->refs) + r->nsoon * sizeof(*r->soon);
}

bool heap_has_room(const struct heap *h, u64 bytes)
{
	return used_bytes(h, 0) + bytes <= heap_reading(h)->room;
}

/* 0: no room. Roots are few, and always have some. */
static u32 add_node(struct heap *h, u64 addr, u32 parent, const struct heap_kind *kind)
{
	bool fits = kind->type == HEAP_ROOT_TYPE || used_bytes(h, 1) <= heap_reading(h)->room;
	struct error *err;

	if (!fits || h->nodes.n >= NODES_MAX) {
		h->counts.refused++;
		return 0;
	}
	err = heap_nodes_add(&h->nodes, addr, parent, kind);
	if (!err && h->coarse)
		err = heap_coarse_added(h);
	heap_fail(h, err);
	return err ? 0 : h->nodes.n - 1;
}

u32 heap_now(const struct heap *h, u32 node)
{
	const u64 *to;

	for (u32 i = 0; i < MOVES_MAX && h->moved.capacity && (to = table_get(&h->moved, node)); i++)
		node = (u32)*to;
	return node;
}

u32 heap_discover(struct heap *h, u64 addr, u32 parent, u32 label, bool *fresh)
{
	u32 node = heap_nodes_find(&h->nodes, addr);

	*fresh = false;
	if (node)
		return node;
	node = add_node(h, addr, parent, &(struct heap_kind){.label = label});
	*fresh = node;
	return node;
}

bool heap_describe(struct heap *h, u32 node, u32 type, u64 size)
{
	struct heap_kind kind = {size < SIZE_MOST ? size : SIZE_MOST, type, heap_kind(h, node)->label};
	struct error *err = used_bytes(h, 0) <= heap_reading(h)->room ? heap_nodes_set(&h->nodes, node, &kind) : NULL;

	heap_fail(h, err);
	h->counts.refused += heap_kind(h, node)->type != type;
	return heap_kind(h, node)->type == type;
}

/* --- what a runtime calls --- */

static const char *name_of(struct heap *h, const char *text)
{
	const char *ret = "";
	struct error *err = string_pool_add(&heap_reading(h)->names, text, &ret);

	heap_fail(h, err);
	return ret;
}

u32 heap_label(struct heap *h, const char *text)
{
	struct heap_reading *r = heap_reading(h);
	const char *name = *text ? name_of(h, text) : "";
	const u64 *known = *name ? table_get(&r->labels, heap_key((u64)name)) : NULL;
	struct error *err;

	if (known)
		return (u32)*known;
	if (!*name || r->nlabels >= LABELS_MAX)
		return HEAP_ANY;
	err = grow(&r->label_texts, r->nlabels, sizeof(*r->label_texts));
	if (!err)
		err = table_put(&r->labels, heap_key((u64)name), r->nlabels);
	if (err) {
		heap_fail(h, err);
		return HEAP_ANY;
	}
	r->label_texts[r->nlabels] = name;
	return r->nlabels++;
}

const char *heap_label_text(const struct heap *h, u32 label)
{
	const struct heap_reading *r = heap_reading(h);

	label &= ~HEAP_FLAGS;
	return label < r->nlabels ? r->label_texts[label] : "";
}

u32 heap_type(struct heap *h, u64 key, const char *name)
{
	struct heap_reading *r = heap_reading(h);
	const u64 *known = table_get(&r->types, heap_key(key));
	struct error *err;

	if (known)
		return (u32)*known;
	if (!name || h->ntypes >= TYPES_MAX)
		return 0;
	err = grow(&h->types, h->ntypes, sizeof(*h->types));
	if (!err)
		err = table_put(&r->types, heap_key(key), h->ntypes);
	if (err) {
		heap_fail(h, err);
		return 0;
	}
	h->types[h->ntypes] = (struct heap_type){.name = name_of(h, name)};
	return h->ntypes++;
}

const char *heap_type_name(const struct heap *h, u32 type)
{
	return type < h->ntypes ? h->types[type].name : "";
}

u32 heap_root(struct heap *h, u32 parent, enum heap_rank rank, const char *name)
{
	struct heap_reading *r = heap_reading(h);
	u32 label = heap_label(h, name), above = parent < r->nroots ? r->root_nodes[parent] : 0, node;
	u64 key = heap_key((u64)parent << 32 | label);
	const u64 *known = table_get(&r->roots, key);
	struct error *err = NULL;

	if (known)
		return (u32)*known;
	if (r->nroots >= ROOTS_MAX)
		return 0;
	node = add_node(h, 0, above, &(struct heap_kind){.type = HEAP_ROOT_TYPE, .label = label});
	err = node || !r->nroots ? grow(&r->root_nodes, r->nroots, sizeof(*r->root_nodes)) : &error_no_memory;
	if (!err)
		err = grow(&r->ranks, r->nroots, sizeof(*r->ranks));
	if (!err)
		err = table_put(&r->roots, key, r->nroots);
	if (err) {
		heap_fail(h, err);
		return 0;
	}
	r->root_nodes[r->nroots] = node;
	above = parent < r->nroots ? r->ranks[parent] : 0;
	r->ranks[r->nroots] = (u8)(rank < above ? above : rank);
	return r->nroots++;
}

void heap_root_ref(struct heap *h, u32 root, u32 label, u64 addr)
{
	struct heap_reading *r = heap_reading(h);
	struct error *err = addr && root < r->nroots ? grow(&r->refs, r->nrefs, sizeof(*r->refs)) : NULL;

	if (err)
		heap_fail(h, err);
	else if (addr && root < r->nroots)
		r->refs[r->nrefs++] = (struct root_ref){.node = root, .label = label, .addr = addr};
}

void heap_each_root_ref(struct heap *h, void (*each)(void *ctx, const char *top, u32 label, u64 addr), void *ctx)
{
	struct heap_reading *r = heap_reading(h);

	for (u32 i = 0; i < r->nrefs; i++) {
		u32 node = r->root_nodes[r->refs[i].node];

		while (h->nodes.parents[node])
			node = h->nodes.parents[node];
		each(ctx, heap_label_text(h, heap_kind(h, node)->label), r->refs[i].label, r->refs[i].addr);
		r->nfound = 0;
	}
}

void heap_ref(struct heap *h, u32 label, u64 addr)
{
	struct heap_reading *r = heap_reading(h);

	if (!addr || r->nfound >= REFS_MAX)
		return;
	if (h->coarse && (r->seen++ < r->skip || r->nfound >= r->slice)) {
		r->more |= r->nfound >= r->slice;
		return;
	}
	if (r->nfound == r->found_room) {
		u32 room = r->found_room ? 2 * r->found_room : 1024;
		bool fits = h->coarse || room <= HEAP_FOUND_KEPT ||
		            heap_has_room(h, (room - r->nfound) * sizeof(*r->found));
		struct root_ref *found = fits ? reallocarray(r->found, room, sizeof(*found)) : NULL;

		if (!fits && !r->unreachable) { /* the object that is being read is read again */
			heap_fail(h, heap_coarse_begin(h, NULL));
			return;
		}
		if (!fits) {
			h->counts.refused++;
			return;
		}
		if (!found) {
			heap_fail(h, &error_no_memory);
			return;
		}
		r->found = found;
		r->found_room = room;
	}
	r->found[r->nfound++] = (struct root_ref){.label = label, .addr = addr};
}

bool heap_fits_on(struct heap *h, u32 *node)
{
	struct heap_reading *r = heap_reading(h);
	struct error *err;

	if (h->coarse || r->unreachable || heap_has_room(h, EACH_BYTES))
		return true;
	if (heap_cache_kept(h->cache)) {
		heap_cache_release(h->cache);
		return heap_fits_on(h, node);
	}
	err = heap_coarse_begin(h, node);
	heap_fail(h, err);
	return !err;
}

void heap_block(struct heap *h, u32 root, u64 addr, u32 type, u64 size)
{
	struct heap_reading *r = heap_reading(h);
	u32 node = root < r->nroots ? r->root_nodes[root] : 0;
	bool fresh;

	if (!heap_fits_on(h, &node))
		return;
	if (h->coarse) {
		if (!addr || heap_coarse_mark(h, addr))
			heap_coarse_count(h, &(struct heap_pending){addr, node, HEAP_ANY}, type, size);
		return;
	}
	if (!addr) {
		add_node(h, 0, node, &(struct heap_kind){.type = type, .size = size < SIZE_MOST ? size : SIZE_MOST});
		return;
	}
	node = heap_discover(h, addr, node, HEAP_ANY, &fresh);
	if (node && !heap_kind(h, node)->type)
		heap_describe(h, node, type, size);
}

void heap_count(struct heap *h, u32 root, u32 type, u64 count, u64 bytes)
{
	struct heap_reading *r = heap_reading(h);
	struct error *err = grow(&h->tallies, h->ntallies, sizeof(*h->tallies));

	if (err)
		heap_fail(h, err);
	else if (count && type && type < h->ntypes)
		h->tallies[h->ntallies++] =
		        (struct heap_tally){root < r->nroots ? r->root_nodes[root] : 0, type, count, bytes};
}

void heap_torn(struct heap *h)
{
	h->counts.torn++;
}

void heap_candidate(struct heap *h, u64 addr, u64 count)
{
	struct heap_reading *r = heap_reading(h);
	struct error *err;

	if (!addr || heap_has(h, addr))
		return;
	if (!heap_has_room(h, CANDIDATE_BYTES))
		heap_cache_release(h->cache);
	if (!heap_has_room(h, CANDIDATE_BYTES)) {
		h->counts.refused++;
		return;
	}
	err = grow(&r->candidates, r->ncandidates, sizeof(*r->candidates));
	if (err)
		heap_fail(h, err);
	else
		r->candidates[r->ncandidates++] = (struct candidate){.addr = addr, .count = count};
}

/* What the list has from first on, up to something else. Is the member among it? */
static bool follow_list(
        struct heap *h, u64 first, u32 size, u64 member, bool (*is_object)(void *ctx, u64 addr), void *ctx, bool add)
{
	bool found = false;
	u64 at = first;

	for (u32 i = 0; i < LIST_MAX && at && !(at & 7) && is_object(ctx, at) && (add || !found); i++) {
		const u8 *bytes = heap_bytes(h, at, size);

		found |= at == member;
		if (add)
			heap_candidate(h, at, 0);
		at = 0;
		if (bytes)
			memcpy(&at, bytes, size);
		if (at == first)
			break;
	}
	return found;
}

bool heap_candidate_list(
        struct heap *h, u64 begin, u64 end, u32 size, u64 member, bool (*is_object)(void *ctx, u64 addr), void *ctx)
{
	for (u64 at = begin; size <= 8 && at + size <= end; at += size) {
		const u8 *bytes = heap_bytes(h, at, size);
		u64 first = 0;

		if (bytes)
			memcpy(&first, bytes, size);
		if (first && first != member && follow_list(h, first, size, member, is_object, ctx, false))
			return follow_list(h, first, size, member, is_object, ctx, true);
	}
	return false;
}

void heap_live_only(struct heap *h)
{
	heap_reading(h)->live = true;
}

void heap_note(struct heap *h, const char *text)
{
	struct heap_reading *r = heap_reading(h);
	struct error *err;

	for (u32 i = 0; i < r->nnotes; i++)
		if (!strcmp(r->notes[i].text, text)) {
			r->notes[i].n++;
			return;
		}
	if (r->nnotes >= NOTES_MAX)
		return;
	err = grow(&r->notes, r->nnotes, sizeof(*r->notes));
	if (!err) {
		r->notes[r->nnotes] = (struct note){.text = strdup(text), .n = 1};
		err = r->notes[r->nnotes].text ? NULL : &error_no_memory;
	}
	if (err)
		heap_fail(h, err);
	else
		r->nnotes++;
}

void heap_each_note(const struct heap *h, void (*put)(void *ctx, const char *text, u64 n), void *ctx)
{
	for (u32 i = 0; i < heap_reading(h)->nnotes; i++)
		put(ctx, heap_reading(h)->notes[i].text, heap_reading(h)->notes[i].n);
}

const void *heap_bytes(struct heap *h, u64 addr, u32 size)
{
	return heap_cache_bytes(h->cache, addr, size);
}

struct memory *heap_memory_now(const struct heap *h)
{
	return heap_cache_below(h->cache);
}

void heap_forget(struct heap *h)
{
	heap_cache_forget_all(h->cache);
}

u64 heap_copy_room(const struct heap *h)
{
	return heap_reading(h)->room / COPY_SHARE;
}

bool heap_copy(struct heap *h, const struct heap_stretch *stretches, u32 n)
{
	u64 bytes = heap_cache_kept(h->cache);
	bool fits;

	for (u32 i = 0; i < n; i++)
		bytes += stretches[i].end - stretches[i].start;
	fits = bytes <= heap_copy_room(h) && heap_cache_keep(h->cache, stretches, n);
	if (!fits)
		heap_cache_release(h->cache);
	return fits;
}

struct error *heap_copy_written(struct heap *h, pid_t pid)
{
	cleanup(free) struct heap_stretch *stretches = NULL;
	struct maps maps;
	struct error *err = maps_read(pid, &maps);
	u32 some = 0;

	if (err)
		return err;
	for (u32 i = 0; !err && i < maps.nlines; i++)
		if (maps.lines[i].prot & PROT_WRITE)
			err = heap_cache_held(h->cache, maps.lines[i].start, maps.lines[i].end, &stretches, &some);
	maps_free(&maps);
	for (u32 i = 0; !err && i < COPIES && heap_copy(h, stretches, some); i++)
		;
	return err;
}

double heap_copy_changed(const struct heap *h)
{
	return heap_cache_changed(h->cache);
}

void heap_uncopy(struct heap *h)
{
	heap_reading(h)->nrefs = 0;
	heap_cache_release(h->cache);
	heap_cache_forget_all(h->cache);
}

void heap_forget_at(struct heap *h, u64 addr)
{
	heap_cache_forget(h->cache, addr, FORGET_BYTES);
}

u32 heap_found(const struct heap *h)
{
	return h->nodes.n;
}

u32 heap_number(const struct heap *h)
{
	return heap_reading(h)->number;
}

/* --- life --- */

static struct error *set_up(struct heap *h, struct memory *memory, pid_t pid, const struct heap_options *o)
{
	static const char *const labels[HEAP_LABELS] = {
	        [HEAP_ANY] = "", [HEAP_ITEM] = "[]", [HEAP_ENTRY] = "{}", [HEAP_KEY] = "{key}"};
	struct heap_reading *r = heap_reading(h);
	u64 cache = o->memory / CACHE_SHARE < CACHE_MAX ? o->memory / CACHE_SHARE : CACHE_MAX;
	struct error *err = heap_cache_create(memory, pid, cache, &h->cache);

	r->references = o->references;
	r->ways = o->ways;
	r->live = o->live || o->references;
	r->unreachable = o->unreachable;
	r->nice = o->nice;
	h->first = 1;
	r->room = o->memory - cache;
	if (!err)
		err = grow(&r->label_texts, 0, sizeof(*r->label_texts));
	if (!err)
		err = grow(&h->types, 0, sizeof(*h->types));
	if (err)
		return err;
	r->label_texts[0] = "";
	r->nlabels = 1;
	for (u32 i = 1; i < HEAP_LABELS; i++)
		heap_label(h, labels[i]);
	h->types[0] = (struct heap_type){.name = "?"};
	h->ntypes = 1;
	heap_root(h, 0, HEAP_LASTING, "");
	return r->err ? TAKE(r->err) : NULL;
}

struct error *heap_create(struct memory *memory, pid_t pid, const struct heap_options *o, struct heap **ret)
{
	struct heap *h = calloc(1, sizeof(*h));
	struct error *err = h ? NULL : &error_no_memory;

	*ret = NULL;
	if (!err)
		h->private = calloc(1, sizeof(struct heap_reading));
	if (!err)
		err = h->private ? set_up(h, memory, pid, o) : &error_no_memory;
	if (err)
		heap_destroy(h);
	else
		*ret = h;
	return err;
}

static void reading_free(struct heap_reading *r)
{
	if (!r)
		return;
	for (u32 i = 0; i < r->nnotes; i++)
		free(r->notes[i].text);
	free(r->notes);
	string_pool_free(&r->names);
	table_free(&r->labels);
	table_free(&r->types);
	table_free(&r->roots);
	free(r->label_texts);
	free(r->ranks);
	free(r->root_nodes);
	free(r->refs);
	free(r->found);
	free(r->soon);
	free(r->candidates);
	error_free(r->err);
	free(r);
}

void heap_destroy(struct heap *h)
{
	if (!h)
		return;
	heap_cache_destroy(h->cache);
	reading_free(h->private);
	heap_nodes_free(&h->nodes);
	heap_edges_free(&h->edges);
	free(h->ways);
	table_free(&h->moved);
	heap_coarse_free(h->coarse);
	free(h->sums);
	free(h->dominators);
	free(h->incoming);
	free(h->others);
	free(h->types);
	free(h->tallies);
	free(h);
}

/* --- results --- */

void heap_end(struct heap *h)
{
	struct heap_reading *r = heap_reading(h);

	heap_nodes_end(&h->nodes);
	free(TAKE(r->found));
	r->found_room = 0;
	heap_cache_destroy(TAKE(h->cache));
}

/* References lead to where objects are in the end. */
static struct error *settle_moved(struct heap *h)
{
	struct heap_edges was = h->edges;
	struct heap_edges_at at = {0};
	struct heap_edge edge;
	struct error *err = NULL;

	if (!h->moved.capacity)
		return NULL;
	for (u64 i = 0; i < h->nways; i++)
		h->ways[i].to = heap_now(h, h->ways[i].to);
	h->edges = (struct heap_edges){0};
	while (!err && heap_edges_take(&was, &at, &edge)) {
		edge.to = heap_now(h, edge.to);
		err = edge.from == edge.to ? NULL : heap_edges_add(&h->edges, edge.from, edge.to);
	}
	heap_edges_free(&was);
	return err;
}

struct error *heap_settle(struct heap *h)
{
	struct error *err = settle_moved(h);
	struct heap_dominance d;

	heap_end(h);
	if (err)
		return err;
	if (h->coarse) {
		h->dominators = calloc(h->nodes.n, sizeof(*h->dominators));
		h->incoming = calloc(h->nodes.n, sizeof(*h->incoming));
		if (!h->dominators || !h->incoming)
			return &error_no_memory;
		memcpy(h->dominators, h->nodes.parents, h->nodes.n * sizeof(*h->dominators));
		return NULL;
	}
	err = heap_dominators(h->nodes.parents, h->nodes.n, &h->edges, HEAP_PATIENCE, &d);
	h->dominators = d.dominators;
	h->incoming = d.incoming;
	h->others = d.others;
	return err;
}

struct error *heap_retained(const struct heap *h, u64 **ret)
{
	*ret = calloc((size_t)h->nodes.n + 1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	for (u32 i = h->nodes.n; i-- > 0;) {
		(*ret)[i] += heap_size_of(h, i);
		if (i)
			(*ret)[h->dominators[i]] += (*ret)[i];
	}
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	const struct heap_total *x = a, *y = b;

	return (x->type > y->type) - (x->type < y->type);
}

static int largest_first(const void *a, const void *b)
{
	const struct heap_total *x = a, *y = b;

	if (x->bytes != y->bytes)
		return (x->bytes < y->bytes) - (x->bytes > y->bytes);
	return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : strcmp(x->type, y->type);
}

struct error *heap_totals(const struct heap *h, struct heap_total **ret, u32 *n)
{
	struct heap_total *all = calloc(h->ntypes + 1, sizeof(*all));
	u32 kept = 0;

	*ret = all;
	*n = 0;
	if (!all)
		return &error_no_memory;
	for (u32 i = 0; i < h->ntypes; i++)
		all[i].type = h->types[i].name;
	for (u32 i = 0; i < h->nodes.n; i++)
		if (heap_is_object(h, i)) {
			all[heap_kind(h, i)->type].count += heap_count_of(h, i);
			all[heap_kind(h, i)->type].bytes += heap_size_of(h, i);
		}
	for (u32 i = 0; i < h->ntallies; i++) {
		all[h->tallies[i].type].count += h->tallies[i].count;
		all[h->tallies[i].type].bytes += h->tallies[i].bytes;
	}
	qsort(all, h->ntypes, sizeof(*all), by_name);
	for (u32 i = 0; i < h->ntypes; i++) {
		if (!all[i].count)
			continue;
		if (kept && all[kept - 1].type == all[i].type) {
			all[kept - 1].count += all[i].count;
			all[kept - 1].bytes += all[i].bytes;
		} else {
			all[kept++] = all[i];
		}
	}
	qsort(all, kept, sizeof(*all), largest_first);
	*n = kept;
	return NULL;
}

/* --- the largest --- */

struct large {
	u64 bytes;
	u32 node;
};

static bool is_above(const struct large *a, const struct large *b)
{
	return a->bytes != b->bytes ? a->bytes > b->bytes : a->node < b->node;
}

/* all[0] is the least of n: something below it is above one of its children, and so on down. */
static void sink(struct large *all, u32 n)
{
	for (u32 i = 0, least; (least = 2 * i + 1) < n; i = least) {
		struct large moved = all[i];

		if (least + 1 < n && is_above(&all[least], &all[least + 1]))
			least++;
		if (!is_above(&moved, &all[least]))
			return;
		all[i] = all[least];
		all[least] = moved;
	}
}

static int above_first(const void *a, const void *b)
{
	return is_above(a, b) ? -1 : 1;
}

struct error *heap_largest(const struct heap *h, u32 n, u32 **ret, u32 *found)
{
	cleanup(free) struct large *all = calloc((size_t)n + 1, sizeof(*all));

	*found = 0;
	*ret = calloc((size_t)n + 1, sizeof(**ret));
	if (!all || !*ret)
		return &error_no_memory;
	for (u32 i = h->first; n && i < h->nodes.n; i++) {
		struct large it = {heap_size_of(h, i), i};

		if (!heap_is_object(h, i) || (h->coarse && !heap_addr(h, i)) ||
		        (all[0].node && !is_above(&it, &all[0])))
			continue;
		all[0] = it; /* the first ones take the place of empty ones, which are below all others */
		sink(all, n);
	}
	qsort(all, n, sizeof(*all), above_first);
	while (*found < n && all[*found].node) {
		(*ret)[*found] = all[*found].node;
		(*found)++;
	}
	return NULL;
}
