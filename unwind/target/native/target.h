/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a read means in a walk in user space: a live process, a core file, a test's memory. */
#ifndef YRT_TARGET_H
#define YRT_TARGET_H

#include "arena.h"
#include "binary/memory.h"

static inline bool walk_read(struct walk *w, void *dst, u32 size, u64 addr)
{
	return memory_read(w->target.memory, dst, size, addr);
}

static inline bool walk_fill(struct walk *w, u64 *dst, u32 size, u64 addr)
{
	return size <= WALK_WINDOW && memory_read(w->target.memory, dst, size, addr);
}

static inline const u8 *walk_slab(struct walk *w, u32 offset)
{
	return arena_at(w->target.arena, offset & ~(ARENA_SLAB_SIZE - 1), ARENA_SLAB_SIZE);
}

static inline struct walk_cache *walk_cache(struct walk *w, u32 index)
{
	return w->target.caches ? &w->target.caches[index & (WALK_CACHES - 1)] : NULL;
}

static inline bool walk_put(struct walk *w, u32 index, u64 where, u64 detail)
{
	w->target.frames[index] = (struct frame){.where = where, .detail = detail};
	return true;
}

#endif
