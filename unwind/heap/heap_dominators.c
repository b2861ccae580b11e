/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_dominators.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

/* Who refers to node i: from[start[i]] to from[start[i + 1] - 1]. */
struct references {
	u32 *start, *from;
};

/* incoming: up to UINT8_MAX. */
static struct error *turn(const struct heap_edge *edges, u32 nedges, u32 n, u8 *incoming, struct references *ret)
{
	ret->start = calloc((size_t)n + 3, sizeof(*ret->start));
	ret->from = malloc(((size_t)nedges + 1) * sizeof(*ret->from));
	if (!ret->start || !ret->from)
		return &error_no_memory;
	for (u32 i = 0; i < nedges; i++)
		ret->start[edges[i].to + 2]++;
	for (u32 i = 0; i < n; i++) {
		incoming[i] = ret->start[i + 2] < UINT8_MAX ? (u8)ret->start[i + 2] : UINT8_MAX;
		ret->start[i + 2] += ret->start[i + 1]; /* of i + 1 here, and counted up below */
	}
	for (u32 i = 0; i < nedges; i++)
		ret->from[ret->start[edges[i].to + 1]++] = edges[i].from;
	return NULL;
}

/* The innermost that dominates both. A dominator's number is below that of what it dominates. */
static u32 meet(const u32 *dom, u32 a, u32 b)
{
	while (a != b) {
		if (a > b)
			a = dom[a];
		else
			b = dom[b];
	}
	return a;
}

static bool improve(const struct references *r, const u32 *parents, u32 *dom, u32 i)
{
	u32 best = dom[i] ? meet(dom, dom[i], parents[i]) : 0;

	for (u32 k = r->start[i]; best && k < r->start[i + 1]; k++)
		if (r->from[k] != i)
			best = meet(dom, best, r->from[k]);
	if (best == dom[i])
		return false;
	dom[i] = best;
	return true;
}

static bool sweep(const struct references *r, const u32 *parents, u32 *dom, u32 n, bool up)
{
	bool changed = false;

	for (u32 k = 1; k < n; k++)
		changed |= improve(r, parents, dom, up ? k : n - k);
	return changed;
}

static u32 sweeps(const struct references *r, const u32 *parents, u32 *dom, u32 n)
{
	u32 rounds = 0;

	memcpy(dom, parents, n * sizeof(*dom));
	dom[0] = 0;
	while (++rounds < HEAP_ROUNDS_MAX && sweep(r, parents, dom, n, rounds & 1))
		;
	return rounds;
}

struct error *heap_dominators(
        const u32 *parents, u32 n, struct heap_edge **edges, u64 nedges, u32 **ret, u8 **incoming, u32 *rounds)
{
	struct references r = {0};
	cleanup(free) u32 *dom = NULL;
	cleanup(free) u8 *in = calloc((size_t)n + 1, sizeof(*in));
	struct error *err = in && nedges < UINT32_MAX ? turn(*edges, (u32)nedges, n, in, &r) : &error_no_memory;

	*ret = NULL;
	*incoming = NULL;
	*rounds = 0;
	if (!err) {
		free(TAKE(*edges));
		dom = malloc(((size_t)n + 1) * sizeof(*dom));
		err = dom ? NULL : &error_no_memory;
	}
	if (!err) {
		*rounds = sweeps(&r, parents, dom, n);
		*ret = TAKE(dom);
		*incoming = TAKE(in);
	}
	free(r.start);
	free(r.from);
	return err;
}
