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

#define HEAP_PATIENCE 64

/*
 * parents: of n nodes, each but node 0's below its own number. edges: fewer than 2^32 - n others, in any order; freed.
 * patience: steps that sweeps may take, for each node and edge. *ret: the dominator of each node (of node 0: 0),
 * malloc'd; *incoming: how many edges lead to each, at most UINT8_MAX, malloc'd.
 */
struct error *heap_dominators(
        const u32 *parents, u32 n, struct heap_edges *edges, u32 patience, u32 **ret, u8 **incoming);

#endif
