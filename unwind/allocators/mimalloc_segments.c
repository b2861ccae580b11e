/* SPDX-License-Identifier: Apache-2.0 */
/* mimalloc 2: segments. */
#include <stdlib.h>

#include "mimalloc.h"

#define HUGE_BLOCK (2ull << 30) /* packed: a larger block has the size of its page */
#define HEADER     MIMALLOC_SLICE
#define TRIES      3

/* Each again with keys of encoded lists (MI_SECURE, MI_DEBUG): 16 bytes more. */
static const struct mimalloc_layout layouts[] = {
        {"2.1.9 or later", 288, 96, false, 56},
        {"2.1.4 to 2.1.7", 264, 96, false, 56},
        {"2.0.9 to 2.1.2", 264, 80, true, 40},
        {"2.1.9 or later, secure", 288, 112, false, 72},
        {"2.1.4 to 2.1.7, secure", 264, 112, false, 72},
        {"2.0.9 to 2.1.2, secure", 264, 96, true, 56},
};
#define LAYOUTS (sizeof(layouts) / sizeof(*layouts))

/* What the header says before its slices; false: it is none of this layout. */
struct header {
	u64 own, all, entries; /* slices: the segment's, of all of it, in the array */
};

static bool read_header(const struct mimalloc_layout *l, const u8 *bytes, u64 n, struct header *ret)
{
	ret->all = mimalloc_word(bytes, l->slices - 40);
	ret->own = mimalloc_word(bytes, l->slices - 32);
	ret->entries = mimalloc_word(bytes, l->slices - 16);
	return ret->own && ret->own < ret->entries && ret->entries <= MIMALLOC_SLICES && ret->all >= ret->entries &&
	       ret->all < 1ull << 31 && mimalloc_half(bytes, l->slices - 24) <= 1 &&
	       l->slices + ret->entries * l->stride <= n;
}

/* An entry of the array that begins a run of slices. */
static bool read_slice(const struct mimalloc_layout *l, const u8 *entry, struct mimalloc_page *ret)
{
	u32 counts = mimalloc_half(entry, 10); /* capacity, reserved */

	*ret = (struct mimalloc_page){
	        .size = mimalloc_half(entry, 0) * MIMALLOC_SLICE,
	        .block = l->packed ? mimalloc_half(entry, 28) : mimalloc_word(entry, 40),
	        .used = l->packed ? mimalloc_half(entry, 24) : mimalloc_half(entry, 32) & 0xffff,
	        .capacity = counts & 0xffff,
	        .reserved = counts >> 16,
	};
	if (l->packed && ret->block >= HUGE_BLOCK && ret->reserved == 1)
		ret->block = ret->size;
	return ret->size && !mimalloc_half(entry, 4) && ret->used <= ret->capacity && ret->capacity <= ret->reserved;
}

/* Do runs follow each other up to the end? The first is as large as the segment's own. */
static bool fits(const struct mimalloc_layout *l, const u8 *bytes, const struct header *h)
{
	struct mimalloc_page page;
	u64 i = 0;

	while (i < h->entries) {
		if (!read_slice(l, bytes + l->slices + i * l->stride, &page))
			return false;
		if (i ? page.block && page.reserved && page.block > page.size / page.reserved
		      : page.size != h->own * MIMALLOC_SLICE || page.block != page.size)
			return false;
		i += page.size / MIMALLOC_SLICE;
	}
	return i == h->entries || i == h->all;
}

const struct mimalloc_layout *mimalloc_segment(const u8 *bytes, u64 n, u64 start,
        struct error *(*add)(void *arg, const struct mimalloc_page *page, u64 thread_free), void *arg,
        struct error **err)
{
	const struct mimalloc_layout *l = layouts;
	struct mimalloc_page page;
	struct header h;

	*err = NULL;
	while (l < layouts + LAYOUTS && (n < l->slices || !read_header(l, bytes, n, &h) || !fits(l, bytes, &h)))
		l++;
	if (l == layouts + LAYOUTS)
		return NULL;
	for (u64 i = h.own; !*err && i < h.entries; i += page.size / MIMALLOC_SLICE) {
		const u8 *entry = bytes + l->slices + i * l->stride;

		read_slice(l, entry, &page);
		page.start = start + i * MIMALLOC_SLICE;
		*err = add(arg, &page, page.block ? mimalloc_word(entry, l->thread_free) & ~3ull : 0);
	}
	return l;
}

static struct error *add_page(void *arg, const struct mimalloc_page *page, u64 thread_free)
{
	return mimalloc_add(arg, page, thread_free);
}

/* That does not fit may be in change. */
static bool looks_like_one(const u8 *bytes, u64 n)
{
	struct header h;
	bool ret = false;

	for (u32 i = 0; i < LAYOUTS && n >= layouts[i].slices; i++)
		ret |= read_header(&layouts[i], bytes, n, &h);
	return ret;
}

static struct error *read_segment(struct mimalloc *m, u64 start, u64 end)
{
	u64 n = end - start < HEADER ? end - start : HEADER;
	u8 *bytes = malloc(HEADER);
	const struct mimalloc_layout *l = NULL;
	struct error *err = bytes ? NULL : &error_no_memory;

	for (u32 i = 0; !err && !l && i < TRIES; i++) {
		if (!block_reader_fill(&m->reader, start, start + n))
			break;
		n = m->reader.end - start;
		memcpy(bytes, m->reader.block, n); /* adding a page reads elsewhere */
		l = mimalloc_segment(bytes, n, start, add_page, m, &err);
		if (!l && !looks_like_one(bytes, n))
			break;
		m->torn += !l;
	}
	if (l) {
		m->version = l->versions;
		mimalloc_own(m, start, start + mimalloc_word(bytes, l->slices - 32) * MIMALLOC_SLICE);
	}
	free(bytes);
	return err;
}

struct error *mimalloc_read_segments(struct mimalloc *m)
{
	const struct maps *maps = &m->space->maps;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < maps->nlines; i++) {
		u64 start = (maps->lines[i].start + MIMALLOC_SEGMENT - 1) & ~(MIMALLOC_SEGMENT - 1);

		if (!space_is_anonymous(m->space, i))
			continue;
		for (u64 at = start; !err && at >= maps->lines[i].start && at < maps->lines[i].end;
		        at += MIMALLOC_SEGMENT)
			err = read_segment(m, at, maps->lines[i].end);
	}
	return err;
}
