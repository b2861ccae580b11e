/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches of threads (tcache). Each is a block in some arena, and what is in it looks used in its chunk's header. Found
 * by structure: a bin has a list exactly if its count says so, and each block of a list has the bin's size and, from
 * 2.29 on, the same key.
 */
#include <stdlib.h>
#include <string.h>

#include "glibc.h"

#define SMALL_BINS 64
#define BINS_MOST  76 /* 2.42: and 12 of large blocks */

/* sizeof(struct tcache_perthread_struct) as a chunk */
#define CHUNK_2_26 0x250u /* counts are bytes */
#define CHUNK_2_30 0x290u /* 16 bits */
#define CHUNK_2_42 0x300u /* they count free places, down from tcache_count */

static u32 bins_of(u64 size)
{
	return size == CHUNK_2_42 ? BINS_MOST : SMALL_BINS;
}

static u32 count_at(u64 size, const u8 *content, u32 bin)
{
	u16 wide;

	if (size == CHUNK_2_26)
		return content[bin];
	memcpy(&wide, content + 2ul * bin, sizeof(wide));
	return wide;
}

static u64 entry_at(u64 size, const u8 *content, u32 bin)
{
	u64 entry;

	memcpy(&entry, content + (size == CHUNK_2_26 ? 64 : 2ul * bins_of(size)) + 8ul * bin, sizeof(entry));
	return entry;
}

bool glibc_is_cache(const struct glibc *g, u64 size, const u8 *content)
{
	u32 full = size == CHUNK_2_42 ? 0 : ~0u, lists = 0;

	if (size != CHUNK_2_26 && size != CHUNK_2_30 && size != CHUNK_2_42)
		return false;
	if (size == CHUNK_2_42) /* the count of an empty bin */
		for (u32 i = 0; i < SMALL_BINS; i++)
			full = count_at(size, content, i) > full ? count_at(size, content, i) : full;
	for (u32 i = 0; i < bins_of(size); i++) {
		u64 entry = entry_at(size, content, i);
		u32 count = count_at(size, content, i);

		if (entry & 15 || (size != CHUNK_2_42 && !entry != !count))
			return false;
		if (size == CHUNK_2_42 && i < SMALL_BINS && full && entry && count > full)
			return false;
		lists += entry != 0;
	}
	return lists;
}

static void take_away(struct amount *from, const struct amount *what)
{
	from->blocks -= from->blocks < what->blocks ? from->blocks : what->blocks;
	from->size -= from->size < what->size ? from->size : what->size;
	from->resident -= from->resident < what->resident ? from->resident : what->resident;
	from->swapped -= from->swapped < what->swapped ? from->swapped : what->swapped;
}

/* A block that the walk took for used is in a cache. */
static struct error *move(struct glibc *g, u64 chunk, u64 size)
{
	u32 segment = glibc_segment_at(g, chunk), arena;
	struct amount amount = {.blocks = 1, .size = size};
	struct glibc_classes *used;

	if (segment == g->nsegments || size > g->segments[segment].end - chunk)
		return NULL;
	arena = g->segments[segment].arena;
	used = g->arenas[arena].states[GLIBC_IN_USE];
	if (!used || !used->of[size_class(size)].blocks)
		return NULL;
	pages_add(g->space->pages, chunk, chunk + size, &amount);
	take_away(&used->of[size_class(size)], &amount);
	return glibc_count(g, arena, GLIBC_CACHED, chunk, size);
}

/* The blocks of one bin, if all have its size. */
static struct error *move_list(struct glibc *g, u32 bin, u64 entry)
{
	u64 *chunks = NULL, size, expected = CHUNK_LEAST + 16ull * bin;
	u32 n = 0;
	struct error *err = glibc_read_list(g, entry - 16, 16, &chunks, &n);

	for (u32 i = 0; !err && i < n; i++) {
		if (!block_reader_read(&g->reader, &size, 8, chunks[i] + 8))
			break;
		size &= ~(u64)CHUNK_BITS;
		if (bin < SMALL_BINS && size != expected)
			break;
		err = move(g, chunks[i], size);
	}
	free(chunks);
	return err;
}

struct error *glibc_read_caches(struct glibc *g)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < g->ncaches; i++) {
		u8 content[CHUNK_2_42];
		u64 head[2], size;

		if (!block_reader_read(&g->reader, head, sizeof(head), g->caches[i]))
			continue;
		size = head[1] & ~(u64)CHUNK_BITS;
		if (size > sizeof(content) || size < CHUNK_2_26 ||
		        !block_reader_read(&g->reader, content, size - 8, g->caches[i] + CHUNK_HEADER) ||
		        !glibc_is_cache(g, size, content))
			continue;
		for (u32 bin = 0; !err && bin < bins_of(size); bin++)
			if (entry_at(size, content, bin))
				err = move_list(g, bin, entry_at(size, content, bin));
	}
	return err;
}
