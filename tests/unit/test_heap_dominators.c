/* SPDX-License-Identifier: Apache-2.0 */
/* Dominators of random graphs, against what the definition says: what cannot be reached without a node is dominated. */
#include "unit.h"

#include "unwind/grow.h"
#include "unwind/heap/heap_dominators.h"

#define NODES_MAX 60

static u64 state = 42;

static u32 chance(u32 n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(state >> 33) % n;
}

struct graph {
	u32 n, parents[NODES_MAX];
	struct heap_edge edges[NODES_MAX * NODES_MAX];
	u32 nedges;
};

static bool refers[NODES_MAX][NODES_MAX]; /* of the graph that is looked at */

static void find_references(const struct graph *g)
{
	memset(refers, 0, sizeof(refers));
	for (u32 i = 1; i < g->n; i++)
		refers[g->parents[i]][i] = true;
	for (u32 i = 0; i < g->nedges; i++)
		refers[g->edges[i].from][g->edges[i].to] = true;
}

/* What node 0 reaches without going through one. */
static void reach(const struct graph *g, u32 without, u32 at, bool *seen)
{
	if (at == without || seen[at])
		return;
	seen[at] = true;
	for (u32 i = 0; i < g->n; i++)
		if (refers[at][i])
			reach(g, without, i, seen);
}

static bool dominates[NODES_MAX][NODES_MAX]; /* [a][b]: all ways to b lead through a */

static void find_dominators(const struct graph *g)
{
	find_references(g);
	for (u32 a = 0; a < g->n; a++) {
		bool seen[NODES_MAX] = {false};

		reach(g, a, 0, seen);
		for (u32 b = 0; b < g->n; b++)
			dominates[a][b] = !seen[b];
	}
}

static void check(const struct graph *g, u32 patience)
{
	struct heap_edges edges = {0};
	struct heap_dominance d;

	for (u32 i = 0; i < g->nedges; i++)
		assert_null(heap_edges_add(&edges, g->edges[i].from, g->edges[i].to));
	assert_null(heap_dominators(g->parents, g->n, &edges, patience, &d));
	assert_null(edges.first);
	for (u32 b = 1; b < g->n; b++) {
		u32 edges = 0;

		assert_int_not_equal(d.dominators[b], b);
		assert_true(dominates[d.dominators[b]][b]);
		for (u32 a = 0; a < g->n; a++) /* all others that do dominate it too */
			if (a != b && a != d.dominators[b] && dominates[a][b])
				assert_true(dominates[a][d.dominators[b]]);
		for (u32 i = 0; i < g->nedges; i++)
			edges += g->edges[i].to == b;
		assert_int_equal(d.incoming[b], edges);
	}
	heap_dominance_free(&d);
}

static void test_random(void **unused)
{
	for (u32 round = 0; round < 300; round++) {
		struct graph g = {.n = 1 + chance(NODES_MAX)};
		u32 want = chance(2 * g.n + 1);

		for (u32 i = 1; i < g.n; i++)
			g.parents[i] = chance(3) ? i - 1 - chance(i < 3 ? i : 3) : chance(i);
		for (u32 i = 0; i < want; i++)
			g.edges[g.nedges++] = (struct heap_edge){chance(g.n), chance(g.n)};
		find_dominators(&g);
		check(&g, HEAP_PATIENCE);
		check(&g, 0);
	}
}

/* A list that is linked both ways, and held by both ends: nobody in it dominates another. */
static void test_ends(void **unused)
{
	u32 n = 1000000, *parents = calloc(n, sizeof(*parents));
	struct heap_dominance d;
	struct heap_edges edges = {0};

	/* found from both ends in turn: 1, 3, 5 ... from the first, 2, 4, 6 ... from the last */
	for (u32 i = 3; i < n; i++) {
		parents[i] = i - 2;
		assert_null(heap_edges_add(&edges, i, i - 2));
	}
	assert_null(heap_edges_add(&edges, n - 1, n - 2));
	assert_null(heap_edges_add(&edges, n - 2, n - 1));
	assert_null(heap_dominators(parents, n, &edges, HEAP_PATIENCE, &d));
	for (u32 i = 0; i < n; i++)
		assert_int_equal(d.dominators[i], 0);
	assert_int_equal(d.incoming[1], 1);
	free(parents);
	heap_dominance_free(&d);
}

static void test_none(void **unused)
{
	struct heap_edges none = {0};
	u32 parent = 0;
	struct heap_dominance d;

	assert_null(heap_dominators(&parent, 0, &none, HEAP_PATIENCE, &d));
	heap_dominance_free(&d);
	assert_null(heap_dominators(&parent, 1, &none, HEAP_PATIENCE, &d));
	assert_int_equal(d.dominators[0], 0);
	heap_dominance_free(&d);
}

/* More references than are counted. */
static void test_popular(void **unused)
{
	u32 n = 1000, *parents = calloc(n, sizeof(*parents));
	struct heap_edges edges = {0};
	struct heap_dominance d;

	for (u32 i = 2; i < n; i++)
		assert_null(heap_edges_add(&edges, i, 1));
	assert_null(heap_dominators(parents, n, &edges, HEAP_PATIENCE, &d));
	assert_int_equal(d.incoming[1], UINT8_MAX);
	assert_int_equal(d.incoming[2], 0);
	free(parents);
	heap_dominance_free(&d);
}

/* Edges of all distances are read as they were added, over and over; a hundred thousand take more than one block. */
static void test_edges(void **unused)
{
	static struct heap_edge all[400000];
	const u32 n = sizeof(all) / sizeof(*all);
	struct heap_edges edges = {0};
	struct heap_edge edge;

	for (u32 i = 0; i < n; i++) {
		all[i].from = i && chance(3) ? all[i - 1].from : chance(2) ? UINT32_MAX - chance(1000) : chance(1000);
		all[i].to = chance(2) ? chance(UINT32_MAX) : all[i ? i - 1 : 0].to - chance(100) + 50;
		assert_null(heap_edges_add(&edges, all[i].from, all[i].to));
	}
	assert_true(edges.n == n && edges.bytes < 8 * n);
	for (u32 round = 0; round < 3; round++) {
		struct heap_edges_at at = {0};

		for (u32 i = 0; i < n; i++) {
			assert_true(
			        round == 2 ? heap_edges_take(&edges, &at, &edge) : heap_edges_next(&edges, &at, &edge));
			assert_true(edge.from == all[i].from && edge.to == all[i].to);
		}
		assert_false(round == 2 ? heap_edges_take(&edges, &at, &edge) : heap_edges_next(&edges, &at, &edge));
	}
	assert_true(!edges.first && !edges.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_popular),
	        cmocka_unit_test(test_edges),
	        cmocka_unit_test(test_random),
	        cmocka_unit_test(test_ends),
	        cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
