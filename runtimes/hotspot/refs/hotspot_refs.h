/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java-refs: which objects of a JVM refer to which, by which field, and what the roots are: the operations roots() and
 * object() of runtime_heap.h.
 */
#ifndef YRT_HOTSPOT_REFS_H
#define YRT_HOTSPOT_REFS_H

#include "error.h"
#include "runtime_heap.h"

struct hotspot_heap_view;
struct memory;
struct hotspot_refs;

/* m: the cache of heap h. An error names what this JVM does not tell. */
struct error *hotspot_refs_create(
        struct hotspot_heap_view *view, struct memory *m, struct heap *h, struct hotspot_refs **ret);
/* m has a copy of the heap: nothing in it moves. */
void hotspot_refs_freeze(struct hotspot_refs *r);
void hotspot_refs_destroy(struct hotspot_refs *r); /* NULL is fine */
struct error *hotspot_refs_roots(struct hotspot_refs *r);
enum heap_seen hotspot_refs_object(struct hotspot_refs *r, u64 addr, u32 label, struct heap_object *ret);

#endif
