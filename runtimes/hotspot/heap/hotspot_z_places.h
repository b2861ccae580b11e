/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of ZGC move while they are looked for: where one is now that a reference led to a while ago. Tables of moved
 * objects are copied while the JVM has them: from when it begins to move objects until the next collection has marked
 * all that live (zRelocationSet, zForwardingTable, 15 to 28). So an address comes with the time at which it was found.
 */
#ifndef YRT_HOTSPOT_Z_PLACES_H
#define YRT_HOTSPOT_Z_PLACES_H

#include "hotspot_heap_view.h"
#include "hotspot_spaces.h"
#include "runtime_heap.h"

struct hotspot_z_places; /* of one reading */

/* *ret NULL: another collector. now: memory as it is now. */
struct error *hotspot_z_places_create(struct hotspot_heap_view *h, struct memory *now, struct hotspot_z_places **ret);
void hotspot_z_places_destroy(struct hotspot_z_places *p); /* NULL is fine */
/*
 * To be called for each object. number: of objects found so far, as a clock. True: a collection has begun, or begun to
 * move objects, since it was called last: what was read before is out of date.
 */
bool hotspot_z_places_changed(struct hotspot_z_places *p, u32 number);
/* A reference as it was stored, of an object or a root. 0: null. Never 0 else: what is not known is torn later. */
u64 hotspot_z_reference(struct hotspot_z_places *p, struct memory *m, u64 stored);
/* A word that may be the address of an object, or a reference to one. 0: it is not. */
u64 hotspot_z_word(struct hotspot_z_places *p, struct memory *m, u64 word);
/*
 * Where the object is now that hotspot_z_reference() or hotspot_z_word() led to when number objects were found. 0: it
 * was moved, and the JVM has forgotten where.
 */
u64 hotspot_z_place(struct hotspot_z_places *p, u64 addr, u32 number);

/* Of heap_copy(): what says how references are decoded in these pages, to be read from the copy. */
struct hotspot_z_decoding {
	struct heap_stretch *items; /* malloc'd; in order of address */
	u32 n;
};

/* The colour that references have now; 0: another collector. */
u64 hotspot_z_good(const struct hotspot_heap_view *h, struct memory *now);
/* False: objects are being moved out of these pages right now, or no memory. */
bool hotspot_z_decoding(const struct hotspot_heap_view *h, struct memory *now, const struct hotspot_spaces *spaces,
        struct hotspot_z_decoding *ret);
/* All is read from such a copy from now on: nothing moves. */
void hotspot_z_places_freeze(struct hotspot_z_places *p);

#endif
