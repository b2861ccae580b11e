/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_coarse.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "grow.h"
#include "heap_internal.h"

#define PIECE_BITS    20 /* of an address: its bits are in one allocation */
#define PIECE_BYTES   (1u << (PIECE_BITS - 6))
#define GROUPS_MAX    (1u << 20)
#define GROUP_BYTES   64 /* with its sum and its place in the table, twice as large as it is full */
#define WAS_BYTES     12
#define DEPTH_MAX     200
#define REPEATS       2            /* of label and type on one way; then it is the same node */
#define ALONE         (128u << 10) /* objects of so many bytes have nodes of their own: they are shown one by one */
#define ALONE_MAX     (1u << 16)
#define PENDING_STEP  (1u << 19)
#define PENDING_SHARE 8 /* of the memory */
#define PENDING_LEAST 1024
#define SLICE_SHARE   16
#define SLICE_MAX     (1u << 20)

struct heap_coarse {
	struct table pieces; /* from an address's piece to its bits */
	u64 npieces;
	u64 *bits; /* of the last piece */
	u64 piece;
	struct table groups; /* from key_of() to a node */
	u32 elsewhere;       /* a root for what has no group any more; 0: not yet */
	u32 nalone;
	struct heap_nodes was; /* the nodes before it was coarse: some are to be read yet. parents: see regroup() */
	u32 was_at;
	struct heap_pending *pending;
	u32 first, n, room;
	struct heap_rest *rests;
	u32 nrests;
};

struct heap_rest {
	struct heap_pending of;
	u64 skip;
};

u64 heap_coarse_bytes(const struct heap *h)
{
	const struct heap_coarse *c = h->coarse;

	return h->nodes.n * (u64)GROUP_BYTES + c->npieces * PIECE_BYTES + (u64)c->room * sizeof(*c->pending) +
	       c->was.n * (u64)WAS_BYTES;
}

/* --- what was found --- */

static u64 *bits_of(const struct heap_coarse *c, u64 piece)
{
	const u64 *known = piece == c->piece && c->bits ? NULL : table_get(&c->pieces, piece + 1);

	return piece == c->piece && c->bits ? c->bits : known ? (u64 *)*known : NULL;
}

bool heap_coarse_has(const struct heap *h, u64 addr)
{
	const u64 *bits = bits_of(h->coarse, addr >> PIECE_BITS);
	u64 i = (addr & ((1u << PIECE_BITS) - 1)) >> 3;

	return bits && bits[i / 64] >> (i % 64) & 1;
}

bool heap_coarse_mark(struct heap *h, u64 addr)
{
	struct heap_coarse *c = h->coarse;
	u64 *bits = bits_of(c, addr >> PIECE_BITS), i = (addr & ((1u << PIECE_BITS) - 1)) >> 3;
	struct error *err;

	if (!bits) {
		bits = heap_has_room(h, PIECE_BYTES) ? calloc(1, PIECE_BYTES) : NULL;
		h->counts.refused += !bits;
		if (!bits)
			return false;
		err = table_put(&c->pieces, (addr >> PIECE_BITS) + 1, (u64)bits);
		if (err) {
			free(bits);
			heap_fail(h, err);
			return false;
		}
		c->npieces++;
	}
	c->bits = bits;
	c->piece = addr >> PIECE_BITS;
	if (bits[i / 64] >> (i % 64) & 1)
		return false;
	bits[i / 64] |= 1ull << (i % 64);
	return true;
}

static u32 more_room(const struct heap_coarse *c)
{
	return c->room / 2 < PENDING_LEAST ? PENDING_LEAST : c->room / 2 > PENDING_STEP ? PENDING_STEP : c->room / 2;
}

bool heap_coarse_full(const struct heap *h)
{
	const struct heap_coarse *c = h->coarse;

	return c->room && c->n == c->room && !heap_has_room(h, more_room(c) * sizeof(*c->pending));
}

void heap_coarse_rest(struct heap *h, const struct heap_pending *p, u64 skip)
{
	struct heap_coarse *c = h->coarse;
	struct error *err = grow(&c->rests, c->nrests, sizeof(*c->rests));

	if (err)
		heap_fail(h, err);
	else
		c->rests[c->nrests++] = (struct heap_rest){*p, skip};
}

bool heap_coarse_take_rest(struct heap *h, struct heap_pending *p, u64 *skip)
{
	struct heap_coarse *c = h->coarse;

	if (!c->nrests)
		return false;
	*p = c->rests[--c->nrests].of;
	*skip = c->rests[c->nrests].skip;
	return true;
}

void heap_coarse_push(struct heap *h, u32 from, u32 label, u64 addr)
{
	struct heap_coarse *c = h->coarse;

	if (c->n == c->room) {
		u32 room = c->room + more_room(c);
		bool fits = heap_has_room(h, (room - c->room) * sizeof(*c->pending));
		struct heap_pending *pending = fits ? reallocarray(c->pending, room, sizeof(*pending)) : NULL;

		if (!pending) {
			h->counts.refused++;
			return;
		}
		c->pending = pending;
		c->room = room;
	}
	c->pending[c->n++] = (struct heap_pending){addr, from, label};
}

static bool is_pending(const struct heap_kind *kind)
{
	return !kind->type && !kind->size;
}

static u32 take_nodes(struct heap_coarse *c, u32 max, struct heap_pending *ret)
{
	struct heap_nodes *was = &c->was;
	u32 n = 0;

	for (; n < max && c->was_at < was->n; c->was_at++) {
		const struct heap_kind *kind = &was->kinds[was->kind_of[c->was_at]];
		u64 addr = heap_nodes_addr(was, c->was_at);

		if (addr && is_pending(kind))
			ret[n++] = (struct heap_pending){addr, was->parents[c->was_at], kind->label};
	}
	if (c->was_at == was->n)
		heap_nodes_free(was);
	return n;
}

u32 heap_coarse_take(struct heap *h, u32 max, struct heap_pending *ret)
{
	struct heap_coarse *c = h->coarse;
	u32 n = c->n - c->first < max ? c->n - c->first : max;
	u64 share = heap_reading(h)->room / PENDING_SHARE;
	bool last = n && ((c->n - c->first) * sizeof(*ret) > share || !heap_has_room(h, share));

	if (!last && c->was.n)
		return take_nodes(c, max, ret);
	if (n)
		memcpy(ret, c->pending + (last ? c->n - n : c->first), n * sizeof(*ret));
	if (last)
		c->n -= n;
	else
		c->first += n;
	if (c->first > c->n / 2) {
		c->n -= c->first;
		memmove(c->pending, c->pending + c->first, c->n * sizeof(*c->pending));
		c->first = 0;
	}
	return n;
}

/* --- groups --- */

static u64 key_of(u32 parent, const struct heap_kind *kind)
{
	return heap_key(heap_key((u64)parent << 32 | kind->label) + kind->type);
}

struct error *heap_coarse_added(struct heap *h)
{
	struct error *err = grow(&h->sums, h->nodes.n - 1, sizeof(*h->sums));

	if (!err)
		h->sums[h->nodes.n - 1] = (struct heap_sum){0};
	return err;
}

static u32 add(struct heap *h, u64 addr, u32 parent, const struct heap_kind *kind)
{
	struct error *err = heap_nodes_add(&h->nodes, addr, parent, kind);

	if (!err)
		err = heap_coarse_added(h);
	heap_fail(h, err);
	return err ? 0 : h->nodes.n - 1;
}

/* Where what is called so, and of this type, goes on below a node that has it above itself already. 0: it is new. */
static u32 repeated(const struct heap *h, u32 parent, const struct heap_kind *kind)
{
	u32 nearest = 0, times = 0, depth = 0;

	for (u32 i = parent; i && depth < DEPTH_MAX; i = h->nodes.parents[i], depth++) {
		const struct heap_kind *k = heap_kind(h, i);

		if (k->label != kind->label || k->type != kind->type)
			continue;
		nearest = nearest ? nearest : i;
		if (++times == REPEATS)
			return nearest;
	}
	return depth < DEPTH_MAX ? 0 : nearest;
}

static bool has_group_room(const struct heap *h, u32 parent)
{
	u32 depth = 0;

	while (parent && depth < DEPTH_MAX) {
		parent = h->nodes.parents[parent];
		depth++;
	}
	return depth < DEPTH_MAX && h->nodes.n < GROUPS_MAX && heap_has_room(h, GROUP_BYTES);
}

/* The node of an object that `parent` refers to. */
static u32 group(struct heap *h, u32 parent, const struct heap_kind *kind)
{
	struct heap_coarse *c = h->coarse;
	u64 key = key_of(parent, kind);
	const u64 *known = table_get(&c->groups, key);
	struct error *err;
	u32 ret;

	if (known)
		return (u32)*known;
	ret = repeated(h, parent, kind);
	if (!ret && parent != c->elsewhere && !has_group_room(h, parent)) {
		if (!c->elsewhere)
			c->elsewhere = heap_reading(h)->root_nodes[heap_root(h, 0, HEAP_RUNTIME, "(elsewhere)")];
		return group(h, c->elsewhere, &(struct heap_kind){.type = kind->type});
	}
	if (!ret)
		ret = add(h, 0, parent, kind);
	err = ret ? table_put(&c->groups, key, ret) : NULL;
	heap_fail(h, err);
	return ret;
}

u32 heap_coarse_count(struct heap *h, const struct heap_pending *p, u32 type, u64 size)
{
	struct heap_coarse *c = h->coarse;
	struct heap_kind kind = {.type = type, .label = p->label};
	u32 ret = group(h, p->from, &kind), to = ret;

	if (ret && p->addr && size >= ALONE && c->nalone < ALONE_MAX) {
		kind = *heap_kind(h, ret);
		to = add(h, p->addr, h->nodes.parents[ret], &kind);
		c->nalone++;
	}
	if (to) {
		h->sums[to].count++;
		h->sums[to].bytes += size;
	}
	return ret;
}

/* --- from nodes to groups --- */

/*
 * What a node is called now takes the place of its parent, which is before it; if it is to be read yet, what its parent
 * is called now.
 */
static void regroup(struct heap *h, struct heap_nodes *was)
{
	u32 n = was->n;

	for (u32 i = 0; i < n && !heap_reading(h)->err; i++) {
		struct heap_kind kind = was->kinds[was->kind_of[i]];
		u32 parent = i ? was->parents[was->parents[i]] : 0;
		u64 addr = heap_nodes_addr(was, i);

		was->parents[i] = 0;
		if (kind.type == HEAP_ROOT_TYPE)
			was->parents[i] = add(h, 0, parent, &kind);
		else if (addr && !heap_coarse_mark(h, addr))
			continue;
		else if (kind.type)
			was->parents[i] = heap_coarse_count(
			        h, &(struct heap_pending){addr, parent, kind.label}, kind.type, kind.size);
		else if (addr && is_pending(&kind))
			was->parents[i] = parent;
	}
}

struct error *heap_coarse_begin(struct heap *h, u32 *from)
{
	struct heap_reading *r = heap_reading(h);
	struct heap_nodes *was;
	u32 nroots = r->nroots;

	h->coarse = calloc(1, sizeof(*h->coarse));
	if (!h->coarse)
		return &error_no_memory;
	was = &h->coarse->was;
	*was = h->nodes;
	h->nodes = (struct heap_nodes){0};
	heap_nodes_end(was);
	heap_edges_free(&h->edges);
	table_free(&h->moved);
	free(TAKE(h->ways));
	h->nways = 0;
	h->first = 1;
	r->first_of_rank = r->nsoon = 0;
	r->slice = r->room / SLICE_SHARE / sizeof(*r->found) < SLICE_MAX
	                   ? (u32)(r->room / SLICE_SHARE / sizeof(*r->found))
	                   : SLICE_MAX;
	regroup(h, was);
	for (u32 i = 0; i < nroots && !r->err; i++)
		r->root_nodes[i] = was->parents[r->root_nodes[i]];
	for (u32 i = 0; i < h->ntallies && !r->err; i++)
		h->tallies[i].root = was->parents[h->tallies[i].root];
	if (from && !r->err)
		*from = was->parents[*from];
	return r->err ? TAKE(r->err) : NULL;
}

void heap_coarse_free(struct heap_coarse *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->pieces.capacity; i++)
		if (c->pieces.entries[i].key)
			free((void *)c->pieces.entries[i].value);
	table_free(&c->pieces);
	table_free(&c->groups);
	heap_nodes_free(&c->was);
	free(c->pending);
	free(c->rests);
	free(c);
}
