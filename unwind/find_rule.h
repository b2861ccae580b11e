/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The search for the rule of a program counter, in the unwind table of its region (shared/cfi.h). */
#ifndef YRT_FIND_RULE_H
#define YRT_FIND_RULE_H

#include "walk.h"

#define ROWS_SEARCH_STEPS 8 /* a page has at most 256 rows */

/*
 * The arena offset of the rule, in a table at this offset, whose slab this is; offset: from the first byte that the
 * table covers. 0: it does not cover that. Sums are of 32 bits, so that they may overflow: the verifier knows nothing
 * of them then, and follows one path where it would follow each whose sum has other bounds. There is no branch on what
 * a row says: the verifier would follow both ways.
 */
static inline __attribute__((always_inline)) u32 rule_at(const struct slab *slab, u32 at, u64 offset)
{
	const struct cfi_table *table;
	u64 page = offset >> CFI_PAGE_BITS;
	const u16 *index;
	u32 lo, n, row;

	table = slab_at(slab->byte, at);
	if (page >= table->npages)
		return 0;
	index = (const u16 *)(slab->byte + ((at + table->index + (u32)page * 2) & (ARENA_SLAB_SIZE - 2)));
	lo = at + table->rows + index[0] * 4u;
	n = (u16)(index[1] - index[0]);
	offset &= CFI_PAGE_SIZE - 1;
	for (u32 i = 0; i < ROWS_SEARCH_STEPS && n > 1; i++) {
		u32 skip = n / 2 * 4;
		s32 before; /* its sign: does the row begin behind the offset? */

		row = *(const u32 *)(slab->byte + ((lo + skip) & (ARENA_SLAB_SIZE - 4)));
		before = (s32)offset - (s32)(row & (CFI_PAGE_SIZE - 1));
		WALK_BARRIER(before); /* these keep the compiler from making a branch of it */
		before >>= 31;
		WALK_BARRIER(before);
		lo += skip & ~(u32)before;
		n -= n / 2;
	}
	row = *(const u32 *)(slab->byte + (lo & (ARENA_SLAB_SIZE - 4)));
	return at + table->rules + (row >> CFI_PAGE_BITS) * (u32)sizeof(struct cfi_rule);
}

/* The same, as a call: the verifier checks it once, and not for each place and round of a loop. */
WALK_GLOBAL u32 find_rule_at(const struct slab *slab, u32 at, u64 offset)
{
	WALK_CHECK(slab);
	return rule_at(slab, at, offset);
}

/* The rule in a table at this offset, whose slab this is; NULL: the table does not cover that. */
static inline const struct cfi_rule *rule_in(const u8 *slab, u32 at, u64 offset)
{
	u32 rule = find_rule_at((const struct slab *)slab, at, offset);

	return rule ? slab_at(slab, rule) : NULL;
}

/* The rule of a region with a table, or NULL if that does not make sense. */
static inline const struct cfi_rule *find_rule(struct walk *w, const struct region *region, u64 pc)
{
	const u8 *slab = walk_slab(w, region->table);

	return slab ? rule_in(slab, region->table, pc - region->origin) : NULL;
}

/* The same without a call, for functions at the end of a chain of eight. */
static inline __attribute__((always_inline)) const struct cfi_rule *find_rule_here(
        struct walk *w, const struct region *region, u64 pc)
{
	const u8 *slab = walk_slab(w, region->table);
	u32 rule = slab ? rule_at((const struct slab *)slab, region->table, pc - region->origin) : 0;

	return rule ? slab_at(slab, rule) : NULL;
}

#endif
