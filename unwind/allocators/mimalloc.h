/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mimalloc 2 (2.0.9 to 2.4.1) and 3 (3.0.1 to 3.4.3), shared or linked statically, stripped or not; its structures are
 * those of include/mimalloc/types.h of these versions. Both divide memory into slices of 64 KiB. A page is one or more
 * of them, with blocks of one size; how many are out, and a list of those that other threads gave back, stand in its
 * mi_page_t.
 *
 * Version 2 has segments: 32 MiB (or more, of a huge block) that begin at a multiple of 32 MiB with mi_segment_t, whose
 * array of slices says where each page and each run of free slices begins. The first run is the segment's own. So a
 * segment is found and checked by itself.
 *
 * Version 3 has a map of two levels over all addresses (src/page-map.c): _mi_page_map points to 2^18 words (2^19 with
 * 48 bits of addresses), each to 2^13, one for a slice, which lead to its mi_page_t. The first word leads behind the
 * last one. Pages lie in arenas, each of which begins with mi_arena_t; a page's memid names its arena.
 */
#ifndef YRT_MIMALLOC_H
#define YRT_MIMALLOC_H

#include <string.h>

#include "block_reader.h"
#include "space.h"
#include "usage.h"

#define MIMALLOC_SLICE       0x10000ull
#define MIMALLOC_SEGMENT     (512 * MIMALLOC_SLICE)
#define MIMALLOC_PAGE_BYTES  128 /* of a mi_page_t, that are read */
#define MIMALLOC_SLICES      512 /* that a segment's array has */
#define MIMALLOC_SUB_ENTRIES 8192u

/* Version 2: where things are in a segment, and in an entry of its array of slices. */
struct mimalloc_layout {
	const char *versions;
	u32 slices, stride;
	bool packed; /* used and the size of blocks are words of 32 bits; else 16 and 64 */
	u32 thread_free;
};

struct mimalloc_page {
	u64 start, size;              /* of its slices */
	u64 block;                    /* bytes of a block; 0: free slices */
	u32 used, capacity, reserved; /* blocks: out, made so far, that there is room for */
};

struct mimalloc {
	struct space *space;
	struct usage *usage;
	struct block_reader reader;
	const char *version;
	struct mimalloc_page *pages; /* by address, after sorting */
	u32 npages;
	struct amount metadata, free; /* free slices that are in no page */
	struct mimalloc_arena {
		u64 at, start, end; /* start: behind what is its own */
	} * arenas;
	u32 narenas;
	u64 torn;
};

static inline u64 mimalloc_word(const u8 *bytes, u32 at)
{
	u64 ret;

	memcpy(&ret, bytes + at, sizeof(ret));
	return ret;
}

static inline u32 mimalloc_half(const u8 *bytes, u32 at)
{
	u32 ret;

	memcpy(&ret, bytes + at, sizeof(ret));
	return ret;
}

/*
 * Decodes n bytes at the start of a segment: calls add() with each page, and with each run of free slices. NULL: it is
 * none of a known layout, or is being changed.
 */
const struct mimalloc_layout *mimalloc_segment(const u8 *bytes, u64 n, u64 start,
        struct error *(*add)(void *arg, const struct mimalloc_page *page, u64 thread_free), void *arg,
        struct error **err);
/* Decodes a mi_page_t of version 3 at `at`, to which the map leads for a slice. False: it is none. */
bool mimalloc_page(const u8 bytes[MIMALLOC_PAGE_BYTES], u64 at, u64 slice, struct mimalloc_page *ret);

/* Adds the pages of either version. */
struct error *mimalloc_read_segments(struct mimalloc *m);
/* [start, end): the variables of a file. */
struct error *mimalloc_read_map(struct mimalloc *m, u64 start, u64 end);
/* Adds a page; blocks that are on the list of other threads are no longer out. */
struct error *mimalloc_add(struct mimalloc *m, const struct mimalloc_page *page, u64 thread_free);
/* Memory that is mimalloc's own. */
void mimalloc_own(struct mimalloc *m, u64 start, u64 end);

#endif
