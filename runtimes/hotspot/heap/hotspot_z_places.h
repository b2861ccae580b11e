/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of ZGC move while they are looked for: where one is now that a reference led to a while ago. Its address is
 * that of the reference for as long as the page there is the one that was there when the first reference to it was met;
 * a page that was moved away is known by its ZPage and its _seqnum (zPage.hpp, 15 to 28).
 */
#ifndef YRT_HOTSPOT_Z_PLACES_H
#define YRT_HOTSPOT_Z_PLACES_H

#include "hotspot_heap_view.h"

struct hotspot_z_places; /* of one reading */

/* *ret NULL: another collector. now: memory as it is now. */
struct error *hotspot_z_places_create(struct hotspot_heap_view *h, struct memory *now, struct hotspot_z_places **ret);
void hotspot_z_places_destroy(struct hotspot_z_places *p); /* NULL is fine */
/*
 * To be called for each object. True: a collection has begun, or begun to move objects, since it was called last:
 * references that were read before lead elsewhere by now.
 */
bool hotspot_z_places_changed(struct hotspot_z_places *p);
/* A reference as it was stored, of an object or a root. 0: null. Never 0 else: what is not known is torn later. */
u64 hotspot_z_reference(struct hotspot_z_places *p, struct memory *m, u64 stored);
/* A word that may be the address of an object, or a reference to one. 0: it is not. */
u64 hotspot_z_word(struct hotspot_z_places *p, struct memory *m, u64 word);
/* Where the object is now that hotspot_z_reference() or hotspot_z_word() has led to. */
u64 hotspot_z_place(struct hotspot_z_places *p, u64 addr);

#endif
