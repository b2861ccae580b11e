/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* References of generational ZGC and its tables of moved objects, as the walker (rules: hotspot_objects.h) and
 * user space read them. */
#ifndef YRT_HOTSPOT_Z_H
#define YRT_HOTSPOT_Z_H

#include <types.h>

#define Z_REMAPPED_SHIFT   12
#define Z_REMEMBERED       0x30ull            /* both: a reference from the old generation into itself */
#define Z_ENTRY_TO_MASK    ((1ull << 45) - 1) /* of an entry: 1 | to << 1 | from << 46 (zForwardingEntry.hpp) */
#define Z_ENTRY_FROM_SHIFT 46
#define Z_PROBES           32

static inline u32 hs_remapped(u64 stored)
{
	return stored >> Z_REMAPPED_SHIFT & 15;
}

/* On x86 the address follows the one bit that is set of four (zAddress.hpp: ZPointerRemappedShift). */
static inline u64 hs_z_address(u64 stored)
{
	u32 remapped = hs_remapped(stored);

	return stored >> (Z_REMAPPED_SHIFT + (remapped == 8 ? 4 : remapped == 4 ? 3 : remapped == 2 ? 2 : 1));
}

/* Has the old generation, has the young one moved objects since a reference had this state? */
static inline bool hs_z_old_moved(u32 then, u32 now)
{
	return !(then & (now & 3 ? 3 : 12));
}

static inline bool hs_z_young_moved(u32 then, u32 now)
{
	return !(then & (now & 5 ? 5 : 10));
}

static inline u32 hs_z_hash(u32 key) /* zHash.inline.hpp */
{
	key = ~key + (key << 15);
	key ^= key >> 12;
	key += key << 2;
	key ^= key >> 4;
	key *= 2057;
	return key ^ key >> 16;
}

#endif
