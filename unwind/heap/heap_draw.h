/* SPDX-License-Identifier: Apache-2.0 */
/* A heap as a profile: bytes, and objects as what else is counted (profile_node.more). */
#ifndef YRT_HEAP_DRAW_H
#define YRT_HEAP_DRAW_H

#include "heap.h"
#include "profile/profile.h"

/* By type; what heap_block() found by its place, below that. */
struct error *heap_draw_types(const struct heap *h, struct profile *ret);
/*
 * Who keeps what alive: the tree of dominators. What one object refers to by the same label, and is of one type, is one
 * box. An object that its dominator does not refer to itself is in a box "shared by N paths": so many references lead
 * to it. Below a root, the way follows by which the object was found first. A type that repeats below itself (a linked
 * list) is folded. Needs heap_settle().
 */
struct error *heap_draw_refs(const struct heap *h, struct profile *ret);

/*
 * The ways from roots to the objects that wanted() says are meant: the shortest one to each, and one by each other
 * object that refers to it, with the bytes that each target keeps alive, divided among its ways. Needs
 * heap_settle() and heap_options.ways.
 */
struct error *heap_draw_ways(const struct heap *h, bool (*wanted)(const void *ctx, const struct heap *h, u32 node),
        const void *ctx, struct profile *ret);

/* A shortest way to each of the n objects that are largest by themselves, with their own bytes. */
struct error *heap_draw_largest(const struct heap *h, u32 n, struct profile *ret);

#endif
