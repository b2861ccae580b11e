/* SPDX-License-Identifier: Apache-2.0 */
#include "heap_nodes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "grow.h"

#define PIECE_BITS  (HEAP_PIECE_BITS + 3)
#define PIECE_SLOTS (4 * HEAP_PIECES)
#define OTHERS      (HEAP_PIECES << HEAP_PIECE_BITS) /* the first place that is no piece's */
#define SLOTS_FIRST (1u << 12)
#define HUGE_PAGE   (2u << 20)
#define NODE_BYTES  22 /* in the end with 4 each for its dominator, where it is drawn, and who refers to it */
#define KIND_BYTES  24 /* and its slot */

/* --- addresses --- */

static u64 hash_of(u64 key)
{
	return key * 0x9e3779b97f4a7c15ull >> 32;
}

static u16 *piece_slot(struct heap_nodes *nodes, u64 base)
{
	u64 i = hash_of(base >> PIECE_BITS) * PIECE_SLOTS >> 32;

	while (nodes->piece_slots[i] && nodes->pieces[nodes->piece_slots[i]] != base)
		i = i + 1 < PIECE_SLOTS ? i + 1 : 0;
	return &nodes->piece_slots[i];
}

static struct error *place_apart(struct heap_nodes *nodes, u64 addr, u32 *ret)
{
	struct error *err = nodes->nothers < UINT32_MAX - OTHERS ? grow(&nodes->others, nodes->nothers, sizeof(addr))
	                                                         : &error_no_memory;

	if (err)
		return err;
	nodes->others[nodes->nothers] = addr;
	*ret = OTHERS + nodes->nothers++;
	return NULL;
}

static struct error *place_of(struct heap_nodes *nodes, u64 addr, u32 *ret)
{
	u64 base = addr >> PIECE_BITS << PIECE_BITS;
	u16 *slot = piece_slot(nodes, base);

	*ret = 0;
	if (!addr)
		return NULL;
	if (addr & 7 || (!*slot && nodes->npieces + 1 >= HEAP_PIECES))
		return place_apart(nodes, addr, ret);
	if (!*slot) {
		*slot = (u16)++nodes->npieces;
		nodes->pieces[*slot] = base;
	}
	*ret = (u32)*slot << HEAP_PIECE_BITS | (u32)((addr - base) >> 3);
	return NULL;
}

/* The bits of a slot that a number does not need are of the hash: most of what is elsewhere need not be looked at. */
static u32 tag_of(const struct heap_nodes *nodes, u64 addr)
{
	return (u32)((addr >> 3) * 0x9e3779b97f4a7c15ull) & ~nodes->number_mask;
}

/* Any number of slots, not a power of two: the table grows by a half, and takes less. */
static u32 *find_slot(const struct heap_nodes *nodes, u64 addr)
{
	u64 i = hash_of(addr >> 3) * nodes->nslots >> 32;
	u32 mask = nodes->number_mask, tag = tag_of(nodes, addr), slot;

	for (; (slot = nodes->slots[i]); i = i + 1 < nodes->nslots ? i + 1 : 0)
		if ((slot & ~mask) == tag && heap_nodes_addr(nodes, slot & mask) == addr)
			break;
	return &nodes->slots[i];
}

static void put_slot(struct heap_nodes *nodes, u64 addr, u32 node)
{
	*find_slot(nodes, addr) = node | tag_of(nodes, addr);
}

u32 heap_nodes_find(const struct heap_nodes *nodes, u64 addr)
{
	return nodes->nslots ? *find_slot(nodes, addr) & nodes->number_mask : 0;
}

void heap_nodes_prefetch(const struct heap_nodes *nodes, u64 addr)
{
	if (nodes->nslots)
		__builtin_prefetch(&nodes->slots[hash_of(addr >> 3) * nodes->nslots >> 32]);
}

/* Each look at them is elsewhere: on pages of 4 KiB each would miss the TLB, too. */
static u32 *make_slots(u64 n)
{
	size_t size = (n * sizeof(u32) + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1ul);
	u32 *ret = size > HUGE_PAGE ? aligned_alloc(HUGE_PAGE, size) : malloc(size);

	if (ret && size > HUGE_PAGE)
		madvise(ret, size, MADV_HUGEPAGE);
	return ret ? memset(ret, 0, size) : NULL;
}

static struct error *more_slots(struct heap_nodes *nodes)
{
	u64 more = nodes->nslots ? nodes->nslots + nodes->nslots / 2 : SLOTS_FIRST;
	u32 *slots;

	free(TAKE(nodes->slots)); /* all is in the places */
	nodes->nslots = 0;
	slots = make_slots(more);
	if (!slots)
		return &error_no_memory;
	nodes->slots = slots;
	nodes->nslots = more;
	nodes->number_mask = more < 1u << 31 ? (2u << (63 - __builtin_clzll(more))) - 1 : UINT32_MAX;
	for (u32 i = 1; i < nodes->n; i++)
		if (nodes->places[i])
			put_slot(nodes, heap_nodes_addr(nodes, i), i);
	return NULL;
}

/* --- kinds --- */

static u32 *find_kind(const struct heap_nodes *nodes, const struct heap_kind *kind)
{
	u64 key = hash_of(((u64)kind->type << 32 | kind->label) ^ kind->size * 0xd6e8feb86659fd93ull);
	u64 i = key * nodes->nkind_slots >> 32;

	for (; nodes->kind_slots[i]; i = i + 1 < nodes->nkind_slots ? i + 1 : 0) {
		const struct heap_kind *k = &nodes->kinds[nodes->kind_slots[i] - 1];

		if (k->size == kind->size && k->type == kind->type && k->label == kind->label)
			break;
	}
	return &nodes->kind_slots[i];
}

static struct error *more_kind_slots(struct heap_nodes *nodes)
{
	u64 more = nodes->nkind_slots ? 2 * nodes->nkind_slots : SLOTS_FIRST;

	free(TAKE(nodes->kind_slots));
	nodes->nkind_slots = 0;
	nodes->kind_slots = calloc(more, sizeof(*nodes->kind_slots));
	if (!nodes->kind_slots)
		return &error_no_memory;
	nodes->nkind_slots = more;
	for (u32 i = 0; i < nodes->nkinds; i++)
		*find_kind(nodes, &nodes->kinds[i]) = i + 1;
	return NULL;
}

static struct error *kind_number(struct heap_nodes *nodes, const struct heap_kind *kind, u32 *ret)
{
	struct error *err = 2ull * nodes->nkinds >= nodes->nkind_slots ? more_kind_slots(nodes) : NULL;
	u32 *slot = err ? NULL : find_kind(nodes, kind);

	if (!err && !*slot)
		err = grow(&nodes->kinds, nodes->nkinds, sizeof(*nodes->kinds));
	if (err)
		return err;
	if (!*slot) {
		nodes->kinds[nodes->nkinds++] = *kind;
		*slot = nodes->nkinds;
	}
	*ret = *slot - 1;
	return NULL;
}

struct error *heap_nodes_set(struct heap_nodes *nodes, u32 node, const struct heap_kind *kind)
{
	return kind_number(nodes, kind, &nodes->kind_of[node]);
}

/* --- nodes --- */

struct error *heap_nodes_add(struct heap_nodes *nodes, u64 addr, u32 parent, const struct heap_kind *kind)
{
	struct error *err = grow(&nodes->places, nodes->n, sizeof(*nodes->places));

	if (!err)
		err = grow(&nodes->kind_of, nodes->n, sizeof(*nodes->kind_of));
	if (!err)
		err = grow(&nodes->parents, nodes->n, sizeof(*nodes->parents));
	if (!err && addr && 3ull * nodes->n >= 2 * nodes->nslots)
		err = more_slots(nodes);
	if (!err)
		err = heap_nodes_set(nodes, nodes->n, kind);
	if (!err)
		err = place_of(nodes, addr, &nodes->places[nodes->n]);
	if (err)
		return err;
	nodes->parents[nodes->n] = parent;
	if (addr)
		put_slot(nodes, addr, nodes->n);
	nodes->n++;
	return NULL;
}

u64 heap_nodes_bytes(const struct heap_nodes *nodes, u64 more)
{
	return (nodes->n + more) * NODE_BYTES + nodes->nkinds * (u64)KIND_BYTES + nodes->nothers * sizeof(u64);
}

void heap_nodes_end(struct heap_nodes *nodes)
{
	free(TAKE(nodes->slots));
	free(TAKE(nodes->kind_slots));
	nodes->nslots = nodes->nkind_slots = 0;
}

void heap_nodes_free(struct heap_nodes *nodes)
{
	heap_nodes_end(nodes);
	free(nodes->places);
	free(nodes->kind_of);
	free(nodes->parents);
	free(nodes->kinds);
	free(nodes->others);
	*nodes = (struct heap_nodes){0};
}
