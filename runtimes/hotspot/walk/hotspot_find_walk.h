/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Part of hotspot_walk.c: the block of a code heap that contains an address, from the cache or the segment map. */
#ifndef YRT_HOTSPOT_FIND_WALK_H
#define YRT_HOTSPOT_FIND_WALK_H

#include "walk.h"
#include "hotspot.h"

#define HOPS_MAX         64 /* of the segment map: one for each 254 segments */
#define SEGMENT_FREE     0xff
#define CACHE_CHECK_BITS 12
#define CACHE_BACK_MAX   (1u << 20) /* segments */

static inline const struct hotspot_vm *hs_vm(struct walk *w)
{
	return walk_arena(w, w->region.vm);
}

static inline const struct hotspot_vm *hs_vm_here(struct walk *w)
{
	return walk_arena_here(w, w->region.vm);
}

/* A field of the block that w->vm.word has; size 1, 2, 4 or 8. */
static inline u64 hs_field(const struct walk *w, struct hotspot_field f)
{
	u64 word = w->vm.word[(f.at >> 3) & (WALK_WINDOW_WORDS - 1)] >> (f.at & 7) * 8;

	return f.size >= 8 ? word : word & ((1ull << (f.size & 7) * 8) - 1);
}

static inline s64 hs_signed(const struct walk *w, struct hotspot_field f)
{
	u32 bits = 64 - (f.size & 7) * 8;

	return (s64)(hs_field(w, f) << (bits & 63)) >> (bits & 63);
}

/*
 * Reads the block at this address, with the header of its blob, into w->vm.word; the blob's address into scratch[0].
 * The block that was read last is not read again: as long as the walk lasts, a frame keeps it from being freed.
 */
static inline bool hs_read_at(struct walk *w, const struct hotspot_vm *vm, u64 block)
{
	w->scratch[0] = block + vm->block_size;
	if (!w->vm.len && w->vm.start == ~block)
		return true;
	w->vm.len = 0; /* it is no window now */
	w->vm.start = 0;
	if (!walk_fill(w, w->vm.word, vm->head_size, block))
		return false;
	w->vm.start = ~block;
	return true;
}

static inline bool hs_read_block(struct walk *w, const struct hotspot_vm *vm, u64 segment)
{
	return hs_read_at(w, vm, vm->low + (segment << (vm->log2_segment & 63)));
}

/* Is it an nmethod in use that reaches over `back` segments more? */
static inline bool hs_is_nmethod(const struct walk *w, const struct hotspot_vm *vm, u64 back)
{
	return hs_field(w, vm->used) == 1 && hs_field(w, vm->kind) == vm->kind_nmethod &&
	       hs_field(w, vm->length) > back;
}

static inline struct walk_cache *hs_cache(struct walk *w, u64 segment)
{
	return walk_cache(w, (u32)segment + w->region.vm);
}

static inline u64 hs_cache_key(const struct walk *w, u64 segment)
{
	return segment << 32 | w->region.vm;
}

static inline u64 hs_cache_value(u64 key, u64 compile_id, u64 back)
{
	return compile_id << 32 | (back & (CACHE_BACK_MAX - 1)) << CACHE_CHECK_BITS |
	       key * 0x9e3779b97f4a7c15ull >> (64 - CACHE_CHECK_BITS);
}

/* Reads the nmethod of a segment where the cache says, if it is still there: see README.md. */
static inline bool hs_recall(struct walk *w, const struct hotspot_vm *vm, u64 segment)
{
	struct walk_cache *cached = hs_cache(w, segment);
	u64 key = hs_cache_key(w, segment), value, back;

	if (!cached || cached->key != key)
		return false;
	value = cached->value;
	back = value >> CACHE_CHECK_BITS & (CACHE_BACK_MAX - 1);
	return value == hs_cache_value(key, value >> 32, back) && hs_read_block(w, vm, segment - back) &&
	       hs_is_nmethod(w, vm, back) && hs_field(w, vm->compile_id) == value >> 32;
}

/* Reads the block that a segment belongs to, and caches where it is. */
WALK_GLOBAL int hotspot_find(struct walk *w, u64 segment)
{
	const struct hotspot_vm *vm;
	struct walk_cache *cached;
	u64 first = segment;
	u8 back = SEGMENT_FREE;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	for (u32 i = 0; i < HOPS_MAX; i++) {
		if (!walk_read(w, &back, 1, vm->segmap + first))
			return STOP_VM_ABSENT;
		if (!back || back == SEGMENT_FREE)
			break;
		first -= back;
	}
	if (back)
		return STOP_VM_BROKEN;
	if (first > segment || !hs_read_block(w, vm, first))
		return STOP_VM_ABSENT;
	cached = hs_cache(w, segment);
	if (cached && segment - first < CACHE_BACK_MAX && hs_is_nmethod(w, vm, segment - first)) {
		cached->key = hs_cache_key(w, segment);
		cached->value = hs_cache_value(hs_cache_key(w, segment), hs_field(w, vm->compile_id), segment - first);
	}
	return STOP_NONE;
}

#endif
