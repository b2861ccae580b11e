/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target's memory through a cache of pages. Each page is read once, so that a program sees one value per address;
 * where addresses ascend, 64 KiB are read at once. What a whole page cannot give (a core that is cut) is read as it
 * is asked for. At 256 MiB the cache starts again.
 */
#ifndef YRT_YLANG_PAGES_H
#define YRT_YLANG_PAGES_H

#include "unwind/binary/memory.h"
#include "unwind/table.h"

#define Y_PAGE 4096u

struct y_pages {
	struct memory *memory;
	struct table table; /* page's number + 1: its bytes, or 1: it cannot be read whole */
	u64 last;           /* the number + 1 of the page below */
	const u8 *bytes;
	u64 next; /* the number behind what was read last */
	u8 **chunks;
	u32 nchunks;
	u8 *room; /* the unused part of the last chunk */
	u32 left; /* pages that fit there */
	u64 read; /* pages, in all */
};

void y_pages_begin(struct y_pages *p, struct memory *memory);
/* Forgets all pages. */
void y_pages_end(struct y_pages *p);
/* False: not all of it can be read; *at: the first address that cannot. */
bool y_pages_read(struct y_pages *p, void *dst, u64 size, u64 addr, u64 *at);
/* How many of the pages have other contents by now. */
u64 y_pages_changed(struct y_pages *p);

/* The bytes of [addr, addr + size), which do not cross a page; NULL: use y_pages_read(). */
static inline const u8 *y_pages_at(struct y_pages *p, u64 addr, u64 size)
{
	return addr / Y_PAGE + 1 == p->last && addr % Y_PAGE + size <= Y_PAGE ? p->bytes + addr % Y_PAGE : NULL;
}

#endif
