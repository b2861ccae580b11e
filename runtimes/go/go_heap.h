/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's own heap profile: runtime.mbuckets, with one object in MemProfileRate bytes on average, by the stack
 * that allocated it. Memory in use is as of the last garbage collection but one, as in runtime/pprof, or, if there was
 * none, as of now. Allocated memory is up to date.
 */
#ifndef YRT_GO_HEAP_H
#define YRT_GO_HEAP_H

#include <stdio.h>

#include "go_places.h"
#include "go_spans.h"
#include "go_stacks.h"
#include "go_view.h"
#include "profile/profile.h"

struct go_bucket {
	u64 addr;          /* the runtime never frees one */
	u64 size;          /* of each object */
	u64 allocs, frees; /* objects, as of that collection */
	u64 made, freed;   /* so far */
	u32 chain;
};

struct go_heap {
	struct go_bucket *buckets;
	u32 n;
	u64 rate;
	struct go_stacks stacks; /* each pc is one function */
	struct go_places places;
	struct go_spans *spans; /* with GO_HEAP_TYPES, in place of all else; else NULL */
};

enum go_heap_flag { GO_HEAP_ALLOCATED = 1, GO_HEAP_LINES = 2, GO_HEAP_TYPES = 4 };

struct error *go_heap_take(const struct go_view *v, u32 flags, void **ret);
void go_heap_drop(void *heap);
/* As runtime_snapshot_ops.print and .draw: in use, or (before) what was allocated between the two. */
struct error *go_heap_print(const void *before, void *after, u32 flags, FILE *out);
struct error *go_heap_draw(const void *before, void *after, u32 flags, struct profile *ret);

#endif
