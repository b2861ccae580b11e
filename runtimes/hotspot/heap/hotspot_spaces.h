/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a JVM keeps objects one behind the other, by its vmStructs: regions of G1 (g1HeapRegion.hpp, heapRegion.hpp),
 * generations of Serial (defNewGeneration.hpp, tenuredGeneration.hpp) and of Parallel (psYoungGen.hpp, psOldGen.hpp),
 * regions of Shenandoah (shenandoahHeapRegion.hpp).
 */
#ifndef YRT_HOTSPOT_SPACES_H
#define YRT_HOTSPOT_SPACES_H

#include "hotspot_heap_view.h"

enum hotspot_space_kind {
	SPACE_EDEN,
	SPACE_SURVIVOR,
	SPACE_OLD,
	SPACE_HUMONGOUS,
	SPACE_REGION, /* of G1 in 8: young or old */
	SPACE_PAGE,
	SPACE_OF_ALL,  /* Shenandoah's, where all kinds of objects are */
	SPACE_EMPTIED, /* its objects are being moved, or have been: hotspot_moved_to() */
	SPACE_KINDS
};

/* Objects lie from bottom up to top; a humongous one reaches beyond, over the regions that follow. */
struct hotspot_space {
	u64 bottom, top;
	enum hotspot_space_kind kind;
};

struct hotspot_spaces {
	struct hotspot_space *items; /* not empty ones, by address; malloc'd */
	u32 n;
};

/*
 * NULL: its collector's heap can be read. Else an error that names it. *parsed: from bottom to top of its spaces; else
 * (ZGC) objects are there, but only references tell which: spaces are given in the view of hotspot_heap_base().
 */
struct error *hotspot_spaces_check(struct hotspot_heap_view *h, struct memory *m, bool *parsed);
/* What makes no sense is left out. An error: where they are is not known, or no memory. */
struct error *hotspot_spaces_read(struct hotspot_heap_view *h, struct memory *m, struct hotspot_spaces *ret);
void hotspot_spaces_free(struct hotspot_spaces *s);

#endif
