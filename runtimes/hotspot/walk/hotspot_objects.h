/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Part of hotspot_walk.c: references in the heap, and where an object is now if a collector has moved it.
 *
 * Shenandoah: the first word of an object that was copied leads to the copy (shenandoahForwarding.inline.hpp).
 *
 * Generational ZGC: a reference has four bits, one of which is set, for the state of the two generations when the
 * reference was last checked. The state of a generation changes when it begins to move objects (zAddress.cpp:
 * flip_*_relocate_start()). A reference with another state than the current one must be looked up in the table of the
 * generation that has moved since (zBarrier.inline.hpp: remap_generation()): a hash table for each page
 * (zForwarding.inline.hpp: find()). An object that the table does not hold is where it was, as long as the page was not
 * given up or compacted in place: then the page's reference count is 0 or less (zForwarding.cpp: retain_page()). The
 * tables live until all references have been checked.
 */
#include "hotspot_z.h"

#define MARK_FORWARDED 3 /* markWord.hpp: the rest is where the object is now */

/* The address of a reference as it is stored; 0: null, or none at all. */
static inline u64 hs_decode(const struct hotspot_frozen *f, u64 stored)
{
	if (f->oops == HOTSPOT_OOP_NARROW)
		return stored ? f->oop_base + (stored << (f->oop_shift & 63)) : 0;
	return f->oops == HOTSPOT_OOP_COLOURED ? hs_z_address(stored) : stored;
}

/* A reference in the heap as it is stored. False: unreadable. */
static inline bool hs_load_oop(struct walk *w, const struct hotspot_frozen *f, u64 addr, u64 *ret)
{
	u32 low;

	if (f->oops != HOTSPOT_OOP_NARROW)
		return walk_read(w, ret, 8, addr);
	if (!walk_read(w, &low, 4, addr))
		return false;
	*ret = low;
	return true;
}

/* The current address of the object that was at addr, in a page that this ZForwarding describes. 0: not known. */
WALK_GLOBAL u64 hotspot_z_forwarded(struct walk *w, u64 addr, u64 forwarding)
{
	const struct hotspot_vm *vm;
	u64 start, shift, length, entry = 0, index;
	u32 slot, count;

	WALK_CHECK(w);
	vm = hs_vm_here(w);
	if (!vm || !walk_read(w, &start, 8, forwarding + vm->frozen.z.start) ||
	        !walk_read(w, &shift, 8, forwarding + vm->frozen.z.alignment) ||
	        !walk_read(w, &length, 8, forwarding + vm->frozen.z.length))
		return 0;
	index = ((addr & vm->frozen.z.offset_mask) - start) >> (shift & 63);
	slot = hs_z_hash((u32)index);
	for (u32 i = 0; i < Z_PROBES; i++, slot++) {
		if (!walk_read(w, &entry, 8, forwarding + vm->frozen.z.entries + (slot & (length - 1)) * 8))
			return 0;
		if (!(entry & 1) || entry >> Z_ENTRY_FROM_SHIFT == index)
			break;
	}
	if (!(entry & 1))
		return vm->frozen.z.ref_count && walk_read(w, &count, 4, forwarding + vm->frozen.z.ref_count) &&
		                       (s32)count > 0
		               ? addr
		               : 0;
	return entry >> Z_ENTRY_FROM_SHIFT == index
	               ? (addr & ~vm->frozen.z.offset_mask) | (entry >> 1 & Z_ENTRY_TO_MASK)
	               : 0;
}

/* The ZForwarding of the page that addr was in; 0: it was not moved. False: not known. */
static inline bool hs_z_forwarding(struct walk *w, const struct hotspot_z *z, u32 old, u64 addr, u64 *ret)
{
	u64 granule = (addr & z->offset_mask) >> (z->granule_shift & 63);

	return granule < z->granules && walk_read(w, ret, 8, (old ? z->old : z->young) + granule * 8);
}

/* The same for a coloured reference. */
WALK_GLOBAL u64 hotspot_z_object(struct walk *w, u64 stored)
{
	const struct hotspot_vm *vm;
	u64 good, addr, forwarding = 0;
	u32 now, then = hs_remapped(stored), old;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm || !walk_read(w, &good, 8, vm->frozen.z.good_mask_at) || !then || then & (then - 1))
		return 0;
	addr = hs_decode(&vm->frozen, stored);
	now = hs_remapped(good);
	if (then == now || !addr)
		return addr;
	old = hs_z_old_moved(then, now);
	if (old && hs_z_young_moved(then, now) && (stored & Z_REMEMBERED) != Z_REMEMBERED) {
		if (!hs_z_forwarding(w, &vm->frozen.z, 0, addr, &forwarding))
			return 0;
		old = !forwarding;
	}
	if (!hs_z_forwarding(w, &vm->frozen.z, old, addr, &forwarding))
		return 0;
	return forwarding ? hotspot_z_forwarded(w, addr, forwarding) : addr;
}

/* Where an object is now whose first word may lead to its copy. 0: not known. */
static inline u64 hs_moved_to(struct walk *w, u64 addr)
{
	u64 mark;

	if (!walk_read(w, &mark, 8, addr))
		return 0;
	return (mark & MARK_FORWARDED) == MARK_FORWARDED ? mark & ~7ull : addr;
}

/* The object of a stored reference; without ZGC it may still have been moved. 0: none, or not known. */
static inline u64 hs_object(struct walk *w, const struct hotspot_frozen *f, u64 stored)
{
	return f->oops == HOTSPOT_OOP_COLOURED ? hotspot_z_object(w, stored) : hs_decode(f, stored);
}

/* The object that a coloured reference leads to; 0: none, or not known. */
static inline u64 hs_z_follow(struct walk *w, u64 at)
{
	u64 stored;

	return walk_read(w, &stored, 8, at) ? hotspot_z_object(w, stored) : 0;
}
