/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The search for the rule of a program counter, in the unwind table of its region (shared/cfi.h). */
#ifndef YRT_FIND_RULE_H
#define YRT_FIND_RULE_H

#include "walk.h"

#define ROWS_SEARCH_STEPS 8 /* a page has at most 256 rows */

/*
 * at: of a table that lies in slab; offset: from the first byte that it covers. NULL: it does not cover that. Sums are
 * of 32 bits, so that they may overflow: the verifier knows nothing of them then, and follows one path where it would
 * follow each whose sum has other bounds. There is no branch on what a row says: the verifier would follow both ways.
 */
static inline __attribute__((always_inline)) const struct cfi_rule *rule_in(const u8 *slab, u32 at, u64 offset)
{
	const struct cfi_table *table = slab_at(slab, at);
	u64 page = offset >> CFI_PAGE_BITS;
	const u16 *index;
	u32 lo, n, row;

	if (page >= table->npages)
		return NULL;
	index = (const u16 *)(slab + ((at + table->index + (u32)page * 2) & (ARENA_SLAB_SIZE - 2)));
	lo = at + table->rows + index[0] * 4u;
	n = (u16)(index[1] - index[0]);
	offset &= CFI_PAGE_SIZE - 1;
	for (u32 i = 0; i < ROWS_SEARCH_STEPS && n > 1; i++) {
		u32 skip = n / 2 * 4;
		s32 before; /* its sign: does the row begin behind the offset? */

		row = *(const u32 *)(slab + ((lo + skip) & (ARENA_SLAB_SIZE - 4)));
		before = (s32)offset - (s32)(row & (CFI_PAGE_SIZE - 1));
		WALK_BARRIER(before); /* these keep the compiler from making a branch of it */
		before >>= 31;
		WALK_BARRIER(before);
		lo += skip & ~(u32)before;
		n -= n / 2;
	}
	row = *(const u32 *)(slab + (lo & (ARENA_SLAB_SIZE - 4)));
	return slab_at(slab, at + table->rules + (row >> CFI_PAGE_BITS) * (u32)sizeof(struct cfi_rule));
}

/* The rule of a region with a table, or NULL if that does not make sense. */
static inline __attribute__((always_inline)) const struct cfi_rule *find_rule(
        struct walk *w, const struct region *region, u64 pc)
{
	const u8 *slab = walk_slab(w, region->table);

	return slab ? rule_in(slab, region->table, pc - region->origin) : NULL;
}

#endif
