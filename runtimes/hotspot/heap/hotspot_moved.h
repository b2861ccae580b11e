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

#endif
