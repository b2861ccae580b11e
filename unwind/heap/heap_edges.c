/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_edges.h"

#include <sys/mman.h>

#define BLOCK     (1u << 20)
#define EDGE_MAX  10 /* bytes: two numbers of up to 35 bits, 7 in each */
#define SAME_FROM 1  /* flags below `to` */
#define ABSOLUTE  2
#define FLAG_BITS 2

/* From mmap(), as what malloc() gets back it keeps. */
struct heap_edge_block {
	struct heap_edge_block *next;
	u32 used;
	u8 bytes[BLOCK - 16];
};

static u64 fold(u32 now, u32 before)
{
	s64 delta = (s64)now - before;

	return delta < 0 ? (u64)(-delta) << 1 | 1 : (u64)delta << 1;
}

static u32 unfold(u64 folded, u32 before)
{
	return folded & 1 ? before - (u32)(folded >> 1) : before + (u32)(folded >> 1);
}

static void put(struct heap_edge_block *b, u64 number)
{
	for (; number >> 7; number >>= 7)
		b->bytes[b->used++] = (u8)(number | 0x80);
	b->bytes[b->used++] = (u8)number;
}

static u64 get(const struct heap_edge_block *b, u32 *at)
{
	u64 ret = 0;
	u32 shift = 0;
	u8 byte;

	do {
		byte = b->bytes[(*at)++];
		ret |= (u64)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return ret;
}

static struct error *more(struct heap_edges *edges)
{
	struct heap_edge_block *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (b == MAP_FAILED)
		return &error_no_memory;
	if (edges->last)
		edges->last->next = b;
	else
		edges->first = b;
	edges->last = b;
	return NULL;
}

struct error *heap_edges_add(struct heap_edges *edges, u32 from, u32 to)
{
	struct error *err =
	        edges->last && edges->last->used + EDGE_MAX <= sizeof(edges->last->bytes) ? NULL : more(edges);
	u64 near = fold(to, edges->before.to);
	u32 flags = (from == edges->before.from ? SAME_FROM : 0) | (to < near ? ABSOLUTE : 0), used;

	if (err)
		return err;
	used = edges->last->used;
	put(edges->last, (to < near ? to : near) << FLAG_BITS | flags);
	if (!(flags & SAME_FROM))
		put(edges->last, fold(from, edges->before.from));
	edges->bytes += edges->last->used - used;
	edges->before = (struct heap_edge){from, to};
	edges->n++;
	return NULL;
}

static void decode(struct heap_edges_at *at, struct heap_edge *ret)
{
	u64 to = get(at->block, &at->at), number = to >> FLAG_BITS;

	at->edge.to = to & ABSOLUTE ? (u32)number : unfold(number, at->edge.to);
	if (!(to & SAME_FROM))
		at->edge.from = unfold(get(at->block, &at->at), at->edge.from);
	*ret = at->edge;
}

bool heap_edges_next(const struct heap_edges *edges, struct heap_edges_at *at, struct heap_edge *ret)
{
	if (!at->block)
		at->block = edges->first;
	if (at->block && at->at == at->block->used) {
		at->block = at->block->next;
		at->at = 0;
	}
	if (!at->block)
		return false;
	decode(at, ret);
	return true;
}

static void drop_first(struct heap_edges *edges)
{
	struct heap_edge_block *b = edges->first;

	edges->first = b->next;
	munmap(b, sizeof(*b));
}

bool heap_edges_take(struct heap_edges *edges, struct heap_edges_at *at, struct heap_edge *ret)
{
	bool any = heap_edges_next(edges, at, ret);

	while (edges->first && edges->first != at->block)
		drop_first(edges);
	if (!any)
		heap_edges_free(edges);
	return any;
}

void heap_edges_free(struct heap_edges *edges)
{
	while (edges->first)
		drop_first(edges);
	*edges = (struct heap_edges){0};
}
