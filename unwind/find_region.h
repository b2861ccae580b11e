/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The search for the region of a program counter, among the regions of the process being walked. */
#ifndef YRT_FIND_REGION_H
#define YRT_FIND_REGION_H

#include "walk.h"

#define REGIONS_SEARCH_STEPS 13 /* 2^13 > REGIONS_MAX */

/* slab: of w->regions, which lie in one. NULL: pc is in none. Sums may overflow, and nothing branches, as in
 * find_rule.h. */
static inline __attribute__((always_inline)) const struct region *find_region(
        const struct walk *w, const u8 *slab, u64 pc)
{
	const struct region *region;
	u32 lo = w->regions, n = w->nregions;

	for (u32 i = 0; i < REGIONS_SEARCH_STEPS && n > 1; i++) {
		u32 skip = n / 2 * (u32)sizeof(*region);
		u64 start;
		s64 before; /* its sign: the borrow of pc - start */

		region = slab_at(slab, lo + skip);
		start = region->start;
		before = (s64)((~pc & start) | ((~pc | start) & (pc - start)));
		WALK_BARRIER(before);
		before >>= 63;
		WALK_BARRIER(before);
		lo += skip & ~(u32)before;
		n -= n / 2;
	}
	region = slab_at(slab, lo);
	return n && pc >= region->start && pc < region->end ? region : NULL;
}

#endif
