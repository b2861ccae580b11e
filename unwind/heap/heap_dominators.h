/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dominators of a graph: of each node the innermost one that all ways from node 0 lead through, so that it alone keeps
 * it alive. By iteration (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm), from the tree by which a
 * breadth-first walk found the nodes. Sweeps go up and down alternately: a list that is linked both ways, and held by
 * both ends, would take as many sweeps as it has elements if all went in one direction. Each sweep of such a list still
 * takes the square of its length in steps. So whoever runs out of patience goes on by semidominators (Georgiadis:
 * Linear-Time Algorithms for Dominators and Related Problems), whose time grows little faster than the graph, but which
 * takes 32 bytes a node and 4 an edge more.
 */
#ifndef YRT_HEAP_DOMINATORS_H
#define YRT_HEAP_DOMINATORS_H

#include <types.h>

#include "error.h"
#include "heap_edges.h"

#define HEAP_PATIENCE     64
#define HEAP_BRANCH_STEPS 64

/*
 * parents: of n nodes, each but node 0's below its own number. edges: fewer than 2^32 - n others, in any order; freed.
 * patience: steps that sweeps may take, for each node and edge. *ret: malloc'd arrays by node.
 */
struct heap_dominance {
	u32 *dominators; /* of node 0: 0 */
	u8 *incoming;    /* how many edges lead to it, at most UINT8_MAX */
	u32 *others;     /* who refers to it at the end of a way that leaves its dominator by another than its parents'
	                    way, at most HEAP_BRANCH_STEPS dominators below; 0: none is known */
};

struct error *heap_dominators(
        const u32 *parents, u32 n, struct heap_edges *edges, u32 patience, struct heap_dominance *ret);
void heap_dominance_free(struct heap_dominance *d);

#endif
