/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap with more objects than heap_options.memory has room for: objects that were found by the same labels and types
 * from the same root are one node. Each object is still read once and counts once, for the way by which it was found
 * first; who else refers to it is not kept, so parents stand for dominators. It takes a bit for each 8 bytes of the
 * heap, and what was found but not read yet: that is read in order of discovery, or, when it is too much, last first.
 * What an object has more references than there is room for, it is read again for.
 */
#ifndef YRT_HEAP_COARSE_H
#define YRT_HEAP_COARSE_H

#include <types.h>

#include "error.h"

struct heap;
struct heap_coarse;

struct heap_pending {
	u64 addr;
	u32 from, label; /* from: a node, which refers to it by this label */
};

/* Makes a heap coarse: its nodes have new numbers. from: one of them, or NULL; what it is called now. */
struct error *heap_coarse_begin(struct heap *h, u32 *from);
void heap_coarse_free(struct heap_coarse *c); /* NULL is fine */
u64 heap_coarse_bytes(const struct heap *h);

bool heap_coarse_has(const struct heap *h, u64 addr);
/* False: it was found before, or there is no room. */
bool heap_coarse_mark(struct heap *h, u64 addr);
/* An object is to be read, which was found right now. */
void heap_coarse_push(struct heap *h, u32 from, u32 label, u64 addr);
/* No reference can be pushed now. */
bool heap_coarse_full(const struct heap *h);
/* An object, whose node is p->from, is to be read once more, for its references but the first `skip` ones. */
void heap_coarse_rest(struct heap *h, const struct heap_pending *p, u64 skip);
/* False: there is none. */
bool heap_coarse_take_rest(struct heap *h, struct heap_pending *p, u64 *skip);
/* Counts an object. addr 0: it has none. Returns its node. */
u32 heap_coarse_count(struct heap *h, const struct heap_pending *p, u32 type, u64 size);
/* A node was added by others. */
struct error *heap_coarse_added(struct heap *h);
/* Takes up to max objects that are to be read. Returns how many; valid until the next call of any of these. */
u32 heap_coarse_take(struct heap *h, u32 max, struct heap_pending *ret);

#endif
