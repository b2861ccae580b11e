/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_dominators.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define OTHERS_LOOKED_AT 16

/* Who refers to node i: from[start[i]] to from[start[i + 1] - 1]. */
struct references {
	u32 *start, *from;
};

/* incoming: up to UINT8_MAX. Edges are freed while they are read. */
static struct error *turn(struct heap_edges *edges, u32 n, u8 *incoming, struct references *ret)
{
	struct heap_edges_at at = {0};
	struct heap_edge edge;

	ret->start = calloc((size_t)n + 3, sizeof(*ret->start));
	ret->from = malloc(((size_t)edges->n + 1) * sizeof(*ret->from));
	if (!ret->start || !ret->from)
		return &error_no_memory;
	while (heap_edges_next(edges, &at, &edge))
		ret->start[edge.to + 2]++;
	for (u32 i = 0; i < n; i++) {
		incoming[i] = ret->start[i + 2] < UINT8_MAX ? (u8)ret->start[i + 2] : UINT8_MAX;
		ret->start[i + 2] += ret->start[i + 1]; /* of i + 1 here, and counted up below */
	}
	at = (struct heap_edges_at){0};
	while (heap_edges_take(edges, &at, &edge))
		ret->from[ret->start[edge.to + 1]++] = edge.from;
	return NULL;
}

struct sweeps {
	const struct references *references;
	const u32 *parents;
	u32 *dom, n;
	u64 steps; /* from a node to its dominator, that may still be taken */
};

/* The innermost that dominates both. A dominator's number is below that of what it dominates. */
static u32 meet(struct sweeps *s, u32 a, u32 b)
{
	while (a != b && s->steps) {
		if (a > b)
			a = s->dom[a];
		else
			b = s->dom[b];
		s->steps--;
	}
	return a;
}

static bool improve(struct sweeps *s, u32 i)
{
	const struct references *r = s->references;
	u32 best = s->dom[i] ? meet(s, s->dom[i], s->parents[i]) : 0;

	for (u32 k = r->start[i]; best && k < r->start[i + 1]; k++)
		if (r->from[k] != i)
			best = meet(s, best, r->from[k]);
	if (best == s->dom[i])
		return false;
	s->dom[i] = best;
	return true;
}

static bool sweep(struct sweeps *s, bool up)
{
	bool changed = false;

	for (u32 k = 1; k < s->n && s->steps; k++)
		changed |= improve(s, up ? k : s->n - k);
	return changed;
}

/* Is it done? Else it would take too long. */
static bool by_sweeps(struct sweeps *s)
{
	memcpy(s->dom, s->parents, s->n * sizeof(*s->dom));
	s->dom[0] = 0;
	for (bool up = true; sweep(s, up) && s->steps; up = !up)
		;
	return s->steps;
}

/* Nodes numbered by a search in depth; all that follows but node and number is by such numbers. */
struct search {
	u32 n, *node, *number, *parent;
	u32 *semi, *label, *dom, *stack;
};

/* Whom node i refers to, as references have who refers to it; the tree's edges are among them. */
static bool turn_back(const struct references *r, const u32 *parents, u32 n, struct references *ret)
{
	ret->start = calloc((size_t)n + 3, sizeof(*ret->start));
	ret->from = malloc(((size_t)r->start[n] + n) * sizeof(*ret->from));
	if (!ret->start || !ret->from)
		return false;
	for (u32 i = 1; i < n; i++)
		ret->start[parents[i] + 2]++;
	for (u32 k = 0; k < r->start[n]; k++)
		ret->start[r->from[k] + 2]++;
	for (u32 i = 0; i < n; i++)
		ret->start[i + 2] += ret->start[i + 1];
	for (u32 i = 1; i < n; i++)
		ret->from[ret->start[parents[i] + 1]++] = i;
	for (u32 i = 0; i < n; i++)
		for (u32 k = r->start[i]; k < r->start[i + 1]; k++)
			ret->from[ret->start[r->from[k] + 1]++] = i;
	return true;
}

/* next: of each node the reference to follow next. */
static void search(struct search *s, const struct references *to, u32 *next)
{
	u32 at = 0, count = 1;

	memcpy(next, to->start, s->n * sizeof(*next));
	memset(s->number, 0xff, s->n * sizeof(*s->number));
	s->number[0] = s->node[0] = s->parent[0] = 0;
	for (;;) {
		if (next[at] < to->start[at + 1]) {
			u32 child = to->from[next[at]++];

			if (s->number[child] != UINT32_MAX)
				continue;
			s->parent[count] = s->number[at];
			s->node[count] = at = child;
			s->number[child] = count++;
		} else if (!at) {
			return;
		} else {
			at = s->node[s->parent[s->number[at]]];
		}
	}
}

/*
 * Of v and those above it, down from the first that is not below last, the one of the least semidominator. Parents
 * become the outermost of these, so that no way is walked twice.
 */
static u32 least(struct search *s, u32 v, u32 last)
{
	u32 n = 0, above, best;

	for (; s->parent[v] >= last; v = s->parent[v])
		s->stack[n++] = v;
	above = v;
	best = s->label[v];
	while (n) {
		v = s->stack[--n];
		s->parent[v] = s->parent[above];
		if (s->semi[best] < s->semi[s->label[v]])
			s->label[v] = best;
		else
			best = s->label[v];
		above = v;
	}
	return s->label[v];
}

static void find_semidominators(struct search *s, const struct references *r, const u32 *parents)
{
	for (u32 k = 0; k < s->n; k++)
		s->semi[k] = s->label[k] = k;
	memcpy(s->dom, s->parent, s->n * sizeof(*s->dom));
	for (u32 k = s->n; k-- > 1;) {
		u32 i = s->node[k], semi = s->semi[least(s, s->number[parents[i]], k + 1)];

		semi = semi < s->parent[k] ? semi : s->parent[k];
		for (u32 at = r->start[i]; at < r->start[i + 1]; at++) {
			u32 of = s->semi[least(s, s->number[r->from[at]], k + 1)];

			semi = of < semi ? of : semi;
		}
		s->semi[k] = semi;
	}
}

/* ret: what by_sweeps() gives up is free to be used. */
static struct error *by_semidominators(const struct references *r, const u32 *parents, u32 n, u32 *ret)
{
	cleanup(free) u32 *room = malloc(7 * (size_t)n * sizeof(*room));
	struct references to = {0};
	struct search s = {.n = n, .node = room};
	bool turned = room && turn_back(r, parents, n, &to);

	if (turned) {
		s.number = room + n;
		s.parent = s.number + n;
		s.semi = s.parent + n;
		s.label = s.semi + n;
		s.dom = s.label + n;
		s.stack = s.dom + n;
		search(&s, &to, ret);
	}
	free(to.start);
	free(to.from);
	if (!turned)
		return &error_no_memory;
	find_semidominators(&s, r, parents);
	ret[0] = 0;
	for (u32 k = 1; k < n; k++) {
		while (s.dom[k] > s.semi[k])
			s.dom[k] = s.dom[s.dom[k]];
		ret[s.node[k]] = s.node[s.dom[k]];
	}
	return NULL;
}

/* The one below top on the way of dominators to node; 0: it is top, or far below it. */
static u32 branch_of(const u32 *dom, u32 top, u32 node)
{
	for (u32 i = 0; i < HEAP_BRANCH_STEPS && node != top; i++) {
		if (dom[node] == top)
			return node;
		node = dom[node];
	}
	return 0;
}

static void find_others(const struct references *r, const u32 *parents, const u32 *dom, u32 n, u32 *ret)
{
	for (u32 i = 1; i < n; i++) {
		u32 shown = dom[i] == parents[i] ? 0 : branch_of(dom, dom[i], parents[i]);
		u32 end = r->start[i + 1] - r->start[i] < OTHERS_LOOKED_AT ? r->start[i + 1]
		                                                           : r->start[i] + OTHERS_LOOKED_AT;

		for (u32 k = r->start[i]; shown && k < end && !ret[i]; k++) {
			u32 other = branch_of(dom, dom[i], r->from[k]);

			ret[i] = !other || other == shown || other == i ? 0 : r->from[k];
		}
	}
}

void heap_dominance_free(struct heap_dominance *d)
{
	free(d->dominators);
	free(d->incoming);
	free(d->others);
	*d = (struct heap_dominance){0};
}

struct error *heap_dominators(
        const u32 *parents, u32 n, struct heap_edges *edges, u32 patience, struct heap_dominance *ret)
{
	u64 nedges = edges->n;
	struct references r = {0};
	struct error *err;
	u32 *dom;

	*ret = (struct heap_dominance){.dominators = malloc(((size_t)n + 1) * sizeof(*dom)),
	        .incoming = calloc((size_t)n + 1, sizeof(*ret->incoming)),
	        .others = calloc((size_t)n + 1, sizeof(*ret->others))};
	dom = ret->dominators;
	err = dom && ret->incoming && ret->others && nedges < UINT32_MAX - n ? turn(edges, n, ret->incoming, &r)
	                                                                     : &error_no_memory;
	if (!err && n) {
		struct sweeps s = {&r, parents, dom, n, patience * (n + nedges) + 1};

		err = by_sweeps(&s) ? NULL : by_semidominators(&r, parents, n, dom);
	}
	if (!err)
		find_others(&r, parents, dom, n, ret->others);
	else
		heap_dominance_free(ret);
	free(r.start);
	free(r.from);
	return err;
}
