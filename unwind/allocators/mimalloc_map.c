/* SPDX-License-Identifier: Apache-2.0 */
/* mimalloc 3: the map of pages, and arenas. */

#include "grow.h"
#include "mimalloc.h"

#define MAP_MIN     (1ull << 20) /* bytes of the map: 2 or 4 MiB, if nobody limits the addresses */
#define MAP_MAX     (1ull << 22)
#define PART        (MIMALLOC_SUB_ENTRIES * MIMALLOC_SLICE) /* addresses of a part */
#define SAMPLES     8                                       /* pages, most of which have to fit */
#define ARENAS_MAX  1024
#define ARENA_BYTES 64

/*
 * Up to 3.3 the address of the first block follows its size; from 3.4 on (page_woffset) its distance from the
 * mi_page_t, in words. Blocks begin in the page's first slice, or, if they are aligned to more, behind it.
 */
bool mimalloc_page(const u8 bytes[MIMALLOC_PAGE_BYTES], u64 at, u64 slice, struct mimalloc_page *ret)
{
	u64 first = mimalloc_word(bytes, 48), offset = mimalloc_half(bytes, 48), end;
	u32 counts = mimalloc_half(bytes, 16); /* used, capacity */

	if (first >> 32 == 0 || first < slice || first >> 47)
		first = at + offset * 8;
	*ret = (struct mimalloc_page){.start = slice,
	        .block = mimalloc_word(bytes, 40),
	        .used = counts & 0xffff,
	        .capacity = counts >> 16,
	        .reserved = mimalloc_half(bytes, 20) & 0xffff};
	if (!ret->block || ret->block % 8 || ret->block >> 47 || !ret->reserved || ret->used > ret->capacity ||
	        ret->capacity > ret->reserved || first < slice || first >> 47)
		return false;
	end = first + ret->block * ret->reserved;
	ret->size = ((end + MIMALLOC_SLICE - 1) & ~(MIMALLOC_SLICE - 1)) - slice;
	return end > first && !(end >> 47);
}

static bool read_page(struct mimalloc *m, u64 at, u64 slice, u8 bytes[MIMALLOC_PAGE_BYTES], struct mimalloc_page *ret)
{
	return !(at % 8) && block_reader_read(&m->reader, bytes, MIMALLOC_PAGE_BYTES, at) &&
	       mimalloc_page(bytes, at, slice, ret);
}

/*
 * A page in an arena says so: the arena's address, and the page's first slice in it. 88 bytes behind its start at least
 * (3.4), 16 more if lists are encoded.
 */
static struct error *add_arena(struct mimalloc *m, const u8 bytes[MIMALLOC_PAGE_BYTES], u64 slice)
{
	struct error *err = NULL;
	u8 head[ARENA_BYTES];

	for (u32 at = 88; !err && at + 12 <= MIMALLOC_PAGE_BYTES; at += 8) {
		u64 arena = mimalloc_word(bytes, at), n = mimalloc_half(bytes, at + 8), own;
		u32 i = m->narenas;

		if (!arena || arena % MIMALLOC_SLICE || arena + n * MIMALLOC_SLICE != slice)
			continue;
		while (i && m->arenas[i - 1].at != arena)
			i--;
		if (i || m->narenas == ARENAS_MAX || !block_reader_read(&m->reader, head, sizeof(head), arena))
			return NULL;
		/* memid, subproc, from 3.2 on arena_idx; then all slices, and the arena's own */
		i = mimalloc_word(head, 32) <= mimalloc_word(head, 40) ? 40 : 32;
		own = mimalloc_word(head, i + 8);
		n = mimalloc_word(head, i);
		if (!own || own >= n || n >> 31)
			return NULL;
		err = grow(&m->arenas, m->narenas, sizeof(*m->arenas));
		if (err)
			return err;
		m->arenas[m->narenas++] =
		        (struct mimalloc_arena){arena, arena + own * MIMALLOC_SLICE, arena + n * MIMALLOC_SLICE};
		mimalloc_own(m, arena, arena + own * MIMALLOC_SLICE);
	}
	return NULL;
}

/* --- the map --- */

struct walk {
	struct mimalloc *m;
	u64 map, sub; /* what is being read */
	u64 addr;     /* of the first slice that sub is of */
	u64 last;     /* the page of the slice before */
	bool sample;  /* looks at a few pages only */
	u32 fit, other;
	struct error *err;
};

/* Room for the words of a part in memory without a file? */
static bool may_be_sub(const struct space *s, u64 addr)
{
	u32 map = addr && !(addr % PAGES_SIZE) ? space_find(s, addr) : s->maps.nlines;

	return map < s->maps.nlines && space_is_anonymous(s, map) &&
	       s->maps.lines[map].end - addr >= 8ull * MIMALLOC_SUB_ENTRIES;
}

static bool on_slice(void *arg, u64 at, u64 word)
{
	struct walk *w = arg;
	u64 slice = w->addr + (at - w->sub) / 8 * MIMALLOC_SLICE;
	u8 bytes[MIMALLOC_PAGE_BYTES];
	struct mimalloc_page page;
	bool fits;

	if (word == w->last)
		return true;
	w->last = word;
	fits = read_page(w->m, word, slice, bytes, &page);
	if (w->sample) {
		w->fit += fits;
		w->other += !fits;
		return w->fit + w->other < SAMPLES;
	}
	if (fits)
		w->err = mimalloc_add(w->m, &page, mimalloc_word(bytes, 32) & ~3ull);
	if (fits && !w->err)
		w->err = add_arena(w->m, bytes, slice);
	return !w->err;
}

/* The first word is for addresses that are not used, and leads behind the last. */
static bool on_sub(void *arg, u64 at, u64 word)
{
	struct walk *w = arg;

	if (at == w->map)
		return true;
	if (!may_be_sub(w->m->space, word)) {
		w->other += SAMPLES;
		return !w->sample;
	}
	w->sub = word;
	w->addr = (at - w->map) / 8 * PART;
	block_reader_words(&w->m->reader, word, word + 8ull * MIMALLOC_SUB_ENTRIES, on_slice, w);
	return !w->err && !(w->sample && w->fit + w->other >= SAMPLES);
}

/* Bytes of what may be the map, by its first word; 0: it is none. */
static u64 map_size(struct mimalloc *m, u64 map)
{
	u64 first;

	if (!may_be_sub(m->space, map) || !block_reader_read(&m->reader, &first, sizeof(first), map))
		return 0;
	first -= map;
	return first >= MAP_MIN && first <= MAP_MAX && !(first & (first - 1)) ? first : 0;
}

struct candidate {
	struct mimalloc *m;
	u64 map, size;
};

static bool look_for_map(void *arg, u64 at, u64 word)
{
	struct candidate *c = arg;
	struct walk w = {.m = c->m, .map = word, .sample = true};

	c->size = map_size(c->m, word);
	if (!c->size)
		return true;
	block_reader_words(&c->m->reader, word, word + c->size, on_sub, &w);
	c->map = w.fit > w.other ? word : 0;
	return !c->map;
}

struct error *mimalloc_read_map(struct mimalloc *m, u64 start, u64 end)
{
	struct candidate c = {.m = m};
	struct walk w = {.m = m};

	block_reader_words(&m->reader, start, end, look_for_map, &c);
	if (!c.map)
		return NULL;
	m->version = "3";
	w.map = c.map;
	block_reader_words(&m->reader, c.map, c.map + c.size, on_sub, &w);
	return w.err;
}
