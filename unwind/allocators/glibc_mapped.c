/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks with a mapping of their own: large ones, from M_MMAP_THRESHOLD on. The kernel joins neighbouring mappings, so
 * one may hold several. Each begins at a page with its header, or (memalign()) has it a little later.
 */
#include <stdlib.h>

#include "binary/memory.h"
#include "glibc.h"
#include "grow.h"
#include "search.h"

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

/* Blocks that were found so far; those of the first pass ascend. */
struct found {
	u64 *at, bytes;
	u32 n, first_pass;
};

static struct error *count(struct glibc *g, u64 at, u64 size, struct found *f)
{
	struct amount amount = {.blocks = 1, .size = size};
	struct error *err = grow(&f->at, f->n, sizeof(*f->at));

	if (err)
		return err;
	f->at[f->n++] = at;
	f->bytes += size;
	pages_add(g->space->pages, at, at + size, &amount);
	amount_add(&g->mapped[size_class(size)], &amount);
	space_claim(g->space, at, at + size);
	return NULL;
}

static bool is_counted(const struct found *f, u64 at)
{
	u32 i = SEARCH(f->first_pass, k, f->at[k] < at);

	return i < f->first_pass && f->at[i] == at;
}

/* In a mapping that holds others' memory, too, a block may begin at any page; looked for only if some are missing. */
static struct error *read_mapping(struct glibc *g, u64 start, u64 end, bool anywhere, struct found *f)
{
	struct error *err = NULL;

	u32 most = anywhere ? g->parameters.mapped_blocks : BLOCKS_MAX;

	for (u64 at = start; !err && at < end && f->n < most;) {
		u32 heap = glibc_segment_at(g, at);
		u64 size;

		if (heap < g->nsegments) { /* the kernel has joined a heap that is full with what lies behind it */
			at = (g->segments[heap].end + PAGES_SIZE - 1) & ~(PAGES_SIZE - 1);
			continue;
		}
		size = block_at(g, at, end);
		if (!size && !anywhere)
			break;
		if (size && !is_counted(f, at))
			err = count(g, at, size, f);
		at += size ? size : PAGES_SIZE;
	}
	return err;
}

static bool belongs_to_arena(const struct glibc *g, const struct map_line *line)
{
	for (u32 i = 0; i < g->nsegments; i++)
		if (g->segments[i].start < line->end && line->start < g->segments[i].end)
			return true;
	return false;
}

static struct error *pass(struct glibc *g, bool anywhere, struct found *f)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < g->space->maps.nlines; i++) {
		const struct map_line *line = &g->space->maps.lines[i];

		if (space_is_anonymous(g->space, i) &&
		        (anywhere || (!space_is_claimed(g->space, i) && !belongs_to_arena(g, line))))
			err = read_mapping(g, line->start, line->end, anywhere, f);
	}
	return err;
}

struct error *glibc_read_mapped(struct glibc *g)
{
	const struct glibc_parameters *p = &g->parameters;
	struct found f = {0};
	struct error *err = pass(g, false, &f);

	f.first_pass = f.n;
	if (!err && p->at && f.n < p->mapped_blocks)
		err = pass(g, true, &f);
	if (!err && p->at && f.n != p->mapped_blocks)
		err = usage_say(g->usage, USAGE_NOTE,
		        "malloc counts %u blocks with mappings of their own (%llu bytes); %u (%llu bytes) were found",
		        p->mapped_blocks, (unsigned long long)p->mapped_bytes, f.n, (unsigned long long)f.bytes);
	free(f.at);
	return err;
}
