/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_cache.h"

#include <stdlib.h>
#include <string.h>

#include "binary/resident.h"
#include "cleanup.h"
#include "grow.h"
#include "runtime_heap.h"
#include "search.h"
#include "sort_keys.h"
#include "table.h"

#define BLOCK          (32ull << 10)
#define PAGE           4096u
#define PAGES          (BLOCK / PAGE)
#define BLOCKS_MIN     128
#define CHANGED_SAMPLE 2048 /* pages */

struct block {
	u64 base; /* 1: unused */
	u8 *data;
	u64 have, failed; /* a bit of each page */
	bool used;        /* since the hand came by */
};

struct heap_cache {
	struct memory mem;
	struct memory *below;
	struct resident resident;
	struct block *blocks;
	u32 nblocks, max, hand;
	struct table at;    /* from key_of() a block's base to its number + 1; 0: evicted */
	struct block *kept; /* copies, by address up to `sorted` */
	u32 nkept, sorted;
	struct block *last;
	u8 *bounce; /* for what lies in several blocks */
	bool whole;
};

/* A table's keys are hashes: blocks in a row, of several heaps, would lie in one row of its slots. */
static u64 key_of(u64 base)
{
	u64 key = (base / BLOCK + 1) * 0x9e3779b97f4a7c15ull;

	return key ^ key >> 32;
}

_Static_assert(PAGES <= 64, "a word has a bit of each page");

static bool bit(u64 bits, u64 i)
{
	return bits >> i & 1;
}

static void set(u64 *bits, u64 i)
{
	*bits |= 1ull << i;
}

/* Pages [first, last) of a block: what cannot be read is passed over, a page at a time. */
static void read_pages(struct heap_cache *c, struct block *b, u64 first, u64 last)
{
	struct memory_piece pieces[PAGES];

	while (first < last) {
		size_t n = last - first, done;

		for (size_t i = 0; i < n; i++)
			pieces[i] =
			        (struct memory_piece){b->data + (first + i) * PAGE, b->base + (first + i) * PAGE, PAGE};
		done = memory_read_pieces(c->below, pieces, n);
		for (size_t i = 0; i < done; i++)
			set(&b->have, first + i);
		first += done;
		if (first < last)
			set(&b->failed, first++);
	}
}

static void read_stretch(struct heap_cache *c, struct block *b, u64 first, u64 last)
{
	if (!memory_read(c->below, b->data + first * PAGE, (last - first) * PAGE, b->base + first * PAGE)) {
		read_pages(c, b, first, last);
		return;
	}
	for (u64 i = first; i < last; i++)
		set(&b->have, i);
}

/* What holds data, in one read for each stretch. The wanted page is read in any case. */
static void read_block(struct heap_cache *c, struct block *b, u64 wanted)
{
	u64 at = b->base, end = b->base + BLOCK, from, to;

	while (at < end && resident_next(&c->resident, at, end, BLOCK, &from, &to)) {
		read_stretch(c, b, (from - b->base) / PAGE, (to - b->base) / PAGE);
		at = to;
	}
	if (!bit(b->have, wanted) && !bit(b->failed, wanted))
		read_pages(c, b, wanted, wanted + 1);
}

static struct block *evict(struct heap_cache *c)
{
	struct block *b;
	u64 *at;

	do {
		b = &c->blocks[c->hand++ % c->max];
	} while (b->used && (b->used = false, true));
	at = table_get(&c->at, key_of(b->base));
	if (at)
		*at = 0;
	return b;
}

static struct block *new_block(struct heap_cache *c)
{
	struct block *b = c->nblocks < c->max ? &c->blocks[c->nblocks] : NULL;

	if (!b)
		return evict(c);
	b->data = malloc(BLOCK);
	if (b->data)
		c->nblocks++;
	else
		b = c->nblocks ? (c->max = c->nblocks, evict(c)) : NULL;
	return b;
}

static struct block *kept_at(const struct heap_cache *c, u64 base)
{
	u32 i = SEARCH(c->sorted, k, c->kept[k].base < base);

	return i < c->sorted && c->kept[i].base == base ? &c->kept[i] : NULL;
}

static struct block *block_at(struct heap_cache *c, u64 base)
{
	u64 *at;
	struct block *b;

	if (c->last && c->last->base == base)
		return c->last;
	b = kept_at(c, base);
	if (b)
		return c->last = b;
	at = table_get(&c->at, key_of(base));
	b = at && *at ? &c->blocks[*at - 1] : NULL;
	if (!b) {
		b = new_block(c);
		if (!b || table_put(&c->at, key_of(base), (u64)(b - c->blocks) + 1))
			return NULL;
		b->base = base;
		b->have = b->failed = 0;
	}
	b->used = true;
	return c->last = b;
}

/* Are these bytes of one block there? */
static bool have(struct heap_cache *c, struct block *b, u64 addr, u64 size)
{
	u64 first = (addr - b->base) / PAGE, last = (addr + size - 1 - b->base) / PAGE;

	for (u64 i = first; i <= last; i++) {
		if (bit(b->have, i))
			continue;
		if (bit(b->failed, i))
			return false;
		if (c->whole)
			read_block(c, b, i);
		else
			read_pages(c, b, i, i + 1);
		if (!bit(b->have, i))
			return false;
	}
	return true;
}

static const u8 *in_block(struct heap_cache *c, u64 addr, u64 size)
{
	struct block *b = block_at(c, addr & ~(BLOCK - 1));

	return b && have(c, b, addr, size) ? b->data + (addr - b->base) : NULL;
}

static bool cache_read(struct memory *mem, void *dst, size_t size, u64 addr)
{
	struct heap_cache *c = (struct heap_cache *)mem;

	if (addr + size < addr)
		return false;
	while (size) {
		u64 n = BLOCK - (addr & (BLOCK - 1));
		const u8 *from;

		n = n < size ? n : size;
		from = in_block(c, addr, n);
		if (!from)
			return false;
		memcpy(dst, from, n);
		dst = (u8 *)dst + n;
		addr += n;
		size -= n;
	}
	return true;
}

const void *heap_cache_bytes(struct heap_cache *c, u64 addr, u32 size)
{
	if (!size || size > HEAP_BYTES_MAX || addr + size < addr)
		return NULL;
	if ((addr & (BLOCK - 1)) + size <= BLOCK)
		return in_block(c, addr, size);
	return cache_read(&c->mem, c->bounce, size, addr) ? c->bounce : NULL;
}

void heap_cache_ahead(struct heap_cache *c, bool whole)
{
	c->whole = whole;
}

void heap_cache_forget(struct heap_cache *c, u64 addr, u64 size)
{
	for (u64 page = addr / PAGE; page <= (addr + size - 1) / PAGE; page++) {
		u64 base = page * PAGE & ~(BLOCK - 1), i = page % PAGES;
		u64 *at = table_get(&c->at, key_of(base));

		if (at && *at) {
			c->blocks[*at - 1].have &= ~(1ull << i);
			c->blocks[*at - 1].failed &= ~(1ull << i);
		}
	}
}

void heap_cache_forget_all(struct heap_cache *c)
{
	for (u32 i = 0; i < c->nblocks; i++)
		c->blocks[i].have = c->blocks[i].failed = 0;
}

static void forget(struct memory *mem)
{
	heap_cache_forget_all((struct heap_cache *)mem);
}

/* The copy of a block, or one more of them. */
static struct block *keep_block(struct heap_cache *c, u64 base)
{
	struct block *known = kept_at(c, base);
	struct error *err = known ? NULL : grow(&c->kept, c->nkept, sizeof(*c->kept));
	u8 *data = known || err ? NULL : malloc(BLOCK);

	error_free(err);
	c->last = NULL;
	if (known)
		known->have = known->failed = 0;
	if (known || !data)
		return known;
	c->kept[c->nkept] = (struct block){.base = base, .data = data};
	return &c->kept[c->nkept++];
}

/* The part of a stretch that lies in a block. */
static void read_part(struct heap_cache *c, struct block *b, const struct heap_stretch *s)
{
	u64 from = s->start > b->base ? s->start - b->base : 0,
	    to = s->end - b->base < BLOCK ? s->end - b->base : BLOCK;

	read_stretch(c, b, from / PAGE, (to + PAGE - 1) / PAGE);
}

static bool keep(struct heap_cache *c, const struct heap_stretch *s)
{
	struct block *b;

	for (u64 base = s->start & ~(BLOCK - 1); base < s->end; base += BLOCK) {
		if (!s->mapped && c->nkept > c->sorted && c->kept[c->nkept - 1].base == base)
			continue;
		b = keep_block(c, base);
		if (!b)
			return false;
		if (s->mapped)
			read_part(c, b, s);
		else
			read_block(c, b, 0);
	}
	return true;
}

bool heap_cache_keep(struct heap_cache *c, const struct heap_stretch *stretches, u32 n)
{
	bool ret = true;

	c->resident.ahead = 0;
	c->resident.n = 0; /* pages may hold data by now that did not before */
	for (u32 i = 0; ret && i < n; i++)
		ret = keep(c, &stretches[i]);
	c->resident.ahead = PAGES;
	sort_keys(c->kept, c->nkept, sizeof(*c->kept));
	c->sorted = c->nkept;
	return ret;
}

struct error *heap_cache_held(struct heap_cache *c, u64 start, u64 end, struct heap_stretch **stretches, u32 *n)
{
	struct error *err = NULL;
	u64 from, to;

	c->resident.ahead = c->resident.n = 0;
	while (!err && start < end && resident_next(&c->resident, start, end, UINT64_MAX, &from, &to)) {
		struct heap_stretch *last = *n ? &(*stretches)[*n - 1] : NULL;

		start = to;
		from &= ~(BLOCK - 1);
		to = (to + BLOCK - 1) & ~(BLOCK - 1);
		if (last && from <= last->end) {
			last->end = to > last->end ? to : last->end;
			continue;
		}
		err = grow(stretches, *n, sizeof(**stretches));
		if (!err)
			(*stretches)[(*n)++] = (struct heap_stretch){from, to, .mapped = false};
	}
	c->resident.ahead = PAGES;
	return err;
}

u64 heap_cache_kept(const struct heap_cache *c)
{
	return c ? c->nkept * BLOCK : 0;
}

double heap_cache_changed(const struct heap_cache *c)
{
	u64 all = c->nkept * PAGES, step = all / CHANGED_SAMPLE + 1, seen = 0, changed = 0;
	u8 now[PAGE];

	for (u64 i = 0; i < all; i += step) {
		const struct block *b = &c->kept[i / PAGES];
		u64 page = i % PAGES;

		if (!bit(b->have, page) || !memory_read(c->below, now, PAGE, b->base + page * PAGE))
			continue;
		seen++;
		changed += memcmp(now, b->data + page * PAGE, PAGE) != 0;
	}
	return seen ? (double)changed / (double)seen : 0;
}

void heap_cache_release(struct heap_cache *c)
{
	for (u32 i = 0; i < c->nkept; i++)
		free(c->kept[i].data);
	free(TAKE(c->kept));
	c->nkept = c->sorted = 0;
	c->last = NULL;
}

struct memory *heap_cache_below(struct heap_cache *c)
{
	return c->below;
}

struct memory *heap_cache_memory(struct heap_cache *c)
{
	return &c->mem;
}

static void ignore(struct memory *mem)
{
}

struct error *heap_cache_create(struct memory *below, pid_t pid, u64 limit, struct heap_cache **ret)
{
	struct heap_cache *c = calloc(1, sizeof(*c));

	*ret = c;
	if (!c)
		return &error_no_memory;
	c->mem = (struct memory){.read = cache_read, .destroy = ignore, .forget = forget};
	c->below = below;
	c->resident.fd = -1;
	c->resident.page = PAGE;
	c->max = limit / BLOCK < BLOCKS_MIN ? BLOCKS_MIN : (u32)(limit / BLOCK);
	c->blocks = calloc(c->max, sizeof(*c->blocks));
	c->bounce = malloc(HEAP_BYTES_MAX);
	if (!c->blocks || !c->bounce) {
		heap_cache_destroy(c);
		*ret = NULL;
		return &error_no_memory;
	}
	if (pid)
		resident_open(&c->resident, pid);
	c->resident.ahead = PAGES;
	return NULL;
}

void heap_cache_destroy(struct heap_cache *c)
{
	if (!c)
		return;
	resident_close(&c->resident);
	heap_cache_release(c);
	for (u32 i = 0; i < c->nblocks; i++)
		free(c->blocks[i].data);
	free(c->blocks);
	free(c->bounce);
	table_free(&c->at);
	free(c);
}
