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
 * The ZForwarding of the page at addr, if its objects are being moved, or were by the last collection. 0: they were
 * not.
 * table: 0 of the young generation, 1 of the old or the only one. False: not readable.
 */
bool hotspot_z_forwarding(const struct hotspot_z *z, struct memory *m, u32 table, u64 addr, u64 *ret);

/* Are all objects of such a page elsewhere by now? Its memory may be another page's. */
bool hotspot_z_is_empty(const struct hotspot_z *z, struct memory *m, u64 forwarding);

/* A copy of a page's table of moved objects. */
struct hotspot_z_moved {
	u64 start, shift, length;
	u64 *entries;  /* malloc'd */
	bool complete; /* the page is empty by now */
};

bool hotspot_z_moved_read(const struct hotspot_z *z, struct memory *m, u64 forwarding, struct hotspot_z_moved *ret);
/* Where the object went that was at addr; 0: not said. */
u64 hotspot_z_moved_to(const struct hotspot_z *z, const struct hotspot_z_moved *t, u64 addr);

struct hotspot_heap_view;

/* Pages: the table of their addresses by granule, and offsets in one (zPage.hpp, 15 to 28). */
struct hotspot_z_pages {
	u64 table, granules;
	u16 start, top; /* up to where it has objects, as offsets in the heap */
};

/* False: not given, or it makes no sense. */
bool hotspot_z_pages(const struct hotspot_heap_view *h, struct memory *m, struct hotspot_z_pages *ret);

#endif
