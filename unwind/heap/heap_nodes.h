/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a heap in 12 bytes each, as there may be 10^8: where the object is, of which kind, and by whom it was
 * found first. Objects of equal label, type and size are of one kind. Addresses are numbered by pieces of 16 MiB that
 * have objects; what has no room there (or is not a multiple of 8) is a number in a list of its own.
 */
#ifndef YRT_HEAP_NODES_H
#define YRT_HEAP_NODES_H

#include <types.h>

#include "error.h"

#define HEAP_ROOT_TYPE UINT32_MAX /* heap_kind.type of roots */

#define HEAP_PIECE_BITS 21 /* of a place: words of 8 bytes in a piece */
#define HEAP_PIECES     1792u

struct heap_kind {
	u64 size;  /* bytes */
	u32 type;  /* 0: there was no object */
	u32 label; /* by which its parent refers to it, with flags */
};

struct heap_nodes { /* zero: none */
	u32 n;
	u32 *places;  /* of each node: 0: it has no address. heap_nodes_addr() */
	u32 *kind_of; /* of each node */
	u32 *parents; /* of each node */
	struct heap_kind *kinds;
	u32 nkinds;
	u64 pieces[HEAP_PIECES]; /* from 1 on: first address */
	u32 npieces;
	u64 *others; /* addresses that are in no piece */
	u32 nothers;
	u32 *slots; /* hash table from address to node number, in the bits of number_mask; 0: empty */
	u32 number_mask;
	u64 nslots;
	u32 *kind_slots;
	u64 nkind_slots;
	u16 piece_slots[4 * HEAP_PIECES]; /* by address */
};

/* Adds a node. addr 0: it has none; others must be new: heap_nodes_find() comes first. */
struct error *heap_nodes_add(struct heap_nodes *nodes, u64 addr, u32 parent, const struct heap_kind *kind);
/* The node that has this address; 0: none. */
u32 heap_nodes_find(const struct heap_nodes *nodes, u64 addr);
/* It will be looked for soon. */
void heap_nodes_prefetch(const struct heap_nodes *nodes, u64 addr);
struct error *heap_nodes_set(struct heap_nodes *nodes, u32 node, const struct heap_kind *kind);
/* So many bytes at most do they take, with what it takes to know their dominators and to draw them. */
u64 heap_nodes_bytes(const struct heap_nodes *nodes, u64 more);
/* None is looked for or changed any more. */
void heap_nodes_end(struct heap_nodes *nodes);
void heap_nodes_free(struct heap_nodes *nodes);

static inline u64 heap_nodes_addr(const struct heap_nodes *nodes, u32 node)
{
	u32 place = nodes->places[node], piece = place >> HEAP_PIECE_BITS;

	if (piece >= HEAP_PIECES)
		return nodes->others[place - (HEAP_PIECES << HEAP_PIECE_BITS)];
	return place ? nodes->pieces[piece] + 8ull * (place & ((1u << HEAP_PIECE_BITS) - 1)) : 0;
}

#endif
