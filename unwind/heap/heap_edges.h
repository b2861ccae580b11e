/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edges of a graph in a few bytes each, to be read in the order in which they were added. Most have the `from` of the
 * one before, and a `to` that is near that one's, or a small number (types, constants): only what differs is kept.
 */
#ifndef YRT_HEAP_EDGES_H
#define YRT_HEAP_EDGES_H

#include <types.h>

#include "error.h"

struct heap_edge {
	u32 from, to;
};

struct heap_edge_block;

struct heap_edges { /* zero: none */
	struct heap_edge_block *first, *last;
	struct heap_edge before;
	u64 n, bytes;
};

struct error *heap_edges_add(struct heap_edges *edges, u32 from, u32 to);
void heap_edges_free(struct heap_edges *edges);

/* Where a reader is; zero: at the first. */
struct heap_edges_at {
	const struct heap_edge_block *block;
	u32 at;
	struct heap_edge edge;
};

/* The next one; false: there is none. */
bool heap_edges_next(const struct heap_edges *edges, struct heap_edges_at *at, struct heap_edge *ret);
/* The same of the only reader, for the last time: what was read is freed. */
bool heap_edges_take(struct heap_edges *edges, struct heap_edges_at *at, struct heap_edge *ret);

#endif
