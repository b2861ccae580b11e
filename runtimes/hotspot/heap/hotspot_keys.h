/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a java.util.concurrent.ConcurrentHashMap, in which the JDK keeps its threads. */
#ifndef YRT_HOTSPOT_KEYS_H
#define YRT_HOTSPOT_KEYS_H

#include "hotspot_heap_view.h"

/* What is known of the classes: zero at first. */
struct hotspot_keys {
	u64 node;                             /* ConcurrentHashMap.Node itself */
	u32 table, key, next, first, resized; /* offsets; 0: not yet */
	u32 left;                             /* budget: nodes still to visit */
};

/*
 * Calls each for the keys of a map, until it returns false. set: the map, or the result of keySet() or newKeySet().
 * Keys that come and go meanwhile may be missing. False: each() returned false.
 */
bool hotspot_each_key(struct hotspot_keys *k, struct hotspot_heap_view *h, struct memory *m, u64 set,
        bool (*each)(void *ctx, u64 key), void *ctx);

#endif
