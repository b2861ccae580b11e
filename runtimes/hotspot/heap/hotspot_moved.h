/* SPDX-License-Identifier: Apache-2.0 */
/* Where generational ZGC records which objects it has moved, for the walker (hotspot_objects.h) and for user space. */
#ifndef YRT_HOTSPOT_MOVED_H
#define YRT_HOTSPOT_MOVED_H

#include "runtimes/hotspot/walk/hotspot.h"
#include "runtimes/hotspot/layout/hotspot_vmstructs.h"

/*
 * By vmStructs (21 to 28), but for where the tables of the two generations are: the words in ZHeap that point to its
 * own members and go on as a generation does. collected_heap: address of Universe::_collectedHeap. False: not given, or
 * it makes no sense.
 */
bool hotspot_z_find(const struct vmstructs *v, struct memory *m, u64 collected_heap, struct hotspot_z *ret);
/* Where the object of a coloured reference is now. 0: null, or not known. */
u64 hotspot_z_now(const struct hotspot_z *z, struct memory *m, u64 stored);

/*
 * ZGC of one generation (15 to 23): the same tables, of which ret->old is the only one, and colours that are part of an
 * address: the heap is mapped once for each.
 */
bool hotspot_z_find_views(const struct vmstructs *v, struct memory *m, u64 collected_heap, struct hotspot_z *ret);
/* Where the object of such a reference is now, in the view whose bit is base. 0: null, or not known. */
u64 hotspot_z_in_view(const struct hotspot_z *z, struct memory *m, u64 stored, u64 base);
/*
 * Where the object is that was at this address when the last collection began to move; the address itself: it did not
 * move, or not yet. 0: its page is gone, and nothing tells where it went.
 */
u64 hotspot_z_went(const struct hotspot_z *z, struct memory *m, u64 addr);

struct hotspot_heap_view;

/* Pages: the table of their addresses by granule, and offsets in one (zPage.hpp, 15 to 28). */
struct hotspot_z_pages {
	u64 table, granules;
	u16 start, top,
	        seqnum; /* up to where it has objects, as offsets in the heap; which collection it is younger than */
};

/* False: not given, or it makes no sense. */
bool hotspot_z_pages(const struct hotspot_heap_view *h, struct memory *m, struct hotspot_z_pages *ret);

#endif
