/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "binary/memory.h"
#include "cleanup.h"
#include "glibc.h"
#include "grow.h"
#include "search.h"
#include "sort_keys.h"

/*
 * struct malloc_par (mp_): found by sbrk_base, the start of what brk() gave, with the counts of mapped memory before it
 * and the numbers of thread caches behind it. It follows no order of versions but for what lies before.
 */

#define CACHE_BINS_MAX  64
#define CACHE_COUNT_MAX 65535

/*
 * w[0] is sbrk_base. Before it: mapped_mem, max_mapped_mem; before these n_mmaps, n_mmaps_max, max_n_mmaps,
 * no_dyn_threshold as ints, which end there until 2.34, and 4 bytes earlier from 2.35 on.
 */
static bool is_parameters(const u64 *w)
{
	return w[-2] <= w[-1] && !(w[-2] & (PAGES_SIZE - 1)) && !(w[-1] & (PAGES_SIZE - 1)) && w[1] &&
	       w[1] <= CACHE_BINS_MAX && w[3] <= CACHE_COUNT_MAX && w[2] >= 24;
}

static u32 mapped_blocks(const u64 *w)
{
	const u32 *ints = (const u32 *)(w - 2);
	const u32 *last = ints[-1] <= 1 && ints[-2] <= 1 && ints[-3] >= ints[-5] ? ints - 1 : ints;

	return last[-4];
}

static void glibc_read_parameters(struct glibc *g, u64 start, u64 end)
{
	u64 size = g->data_size & ~7ull;
	cleanup(free) u64 *words = calloc(1, size + 64);

	if (!words)
		return;
	for (u64 at = 0; at < size; at += PAGES_SIZE) {
		u64 n = size - at < PAGES_SIZE ? size - at : PAGES_SIZE;

		if (pages_at(g->space->pages, g->data + at) != PAGE_ABSENT)
			memory_read(g->space->memory, (u8 *)words + at, n, g->data + at);
	}
	for (u64 i = 6; i + 4 < size / 8; i++)
		if (words[i] >= start && words[i] <= end && is_parameters(words + i)) {
			g->parameters = (struct glibc_parameters){.at = g->data + 8 * i,
			        .sbrk_base = words[i],
			        .mapped_bytes = words[i - 2],
			        .mapped_blocks = mapped_blocks(words + i)};
			return;
		}
}

#define HEAPS_MAX  (1u << 20)
#define LIST_MAX   (1u << 24)
#define LOOK_AHEAD 64
#define NEXT       (2 * GLIBC_BINS * 8 + 16) /* offsets from the bins */
#define SYSTEM     (NEXT + 3 * 8)
#define TOP        (-16)
#define HEAP_SIZES 11 /* 1 MiB to 1 GiB: 64 MiB, other with huge pages */

struct heap_info {
	u64 arena, previous, size, writable;
};

static bool read_word(struct glibc *g, u64 addr, u64 *ret)
{
	return memory_read(g->space->memory, ret, 8, addr);
}

/* --- free lists --- */

static struct error *add_address(u64 **list, u32 *n, u64 addr)
{
	struct error *err = grow(list, *n, sizeof(**list));

	if (!err)
		(*list)[(*n)++] = addr;
	return err;
}

/* The chunk that the link of a chunk leads to; 0: none, or it is unreadable. */
static u64 next_chunk(struct glibc *g, u64 chunk, u64 bias, bool mangled)
{
	u64 value;

	if (!block_reader_read(&g->reader, &value, 8, chunk + 16))
		return 0;
	value = glibc_link(chunk + 16, value, mangled);
	return value > bias ? value - bias : 0;
}

/* Do the links of a list of chunks of one size lead to its end if they are read so? */
static bool leads_to_end(struct glibc *g, u64 chunk, u64 bias, bool mangled)
{
	u64 size = 0, here;

	for (u32 i = 0; chunk && i < LOOK_AHEAD; i++) {
		if (chunk & 15 || !block_reader_read(&g->reader, &here, 8, chunk + 8) ||
		        (i && (here ^ size) & ~(u64)CHUNK_BITS))
			return false;
		size = here;
		chunk = next_chunk(g, chunk, bias, mangled);
	}
	return true;
}

/*
 * The chunks of a list of chunks of one size, whose links lie bias bytes behind their starts' links. From 2.32 on links
 * are mangled. A list that another thread changes meanwhile may end early.
 */
struct error *glibc_read_list(struct glibc *g, u64 first, u64 bias, u64 **ret, u32 *n)
{
	bool mangled = leads_to_end(g, first, bias, true);
	struct error *err = NULL;

	if (!mangled && !leads_to_end(g, first, bias, false))
		return NULL;
	for (u32 i = 0; !err && first && !(first & 15) && i < LIST_MAX; i++) {
		err = add_address(ret, n, first);
		first = next_chunk(g, first, bias, mangled);
	}
	return err;
}

/* A list of two links, which begins and ends at its bin. */
static struct error *read_unsorted(struct glibc *g, struct glibc_arena *a)
{
	u64 bin = a->at + g->bins - 16, at;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < LIST_MAX; i++) {
		if (!block_reader_read(&g->reader, &at, 8, (i ? a->unsorted[i - 1] : bin) + 16) || at == bin || at & 15)
			break;
		err = add_address(&a->unsorted, &a->nunsorted, at);
	}
	sort_keys(a->unsorted, a->nunsorted, sizeof(u64));
	return err;
}

static struct error *read_fast(struct glibc *g, struct glibc_arena *a)
{
	u64 at = g->bins - 16 - 8 * GLIBC_FAST_BINS, bins[GLIBC_FAST_BINS];
	struct error *err = NULL;

	if (g->bins < 16 + 8 * GLIBC_FAST_BINS + 8 || !memory_read(g->space->memory, bins, sizeof(bins), a->at + at))
		return NULL; /* 2.43 has none */
	for (u32 i = 0; !err && i < GLIBC_FAST_BINS; i++)
		if (bins[i])
			err = glibc_read_list(g, bins[i], 0, &a->fast, &a->nfast);
	sort_keys(a->fast, a->nfast, sizeof(u64));
	return err;
}

/* --- heaps --- */

static struct error *add_segment(struct glibc *g, u64 start, u64 end, u32 arena, bool last)
{
	struct error *err = grow(&g->segments, g->nsegments, sizeof(*g->segments));

	if (!err)
		g->segments[g->nsegments++] = (struct glibc_segment){start, end, arena, last};
	return err;
}

static struct error *claim_head(struct glibc *g, u32 arena, u64 start, u64 end)
{
	if (end <= start)
		return NULL;
	space_claim(g->space, start, end);
	return glibc_count(g, arena, GLIBC_METADATA, start, end - start);
}

static bool read_heap(struct glibc *g, u64 heap, u64 arena, u64 heap_size, struct heap_info *ret)
{
	return memory_read(g->space->memory, ret, sizeof(*ret), heap) && ret->arena == arena && ret->size &&
	       ret->size <= heap_size && !(ret->size & (PAGES_SIZE - 1));
}

/* The heap that holds an arena's top, and the size that all heaps are aligned to. */
static bool find_heap(struct glibc *g, const struct glibc_arena *a, u64 *heap, u64 *size, struct heap_info *ret)
{
	static const u8 order[HEAP_SIZES] = {26, 20, 21, 22, 23, 24, 25, 27, 28, 29, 30};

	for (u32 i = 0; i < HEAP_SIZES; i++) {
		*size = 1ull << order[i];
		*heap = a->top & ~(*size - 1);
		if (read_heap(g, *heap, a->at, *size, ret) && a->top - *heap < ret->size)
			return true;
	}
	return false;
}

/* Where the first chunk of a heap lies: behind heap_info, and in the first heap behind the arena itself. */
static u64 first_chunk(const struct glibc *g, const struct glibc_arena *a, u64 heap, u64 heap_size)
{
	u64 at = heap + g->heap_info;

	if (a->at - heap < heap_size)
		at = a->at + glibc_arena_size(g);
	return (at + 15) & ~15ull;
}

static struct error *add_heaps(struct glibc *g, u32 number)
{
	struct glibc_arena *a = &g->arenas[number];
	struct heap_info info;
	struct error *err = NULL;
	u64 heap, size, first;
	bool last = true;

	if (!find_heap(g, a, &heap, &size, &info))
		return usage_say(g->usage, USAGE_NOTE, "the arena at %#llx: its heap was not found; not read",
		        (unsigned long long)a->at);
	if (!g->heap_info)
		g->heap_info = ((a->at & (size - 1)) > 1024) ? 48 : a->at & (size - 1);
	for (u32 i = 0; !err && i < HEAPS_MAX; i++, last = false) {
		first = first_chunk(g, a, heap, size);
		err = claim_head(g, number, heap, first);
		if (!err && first < heap + info.size)
			err = add_segment(g, first, heap + info.size, number, last);
		heap = info.previous;
		if (!heap || heap & (size - 1) || !read_heap(g, heap, a->at, size, &info))
			break;
	}
	return err;
}

/* Neighbouring mappings of anonymous memory around an address: the kernel may have divided what brk() gave. */
static bool anonymous_run(const struct space *s, u64 addr, u64 *start, u64 *end)
{
	u32 first = space_find(s, addr), last = first;

	if (first == s->maps.nlines || !space_is_anonymous(s, first))
		return false;
	while (first && s->maps.lines[first - 1].end == s->maps.lines[first].start && space_is_anonymous(s, first - 1))
		first--;
	while (last + 1 < s->maps.nlines && s->maps.lines[last].end == s->maps.lines[last + 1].start &&
	        space_is_anonymous(s, last + 1))
		last++;
	*start = s->maps.lines[first].start;
	*end = s->maps.lines[last].end;
	return true;
}

static struct error *add_main(struct glibc *g)
{
	struct glibc_arena *a = &g->arenas[0];
	struct error *err;
	u64 start, end, size;

	if (!a->system || !anonymous_run(g->space, a->top, &start, &end) || !read_word(g, a->top + 8, &size))
		return NULL; /* nothing was allocated yet */
	glibc_read_parameters(g, start, a->top);
	if (g->parameters.sbrk_base >= start && g->parameters.sbrk_base <= a->top)
		start = g->parameters.sbrk_base;
	size &= ~(u64)CHUNK_BITS;
	if (size > end - a->top) /* the walk says that it is corrupt */
		size = end - a->top;
	err = claim_head(g, 0, start, (start + 15) & ~15ull);
	return err ? err : add_segment(g, (start + 15) & ~15ull, a->top + size, 0, true);
}

void glibc_refresh(struct glibc *g, u32 segment)
{
	struct glibc_segment *s = &g->segments[segment];
	struct glibc_arena *a = &g->arenas[s->arena];
	struct heap_info info;
	u64 top, size, heap;

	if (!read_word(g, a->at + g->bins + (u64)TOP, &top))
		return;
	if (s->arena) {
		a->top = top;
		if (find_heap(g, a, &heap, &size, &info) && s->start - heap < size)
			s->end = heap + info.size;
	} else if (top >= s->start && read_word(g, top + 8, &size) && size < 1ull << 47) {
		a->top = top;
		s->end = top + (size & ~(u64)CHUNK_BITS);
	}
}

/* --- arenas --- */

static struct error *add_arena(struct glibc *g, u64 at)
{
	struct glibc_arena a = {.at = at};
	struct error *err = grow(&g->arenas, g->narenas, sizeof(*g->arenas));

	if (!err && read_word(g, at + g->bins + (u64)TOP, &a.top) && read_word(g, at + g->bins + SYSTEM, &a.system))
		g->arenas[g->narenas++] = a;
	return err;
}

struct error *glibc_read_arenas(struct glibc *g, u64 bins, bool *found)
{
	struct error *err;
	u64 main, next;

	*found = glibc_is_ring(g->space, bins, &g->bins);
	if (!*found)
		return NULL;
	main = bins - g->bins;
	err = add_arena(g, main);
	for (u64 at = main; !err && g->narenas && g->narenas < GLIBC_ARENAS_MAX; at = next) {
		if (!read_word(g, at + g->bins + GLIBC_NEXT, &next) || next == main)
			break;
		err = add_arena(g, next);
	}
	for (u32 i = 0; !err && i < g->narenas; i++)
		err = read_fast(g, &g->arenas[i]);
	for (u32 i = 0; !err && i < g->narenas; i++)
		err = read_unsorted(g, &g->arenas[i]);
	for (u32 i = 0; !err && i < g->narenas; i++)
		err = i ? add_heaps(g, i) : add_main(g);
	sort_keys(g->segments, g->nsegments, sizeof(*g->segments));
	return err;
}

u32 glibc_segment_at(const struct glibc *g, u64 addr)
{
	u32 at = SEARCH(g->nsegments, k, g->segments[k].end <= addr);

	return at < g->nsegments && addr >= g->segments[at].start ? at : g->nsegments;
}
