/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_draw.h"

#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "grow.h"
#include "heap_dominators.h"
#include "table.h"

#define NAME_BYTES   512
#define DEPTH_MAX    500
#define SHARED_EXACT 9   /* paths, up to which their number is told */
#define SHARED_STEPS 32  /* to what is shared */
#define NAMED_SHARE  100 /* a box of 1/100 of the heap says who else leads there */
#define PERIOD_MAX   3   /* types that repeat in turn */

struct drawing {
	const struct heap *h;
	struct profile *p;
	struct table functions; /* from what function_of() asks for to its number + 1 */
	u16 *depths;            /* of the profile's nodes */
	u32 ndepths;
	struct table shared; /* from others_key() to the bytes that such nodes keep alive */
	u64 least;           /* of these, for their box to have a name of its own */
};

static u64 mix(u64 key)
{
	key *= 0x9e3779b97f4a7c15ull;
	return key ^ key >> 31;
}

/* "field: type", or what is known of it. */
static void node_text(const struct heap *h, u32 node, bool label, char *ret, size_t size)
{
	const struct heap_kind *kind = heap_kind(h, node);
	const char *name = label ? heap_label_text(h, kind->label) : "";

	if (heap_is_root(h, node))
		snprintf(ret, size, "%s", heap_label_text(h, kind->label));
	else
		snprintf(ret, size, "%s%s%s%s", name, label && kind->label & HEAP_MAYBE ? "?" : "", *name ? ": " : "",
		        h->types[kind->type].name);
}

static struct error *function_of(struct drawing *d, u64 key, enum profile_kind kind, const char *name, u32 *ret)
{
	struct profile_function fn = {.name = name, .kind = kind};
	struct error *err = profile_function(d->p, 0, &fn, false, ret);

	return err ? err : table_put(&d->functions, mix(key), *ret + 1ull);
}

/* The box of a node: its label and its type. */
static struct error *box_of(struct drawing *d, u32 node, bool label, u32 *ret)
{
	const struct heap_kind *kind = heap_kind(d->h, node);
	u64 key = (label ? (u64)(kind->label & ~HEAP_PART) : 0) | (u64)kind->type << 32;
	const u64 *known = table_get(&d->functions, mix(key + 1));
	char name[NAME_BYTES];

	if (known) {
		*ret = (u32)(*known - 1);
		return NULL;
	}
	node_text(d->h, node, label, name, sizeof(name));
	return function_of(d, key + 1, heap_is_root(d->h, node) ? KIND_MEMORY : KIND_CLASS, name, ret);
}

static u32 paths_to(const struct heap *h, u32 node)
{
	u32 n = h->incoming[node] + 1u;

	return n > SHARED_EXACT ? SHARED_EXACT + 1 : n;
}

/* Where another way to it than the one that is drawn begins, below its dominator; 0: not known. */
static u32 other_way(const struct heap *h, u32 node)
{
	u32 ret = 0;

	for (u32 i = h->others ? h->others[node] : 0, n = 0; i && i != h->dominators[node] && n < HEAP_BRANCH_STEPS;
	        n++) {
		ret = heap_kind(h, i)->label & HEAP_PART ? ret : i;
		i = h->dominators[i];
	}
	return ret;
}

/* What has the same box, if it is named by who else leads there. 0: it is not. */
static u64 others_key(const struct heap *h, u32 node)
{
	u32 paths = paths_to(h, node), other = paths > SHARED_EXACT ? 0 : other_way(h, node);

	return other ? mix((u64)paths << 32 | h->nodes.kind_of[other]) : 0;
}

static struct error *shared_box(struct drawing *d, u32 node, u32 *ret)
{
	u32 paths = paths_to(d->h, node);
	u64 key = others_key(d->h, node), *kept = key ? table_get(&d->shared, key) : NULL, *known;
	bool named = kept && *kept >= d->least;
	char name[NAME_BYTES + 64], by[NAME_BYTES] = "";

	key = named ? key : (u64)UINT32_MAX << 32 | 0xffffff00u | paths;
	known = table_get(&d->functions, mix(key));
	if (known) {
		*ret = (u32)(*known - 1);
		return NULL;
	}
	if (named)
		node_text(d->h, other_way(d->h, node), true, by, sizeof(by));
	snprintf(name, sizeof(name), "shared by %u paths%s%s%s", paths, paths > SHARED_EXACT ? " or more" : "",
	        *by ? ", also " : "", by);
	return function_of(d, key, KIND_MEMORY, name, ret);
}

/* Names of who else leads there are for what is large: else there would be thousands of them. */
static struct error *weigh_shared(struct drawing *d)
{
	const struct heap *h = d->h;
	cleanup(free) float *kept = calloc((size_t)h->nodes.n + 1, sizeof(*kept));
	struct error *err = kept ? NULL : &error_no_memory;

	for (u32 i = err ? 0 : h->nodes.n; i-- > h->first && !err;) {
		u64 key = h->nodes.parents[i] == h->dominators[i] ? 0 : others_key(h, i), *sum;

		kept[i] += (float)heap_size_of(h, i);
		kept[h->dominators[i]] += kept[i];
		sum = key ? table_get(&d->shared, key) : NULL;
		if (sum)
			*sum += (u64)kept[i];
		else if (key)
			err = table_put(&d->shared, key, (u64)kept[i]);
	}
	d->least = err ? 0 : (u64)(kept[0] / NAMED_SHARE);
	return err;
}

static struct error *child(struct drawing *d, u32 *at, u32 function)
{
	u16 depth = *at < d->ndepths ? d->depths[*at] : 0;
	struct error *err;

	if (depth >= DEPTH_MAX)
		return NULL;
	err = profile_child(d->p, *at, function, at);
	while (!err && d->ndepths <= *at) {
		err = grow(&d->depths, d->ndepths, sizeof(*d->depths));
		if (!err)
			d->depths[d->ndepths++] = 0;
	}
	if (!err)
		d->depths[*at] = depth + 1;
	return err;
}

static u32 above(const struct profile *p, u32 node, u32 n)
{
	while (n--)
		node = p->nodes[node].parent;
	return node;
}

/* Where a function repeats what is above it, the second time in a row: back to where it was. */
static bool folds(const struct profile *p, u32 *at, u32 function)
{
	for (u32 period = 1; period <= PERIOD_MAX; period++) {
		u32 same = above(p, *at, period - 1);
		bool repeats = same && p->nodes[same].function == function;

		for (u32 i = 0; repeats && i < period; i++)
			repeats = p->nodes[above(p, *at, i)].function == p->nodes[above(p, *at, i + period)].function;
		if (repeats) {
			*at = same;
			return true;
		}
	}
	return false;
}

/* Boxes of the last steps of the way by which a node was found first: from what is below `top` to the node. */
static struct error *draw_first_way(struct drawing *d, u32 top, u32 node, u32 steps, u32 *at)
{
	cleanup(free) u32 *nodes = NULL;
	struct error *err = NULL;
	u32 n = 0, function;

	for (u32 i = node; !err && i != top && steps--; i = d->h->nodes.parents[i]) {
		err = grow(&nodes, n, sizeof(*nodes));
		if (!err && !(heap_kind(d->h, i)->label & HEAP_PART))
			nodes[n++] = i;
	}
	while (!err && n) {
		err = box_of(d, nodes[--n], true, &function);
		if (!err && !folds(d->p, at, function))
			err = child(d, at, function);
	}
	return err;
}

/*
 * The node of the profile that a node of the heap is drawn in, from its dominator's. parent_at: that of who found it. A
 * part that others of one thing refer to, too, as in a list that is linked both ways, is of that thing, not shared.
 */
static struct error *place(struct drawing *d, u32 node, u32 parent_at, u32 *at)
{
	const struct heap *h = d->h;
	struct error *err = NULL;
	u32 function;

	if (parent_at == *at && (heap_kind(h, node)->label & HEAP_PART))
		return NULL;
	if (h->nodes.parents[node] != h->dominators[node]) {
		err = shared_box(d, node, &function);
		if (!err && d->p->nodes[*at].function != function)
			err = child(d, at, function);
		if (!err)
			err = draw_first_way(d, h->dominators[node], h->nodes.parents[node], SHARED_STEPS, at);
	}
	if (!err)
		err = box_of(d, node, true, &function);
	return err || folds(d->p, at, function) ? err : child(d, at, function);
}

static void put(struct drawing *d, u32 node, u32 at)
{
	profile_add(d->p, at, heap_size_of(d->h, node));
	profile_add_more(d->p, at, heap_count_of(d->h, node));
}

static void finish(struct drawing *d)
{
	table_free(&d->functions);
	table_free(&d->shared);
	free(d->depths);
}

struct error *heap_draw_refs(const struct heap *h, struct profile *ret)
{
	struct drawing d = {.h = h, .p = ret};
	cleanup(free) u32 *at = calloc((size_t)h->nodes.n + 1, sizeof(*at));
	struct error *err = at ? weigh_shared(&d) : &error_no_memory;

	for (u32 i = h->first; !err && i < h->nodes.n; i++) {
		if (!heap_kind(h, i)->type)
			continue;
		at[i] = at[h->dominators[i]];
		err = place(&d, i, at[h->nodes.parents[i]], &at[i]);
		if (!err && heap_is_object(h, i))
			put(&d, i, at[i]);
	}
	finish(&d);
	return err;
}

/* --- by type --- */

static struct error *draw_type(struct drawing *d, u32 node, u32 *root_at)
{
	const struct heap *h = d->h;
	u32 parent = h->nodes.parents[node], at = 0, function;
	struct error *err;

	/* found by its place: below that */
	if (parent && heap_is_root(h, parent) && !(heap_kind(h, node)->label & ~HEAP_FLAGS))
		at = root_at[parent];
	err = box_of(d, node, false, &function);
	if (!err)
		err = child(d, &at, function);
	if (!err)
		put(d, node, at);
	return err;
}

static struct error *draw_tally(struct drawing *d, const struct heap_tally *t, u32 at)
{
	u64 key = ((u64)t->type << 32) + 1;
	const u64 *known = table_get(&d->functions, mix(key));
	u32 function = known ? (u32)(*known - 1) : 0;
	struct error *err = NULL;

	if (!known)
		err = function_of(d, key, KIND_CLASS, d->h->types[t->type].name, &function);
	if (!err)
		err = child(d, &at, function);
	if (err)
		return err;
	profile_add(d->p, at, t->bytes);
	profile_add_more(d->p, at, t->count);
	return NULL;
}

struct error *heap_draw_types(const struct heap *h, struct profile *ret)
{
	struct drawing d = {.h = h, .p = ret};
	cleanup(free) u32 *at = calloc((size_t)h->nodes.n + 1, sizeof(*at));
	struct error *err = at ? NULL : &error_no_memory;
	u32 function;

	for (u32 i = 1; !err && i < h->nodes.n; i++) {
		if (heap_is_object(h, i)) {
			err = draw_type(&d, i, at);
		} else if (heap_is_root(h, i)) {
			at[i] = at[h->nodes.parents[i]];
			err = box_of(&d, i, true, &function);
			if (!err)
				err = child(&d, &at[i], function);
		}
	}
	for (u32 i = 0; !err && i < h->ntallies; i++)
		err = draw_tally(&d, &h->tallies[i], at[h->tallies[i].root]);
	finish(&d);
	return err;
}

/* --- ways to some --- */

/* The box of a target that is referred to by this label. */
static struct error *target_box(struct drawing *d, u32 target, u32 label, u32 *ret)
{
	char type[NAME_BYTES], name[2 * NAME_BYTES];
	const char *text = heap_label_text(d->h, label);
	struct profile_function fn = {.name = name, .kind = KIND_CLASS};

	node_text(d->h, target, false, type, sizeof(type));
	snprintf(name, sizeof(name), "%s%s%s%s", text, label & HEAP_MAYBE ? "?" : "", *text ? ": " : "", type);
	return profile_function(d->p, 0, &fn, false, ret);
}

static struct error *draw_way(struct drawing *d, const struct heap_way *way, u64 bytes, u64 count)
{
	u32 at = 0, function;
	struct error *err = draw_first_way(d, 0, way->from, UINT32_MAX, &at);

	if (!err)
		err = target_box(d, way->to, way->label, &function);
	if (!err)
		err = child(d, &at, function);
	if (!err) {
		profile_add(d->p, at, bytes);
		profile_add_more(d->p, at, count);
	}
	return err;
}

/* So many ways lead to each node, malloc'd. */
static u32 *count_ways(const struct heap *h)
{
	u32 *ret = calloc((size_t)h->nodes.n + 1, sizeof(*ret));

	for (u32 i = 0; ret && i < h->nodes.n; i++)
		ret[i] = 1;
	for (u64 i = 0; ret && i < h->nways; i++)
		ret[h->ways[i].to]++;
	return ret;
}

struct error *heap_draw_ways(const struct heap *h, bool (*wanted)(const void *ctx, const struct heap *h, u32 node),
        const void *ctx, struct profile *ret)
{
	struct drawing d = {.h = h, .p = ret};
	cleanup(free) u64 *kept = NULL;
	cleanup(free) u32 *n = count_ways(h);
	struct error *err = n ? heap_retained(h, &kept) : &error_no_memory;

	for (u32 i = 1; !err && i < h->nodes.n; i++) {
		struct heap_way first = {h->nodes.parents[i], i, heap_kind(h, i)->label};

		if (wanted(ctx, h, i))
			err = draw_way(&d, &first, kept[i] / n[i], heap_count_of(h, i));
	}
	for (u64 i = 0; !err && i < h->nways; i++) {
		const struct heap_way *way = &h->ways[i];

		if (wanted(ctx, h, way->to))
			err = draw_way(&d, way, kept[way->to] / n[way->to], 0);
	}
	finish(&d);
	return err;
}

struct error *heap_draw_largest(const struct heap *h, u32 n, struct profile *ret)
{
	struct drawing d = {.h = h, .p = ret};
	cleanup(free) u32 *nodes = NULL;
	struct error *err = heap_largest(h, n, &nodes, &n);

	for (u32 i = 0; !err && i < n; i++) {
		struct heap_way way = {h->nodes.parents[nodes[i]], nodes[i], heap_kind(h, nodes[i])->label};

		err = draw_way(&d, &way, heap_size_of(h, nodes[i]), 1);
	}
	finish(&d);
	return err;
}
