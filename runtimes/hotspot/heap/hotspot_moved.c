/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_moved.h"

#include <stdlib.h>

#include "cleanup.h"
#include "runtimes/hotspot/walk/hotspot_z.h"

#define HEAP_WORDS_MAX  32768 /* of a ZHeap */
#define MAPS_MAX        (1ull << 28)
#define FORWARDING_SIZE 184 /* of a ZForwarding, 21 to 28 */
#define REF_COUNT       136
#define YOUNG           0 /* zGenerationId.hpp */
#define OLD             1

/* Offsets within offsets: of a member of a member. */
static bool inner(
        const struct vmstructs *v, const char *type, const char *field, const char *in, const char *what, u64 *ret)
{
	u64 at, then;

	if (!vmstructs_field(v, type, field, &at, NULL) || !vmstructs_field(v, in, what, &then, NULL))
		return false;
	*ret = at + then;
	return true;
}

static bool small(
        const struct vmstructs *v, const char *type, const char *field, const char *in, const char *what, u16 *ret)
{
	u64 at;

	if (in ? !inner(v, type, field, in, what, &at) : !vmstructs_field(v, type, field, &at, NULL))
		return false;
	*ret = at;
	return at < UINT16_MAX;
}

/*
 * vmStructs give ZForwarding::_ref_count up to 25; after that it is an Atomic<int32_t>, which they leave out. It lies
 * behind the pages, ages and the lock then too (zForwarding.hpp), which the size of the whole says. 0: not known.
 */
static u16 ref_count(const struct vmstructs *v, u64 size)
{
	u64 at;

	if (vmstructs_field(v, "ZForwarding", "_ref_count", &at, NULL))
		return at < size ? at : 0;
	return size == FORWARDING_SIZE ? REF_COUNT : 0;
}

static bool read_forwarding(const struct vmstructs *v, struct hotspot_z *z)
{
	u64 size;

	if (!vmstructs_type_size(v, "ZForwarding", &size) || size > UINT16_MAX - 8)
		return false;
	z->entries = (size + 7) & ~7ull; /* zAttachedArray.inline.hpp */
	z->ref_count = ref_count(v, size);
	return small(v, "ZForwarding", "_virtual", "ZVirtualMemory", "_start", &z->start) &&
	       small(v, "ZForwarding", "_object_alignment_shift", NULL, NULL, &z->alignment) &&
	       small(v, "ZForwarding", "_entries", "ZAttachedArrayForForwarding", "_length", &z->length);
}

/* A variable that a member of ZGlobalsForVMStructs points to. */
static bool global_at(const struct vmstructs *v, struct memory *m, const char *name, u64 *ret)
{
	u64 instance, globals, offset;

	return vmstructs_static(v, "ZGlobalsForVMStructs", "_instance_p", &instance) &&
	       vmstructs_field(v, "ZGlobalsForVMStructs", name, &offset, NULL) &&
	       memory_read(m, &globals, 8, instance) && memory_read(m, ret, 8, globals + offset);
}

static bool read_globals(const struct vmstructs *v, struct memory *m, struct hotspot_z *z)
{
	s64 shift;
	u64 mask_at;

	if (!vmstructs_constant(v, "ZGranuleSizeShift", &shift) || shift < 12 || shift > 40)
		return false;
	z->granule_shift = shift;
	return global_at(v, m, "_ZPointerLoadGoodMask", &z->good_mask_at) &&
	       global_at(v, m, "_ZAddressOffsetMask", &mask_at) && memory_read(m, &z->offset_mask, 8, mask_at) &&
	       z->offset_mask && !(z->offset_mask & (z->offset_mask + 1));
}

/* What ZHeap has: where it is, its size, and two of its members, which each generation points to. */
struct heap {
	u64 at, size, allocator, pages, granules, map, table;
};

static bool read_heap(const struct vmstructs *v, struct memory *m, u64 collected, struct heap *h)
{
	u64 offset, map;

	if (!vmstructs_field(v, "ZCollectedHeap", "_heap", &offset, NULL) ||
	        !vmstructs_type_size(v, "ZHeap", &h->size) ||
	        !vmstructs_field(v, "ZHeap", "_page_allocator", &h->allocator, NULL) ||
	        !vmstructs_field(v, "ZHeap", "_page_table", &h->pages, NULL) ||
	        !inner(v, "ZPageTable", "_map", "ZGranuleMapForPageTable", "_map", &map) ||
	        !inner(v, "ZForwardingTable", "_map", "ZGranuleMapForForwarding", "_map", &h->table) || map < 8 ||
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
	struct hotspot_z z = {0};
	struct heap h;
	u64 collected;

	if (!read_globals(v, m, &z) || !read_forwarding(v, &z) || !memory_read(m, &collected, 8, collected_heap) ||
	        !read_heap(v, m, collected, &h) || !find_tables(&h, m, &z))
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
	for (u32 i = 0; i < Z_PROBES; i++, slot++) {
		if (!memory_read(m, &entry, 8, forwarding + z->entries + (slot & (length - 1)) * 8))
			return 0;
		if (!(entry & 1) || entry >> Z_ENTRY_FROM_SHIFT == index)
			break;
	}
	if (entry & 1)
		return entry >> Z_ENTRY_FROM_SHIFT == index ? (addr & ~z->offset_mask) | (entry >> 1 & Z_ENTRY_TO_MASK)
		                                            : 0;
	return z->ref_count && memory_read(m, &count, 4, forwarding + z->ref_count) && count > 0 ? addr : 0;
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
