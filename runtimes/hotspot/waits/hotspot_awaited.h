/* SPDX-License-Identifier: Apache-2.0 */
/* What the walker needs to find out what its thread waits for (hotspot_awaited_walk.h). */
#ifndef YRT_HOTSPOT_AWAITED_H
#define YRT_HOTSPOT_AWAITED_H

#include "hotspot_waits.h"
#include "runtimes/hotspot/walk/hotspot.h"

/* ret->pending stays 0 where this is not known of the JDK, or the JVM is only starting. */
void hotspot_awaited_find(
        struct hotspot_waits *w, struct hotspot_heap_view *h, struct memory *m, struct hotspot_awaited *ret);

#endif
