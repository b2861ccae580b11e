/* SPDX-License-Identifier: Apache-2.0 */
#include "regions_fit.h"

#include <stdbool.h>

/* Code without a file or a runtime. */
static bool is_loose(const struct region *r)
{
	return !r->module && !r->runtime && !r->unmapped;
}

/* What lies between two mappings is no place for return addresses: nor is the whole then. */
static u32 merge(struct region *items, u32 n)
{
	bool open = false; /* the last one that is kept may grow */
	u32 kept = 0;

	for (u32 i = 0; i < n; i++) {
		bool grows = is_loose(&items[i]) && !items[i].table;

		if (grows && open) {
			items[kept - 1].unmapped |= items[kept - 1].end != items[i].start;
			items[kept - 1].end = items[i].end;
		} else {
			items[kept++] = items[i];
		}
		open = grows;
	}
	return kept;
}

static u32 forget_rows(struct region *items, u32 n)
{
	u32 count = 0;

	for (u32 i = 0; i < n; i++)
		if (is_loose(&items[i]) && items[i].table) {
			items[i].table = 0;
			count++;
		}
	return count;
}

/* 0 is kept first. */
static u32 rank(const struct region *r)
{
	return r->module || r->probed ? 0 : r->runtime ? 1 : 2;
}

static u32 leave_out(struct region *items, u32 n, u32 most)
{
	u32 of_rank[3] = {0}, room[3], kept = 0;

	for (u32 i = 0; i < n; i++)
		of_rank[rank(&items[i])]++;
	for (u32 i = 0, left = most; i < 3; i++) {
		room[i] = of_rank[i] < left ? of_rank[i] : left;
		left -= room[i];
	}
	for (u32 i = 0; i < n; i++)
		if (room[rank(&items[i])]) {
			room[rank(&items[i])]--;
			items[kept++] = items[i];
		}
	return kept;
}

u32 regions_fit(struct region *items, u32 n, u32 most, struct regions_lost *lost)
{
	u32 kept;

	*lost = (struct regions_lost){0};
	if (n > most)
		n = merge(items, n);
	if (n > most) {
		lost->rows = forget_rows(items, n);
		n = merge(items, n);
	}
	kept = n > most ? leave_out(items, n, most) : n;
	lost->regions = n - kept;
	return kept;
}
