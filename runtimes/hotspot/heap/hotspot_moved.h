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
/* Either kind: a table of addresses of ZPages by granule. False: not given, or it makes no sense. */
bool hotspot_z_pages(
        const struct vmstructs *v, bool views, struct memory *m, u64 collected_heap, u64 *table, u64 *granules);
/* Of one of these: from where to where in the heap it has objects. */
bool hotspot_z_page(const struct vmstructs *v, bool views, struct memory *m, u64 page, u64 *start, u64 *top);

#endif
