/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks with a mapping of their own: large ones, from M_MMAP_THRESHOLD on. The kernel joins neighbouring mappings, so
 * one may hold several. Each begins at a page with its header, or (memalign()) has it a little later.
 */
#include <string.h>

#include "binary/memory.h"
#include "glibc.h"

#define BLOCKS_MAX (1u << 24)

/* The size of the block whose mapping begins at `at`; 0: none does. From 2.43 on the header leaves out its end. */
static u64 block_at(struct glibc *g, u64 at, u64 end)
{
	u64 head[2], size, tail;

	if (pages_at(g->space->pages, at) != PAGE_PRESENT || !memory_read(g->space->memory, head, sizeof(head), at))
		return 0;
	size = head[1] & ~(u64)CHUNK_BITS;
	if (head[0] || (head[1] & CHUNK_BITS) != CHUNK_MAPPED || size < CHUNK_LEAST)
		return 0;
	tail = size & (PAGES_SIZE - 1);
	if (tail == PAGES_SIZE - CHUNK_HEADER)
		size += CHUNK_HEADER;
	else if (tail)
		return 0;
	return size <= end - at ? size : 0;
}

static void count(struct glibc *g, u64 at, u64 size)
{
	struct amount amount = {.blocks = 1, .size = size};

	pages_add(g->space->pages, at, at + size, &amount);
	amount_add(&g->mapped[size_class(size)], &amount);
	space_claim(g->space, at, at + size);
}

/* In a mapping that holds others' memory, too, a block may begin at any page; looked for only if some are missing. */
static void read_mapping(struct glibc *g, u64 start, u64 end, bool anywhere, u64 *bytes, u32 *blocks)
{
	for (u64 at = start; at < end && *blocks < BLOCKS_MAX;) {
		u64 size = block_at(g, at, end);

		if (size) {
			count(g, at, size);
			*bytes += size;
			++*blocks;
		} else if (!anywhere) {
			break;
		}
		at += size ? size : PAGES_SIZE;
	}
}

static bool belongs_to_arena(const struct glibc *g, const struct map_line *line)
{
	for (u32 i = 0; i < g->nsegments; i++)
		if (g->segments[i].start < line->end && line->start < g->segments[i].end)
			return true;
	return false;
}

struct error *glibc_read_mapped(struct glibc *g)
{
	const struct glibc_parameters *p = &g->parameters;
	u64 bytes = 0;
	u32 blocks = 0;

	for (u32 pass = 0; pass < 2; pass++)
		for (u32 i = 0; i < g->space->maps.nlines; i++) {
			const struct map_line *line = &g->space->maps.lines[i];

			if (pass && (!p->at || blocks >= p->mapped_blocks))
				break;
			if (space_is_anonymous(g->space, i) && !space_is_claimed(g->space, i) &&
			        !belongs_to_arena(g, line))
				read_mapping(g, line->start, line->end, pass, &bytes, &blocks);
		}
	if (p->at && blocks != p->mapped_blocks)
		return usage_say(g->usage, USAGE_NOTE,
		        "malloc counts %u blocks with mappings of their own (%llu bytes); %u (%llu bytes) were found",
		        p->mapped_blocks, (unsigned long long)p->mapped_bytes, blocks, (unsigned long long)bytes);
	return NULL;
}
