/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_moved.h"

#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "hotspot_heap_view.h"
#include "runtimes/hotspot/walk/hotspot_z.h"

#define HEAP_WORDS_MAX  32768 /* of a ZHeap */
#define MAPS_MAX        (1ull << 28)
#define FORWARDING_SIZE 184 /* of a ZForwarding, 21 to 28 */
#define REF_COUNT       136
#define YOUNG           0 /* zGenerationId.hpp */
#define OLD             1
#define ENTRIES_MAX     (1u << 20) /* of one table of moved objects */
#define PROBES_MAX      (1u << 16) /* of a table of moved objects, up to an empty slot */

/* 21 to 23 have two kinds of ZGC: names of that of one generation begin with X there. */
struct z_names {
	const struct vmstructs *v;
	char letter;
};

static const char *z_name(const struct z_names *n, const char *name, char ret[64])
{
	snprintf(ret, 64, "%s", name);
	ret[*name == '_'] = ret[*name == '_'] == 'Z' ? n->letter : ret[*name == '_'];
	return ret;
}

static bool z_field(const struct z_names *n, const char *type, const char *field, u64 *ret)
{
	char names[2][64];

	return vmstructs_field(n->v, z_name(n, type, names[0]), z_name(n, field, names[1]), ret, NULL);
}

static bool z_size(const struct z_names *n, const char *type, u64 *ret)
{
	char name[64];

	return vmstructs_type_size(n->v, z_name(n, type, name), ret);
}

/* Offsets within offsets: of a member of a member. */
static bool inner(
        const struct z_names *n, const char *type, const char *field, const char *in, const char *what, u64 *ret)
{
	u64 at, then;

	if (!z_field(n, type, field, &at) || !z_field(n, in, what, &then))
		return false;
	*ret = at + then;
	return true;
}

static bool small(
        const struct z_names *n, const char *type, const char *field, const char *in, const char *what, u16 *ret)
{
	u64 at;

	if (in ? !inner(n, type, field, in, what, &at) : !z_field(n, type, field, &at))
		return false;
	*ret = at;
	return at < UINT16_MAX;
}

/*
 * vmStructs give ZForwarding::_ref_count up to 25; after that it is an Atomic<int32_t>, which they leave out. It lies
 * behind the pages, ages and the lock then too (zForwarding.hpp), which the size of the whole says. 0: not known.
 */
static u16 ref_count(const struct z_names *n, u64 size)
{
	u64 at;

	if (z_field(n, "ZForwarding", "_ref_count", &at))
		return at < size ? at : 0;
	return size == FORWARDING_SIZE ? REF_COUNT : 0;
}

static bool read_forwarding(const struct z_names *n, struct hotspot_z *z)
{
	u64 size;

	if (!z_size(n, "ZForwarding", &size) || size > UINT16_MAX - 8)
		return false;
	z->entries = (size + 7) & ~7ull; /* zAttachedArray.inline.hpp */
	z->ref_count = ref_count(n, size);
	return small(n, "ZForwarding", "_virtual", "ZVirtualMemory", "_start", &z->start) &&
	       small(n, "ZForwarding", "_object_alignment_shift", NULL, NULL, &z->alignment) &&
	       small(n, "ZForwarding", "_entries", "ZAttachedArrayForForwarding", "_length", &z->length);
}

/* A variable that a member of ZGlobalsForVMStructs points to. */
static bool global_at(const struct z_names *n, struct memory *m, const char *name, u64 *ret)
{
	u64 instance, globals, offset;
	char type[64];

	return vmstructs_static(n->v, z_name(n, "ZGlobalsForVMStructs", type), "_instance_p", &instance) &&
	       z_field(n, "ZGlobalsForVMStructs", name, &offset) && memory_read(m, &globals, 8, instance) &&
	       memory_read(m, ret, 8, globals + offset);
}

static bool read_globals(const struct z_names *n, struct memory *m, const char *good, struct hotspot_z *z)
{
	char name[64];
	s64 shift;
	u64 mask_at;

	if (!vmstructs_constant(n->v, z_name(n, "ZGranuleSizeShift", name), &shift) || shift < 12 || shift > 40)
		return false;
	z->granule_shift = shift;
	return global_at(n, m, good, &z->good_mask_at) && global_at(n, m, "_ZAddressOffsetMask", &mask_at) &&
	       memory_read(m, &z->offset_mask, 8, mask_at) && z->offset_mask &&
	       !(z->offset_mask & (z->offset_mask + 1)) && z->offset_mask >> 60 == 0;
}

/* What ZHeap has: where it is, its size, and two of its members, which each generation points to. */
struct heap {
	u64 at, size, allocator, pages, granules, map, table;
};

static bool read_heap(const struct z_names *n, struct memory *m, u64 collected, struct heap *h)
{
	u64 offset, map;

	if (!z_field(n, "ZCollectedHeap", "_heap", &offset) || !z_size(n, "ZHeap", &h->size) ||
	        !z_field(n, "ZHeap", "_page_allocator", &h->allocator) ||
	        !z_field(n, "ZHeap", "_page_table", &h->pages) ||
	        !inner(n, "ZPageTable", "_map", "ZGranuleMapForPageTable", "_map", &map) ||
	        !inner(n, "ZForwardingTable", "_map", "ZGranuleMapForForwarding", "_map", &h->table) || map < 8 ||
	        h->table != 8)
		return false;
	h->at = collected + offset;
	h->allocator += h->at;
	h->pages += h->at;
	return memory_read(m, &h->granules, 8, h->pages + map - 8) && h->granules &&
	       h->granules < MAPS_MAX; /* ZGranuleMap: _size, _map */
}

/*
 * A ZGeneration lies in the ZHeap and has these words (zGeneration.hpp): its number in the lowest byte, the allocator
 * and the table of pages in any order, its own table's size and address. From 27 on the tables of generations are
 * smaller than that of pages.
 */
static bool is_generation(const struct heap *h, const u64 *word)
{
	bool points =
	        (word[1] == h->allocator && word[2] == h->pages) || (word[1] == h->pages && word[2] == h->allocator);

	return points && (word[0] & 0xff) <= OLD && word[3] && word[3] <= h->granules && word[4] && !(word[4] & 7);
}

static bool find_tables(const struct heap *h, struct memory *m, struct hotspot_z *z)
{
	u64 words = h->size / 8, *table;
	cleanup(free) u64 *word = NULL;

	if (words < 5 || words > HEAP_WORDS_MAX || !(word = malloc(words * 8)) ||
	        !memory_read(m, word, words * 8, h->at))
		return false;
	for (u64 i = 0; i + 5 <= words; i++) {
		if (!is_generation(h, word + i))
			continue;
		table = (word[i] & 0xff) == YOUNG ? &z->young : &z->old;
		if (*table || (z->granules && z->granules != word[i + 3]))
			return false;
		*table = word[i + 4];
		z->granules = word[i + 3];
	}
	return z->young && z->old;
}

bool hotspot_z_find(const struct vmstructs *v, struct memory *m, u64 collected_heap, struct hotspot_z *ret)
{
	const struct z_names n = {v, 'Z'};
	struct hotspot_z z = {0};
	struct heap h;
	u64 collected;

	if (!read_globals(&n, m, "_ZPointerLoadGoodMask", &z) || !read_forwarding(&n, &z) ||
	        !memory_read(m, &collected, 8, collected_heap) || !read_heap(&n, m, collected, &h) ||
	        !find_tables(&h, m, &z))
		return false;
	*ret = z;
	return true;
}

/* Where the object is now that was at addr, in a page that this ZForwarding describes. 0: not known. */
static u64 forwarded(const struct hotspot_z *z, struct memory *m, u64 addr, u64 forwarding)
{
	u64 start, shift, length, entry = 0, index;
	s32 count;
	u32 slot;

	if (!memory_read(m, &start, 8, forwarding + z->start) ||
	        !memory_read(m, &shift, 8, forwarding + z->alignment) ||
	        !memory_read(m, &length, 8, forwarding + z->length))
		return 0;
	index = ((addr & z->offset_mask) - start) >> (shift & 63);
	slot = hs_z_hash(index);
	for (u32 i = 0; i < PROBES_MAX && i < length; i++, slot++) {
		if (!memory_read(m, &entry, 8, forwarding + z->entries + (slot & (length - 1)) * 8))
			return 0;
		if (!(entry & 1) || entry >> Z_ENTRY_FROM_SHIFT == index)
			break;
	}
	if (entry & 1)
		return entry >> Z_ENTRY_FROM_SHIFT == index ? (addr & ~z->offset_mask) | (entry >> 1 & Z_ENTRY_TO_MASK)
		                                            : 0;
	return z->ref_count && memory_read(m, &count, 4, forwarding + z->ref_count) && count ? addr : 0;
}

/* The ZForwarding of the page that addr was in; 0: it was not moved. False: not known. */
static bool forwarding_of(const struct hotspot_z *z, struct memory *m, u64 table, u64 addr, u64 *ret)
{
	u64 granule = (addr & z->offset_mask) >> z->granule_shift;

	return granule < z->granules && memory_read(m, ret, 8, table + granule * 8);
}

u64 hotspot_z_now(const struct hotspot_z *z, struct memory *m, u64 stored)
{
	u64 good, addr = hs_z_address(stored), forwarding = 0;
	u32 then = hs_remapped(stored), now;
	bool old;

	if (!then || then & (then - 1) || !memory_read(m, &good, 8, z->good_mask_at))
		return 0;
	now = hs_remapped(good);
	if (then == now || !addr)
		return addr;
	old = hs_z_old_moved(then, now);
	if (old && hs_z_young_moved(then, now) && (stored & Z_REMEMBERED) != Z_REMEMBERED) {
		if (!forwarding_of(z, m, z->young, addr, &forwarding))
			return 0;
		old = !forwarding;
	}
	if (!forwarding_of(z, m, old ? z->old : z->young, addr, &forwarding))
		return 0;
	return forwarding ? forwarded(z, m, addr, forwarding) : addr;
}

/* --- one generation --- */

/* A member of ZHeap that is a ZGranuleMap: its size, then the address of its table. */
static bool granule_map(const struct z_names *n, struct memory *m, u64 collected_heap, const char *field,
        const char *type, const char *map_type, u64 *table, u64 *granules)
{
	u64 collected, heap, at, map;

	return z_field(n, "ZCollectedHeap", "_heap", &heap) && z_field(n, "ZHeap", field, &at) &&
	       inner(n, type, "_map", map_type, "_map", &map) && map >= 8 &&
	       memory_read(m, &collected, 8, collected_heap) && collected &&
	       memory_read(m, granules, 8, collected + heap + at + map - 8) && *granules && *granules < MAPS_MAX &&
	       memory_read(m, table, 8, collected + heap + at + map) && *table && !(*table & 7);
}

static struct z_names names_of(const struct vmstructs *v, bool views)
{
	u64 size;

	return (struct z_names){v, views && vmstructs_type_size(v, "XHeap", &size) ? 'X' : 'Z'};
}

bool hotspot_z_pages(const struct hotspot_heap_view *h, struct memory *m, struct hotspot_z_pages *ret)
{
	const struct z_names n = names_of(h->v, h->views);

	return granule_map(&n, m, h->collected_heap, "_page_table", "ZPageTable", "ZGranuleMapForPageTable",
	               &ret->table, &ret->granules) &&
	       small(&n, "ZPage", "_virtual", "ZVirtualMemory", "_start", &ret->start) &&
	       small(&n, "ZPage", "_top", NULL, NULL, &ret->top);
}

bool hotspot_z_find_views(const struct vmstructs *v, struct memory *m, u64 collected_heap, struct hotspot_z *ret)
{
	const struct z_names n = names_of(v, true);
	struct hotspot_z z = {0};

	if (!read_globals(&n, m, "_ZAddressGoodMask", &z) || !read_forwarding(&n, &z) ||
	        !granule_map(&n, m, collected_heap, "_forwarding_table", "ZForwardingTable", "ZGranuleMapForForwarding",
	                &z.old, &z.granules))
		return false;
	*ret = z;
	return true;
}

/* The table says where the object went that was at addr. 0: not known. */
static u64 looked_up(const struct hotspot_z *z, struct memory *m, u64 table, u64 addr)
{
	u64 forwarding;

	if (!forwarding_of(z, m, table, addr, &forwarding))
		return 0;
	return forwarding ? forwarded(z, m, addr, forwarding) : addr;
}

/*
 * zBarrier.inline.hpp: of the three colours the one that is good now, and that of objects which no collection has to
 * move any more, lead to where the object is; else the table says where it went. A fourth bit beside one of them is of
 * references that only finalizers follow.
 */
u64 hotspot_z_in_view(const struct hotspot_z *z, struct memory *m, u64 stored, u64 base)
{
	u64 first = z->offset_mask + 1, colour = stored & (first * 7), remapped = first << 2, good;

	if (!stored || (stored & ~(z->offset_mask | first * 15)) || !colour || colour & (colour - 1) ||
	        !memory_read(m, &good, 8, z->good_mask_at))
		return 0;
	if (colour != good && colour != remapped)
		stored = looked_up(z, m, z->old, stored);
	return stored ? (stored & z->offset_mask) | base : 0;
}

bool hotspot_z_forwarding(const struct hotspot_z *z, struct memory *m, u32 table, u64 addr, u64 *ret)
{
	const u64 tables[] = {z->young, z->old};

	*ret = 0;
	return !tables[table] || forwarding_of(z, m, tables[table], addr, ret);
}

bool hotspot_z_is_empty(const struct hotspot_z *z, struct memory *m, u64 forwarding)
{
	s32 count;

	return z->ref_count && memory_read(m, &count, 4, forwarding + z->ref_count) && !count;
}

bool hotspot_z_moved_read(const struct hotspot_z *z, struct memory *m, u64 forwarding, struct hotspot_z_moved *ret)
{
	struct hotspot_z_moved r = {.complete = hotspot_z_is_empty(z, m, forwarding)}; /* before they are read */

	if (!memory_read(m, &r.start, 8, forwarding + z->start) ||
	        !memory_read(m, &r.shift, 8, forwarding + z->alignment) ||
	        !memory_read(m, &r.length, 8, forwarding + z->length) || r.shift > 63 || !r.length ||
	        r.length & (r.length - 1) || r.length > ENTRIES_MAX)
		return false;
	r.entries = malloc(r.length * 8);
	if (!r.entries || !memory_read(m, r.entries, r.length * 8, forwarding + z->entries)) {
		free(r.entries);
		return false;
	}
	*ret = r;
	return true;
}

u64 hotspot_z_moved_to(const struct hotspot_z *z, const struct hotspot_z_moved *t, u64 addr)
{
	u64 index = ((addr & z->offset_mask) - t->start) >> t->shift, entry;
	u32 slot = hs_z_hash(index);

	for (u64 i = 0; i < t->length; i++, slot++) {
		entry = t->entries[slot & (t->length - 1)];
		if (!(entry & 1))
			return 0;
		if (entry >> Z_ENTRY_FROM_SHIFT == index)
			return (addr & ~z->offset_mask) | (entry >> 1 & Z_ENTRY_TO_MASK);
	}
	return 0;
}
