/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: memory that yrt writes and walkers read by 32-bit offsets (shared/region.h). It grows by slabs of
 * ARENA_SLAB_SIZE; a piece never crosses the end of a slab. Its owner provides the slabs: plain memory for native
 * walks, BPF maps for sampling (probes/).
 */
#ifndef YRT_ARENA_H
#define YRT_ARENA_H

#include <types.h>

#include "error.h"

struct arena_source {
	/* Makes slab number i, ARENA_SLAB_SIZE bytes of zeroes that stay mapped until done. */
	struct error *(*make)(struct arena_source *source, u32 i, void **ret);
	void (*done)(struct arena_source *source, u32 i, void *slab);
};

struct arena;

/* source NULL: plain memory. The source must outlive the arena. */
struct error *arena_create(struct arena_source *source, struct arena **ret);
void arena_destroy(struct arena *arena);

/* A piece of size bytes, 8-byte aligned, zeroed. Its offset is *ret, never 0. size <= ARENA_SLAB_SIZE - 64. */
struct error *arena_alloc(struct arena *arena, u32 size, u32 *ret);
void arena_free(struct arena *arena, u32 offset, u32 size);
/* The bytes at offset; NULL if that is out of range. */
void *arena_at(const struct arena *arena, u32 offset, u32 size);
/* Bytes of all slabs. */
u64 arena_size(const struct arena *arena);

#endif
