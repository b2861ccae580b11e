/* SPDX-License-Identifier: Apache-2.0 */
/* First fit over a sorted list of free extents; an extent never reaches over a slab's end. */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "shared/region.h"

#define ARENA_FIRST 64 /* so that no piece has offset 0 */

struct extent {
	u32 offset, size;
};

struct arena {
	struct arena_source *source, plain;
	void *slab[ARENA_SLABS_MAX];
	u32 nslabs;
	struct extent *free;
	u32 nfree;
};

static struct error *plain_make(struct arena_source *source, u32 i, void **ret)
{
	*ret = calloc(1, ARENA_SLAB_SIZE + ARENA_SLAB_PAD);
	return *ret ? NULL : &error_no_memory;
}

static void plain_done(struct arena_source *source, u32 i, void *slab)
{
	free(slab);
}

struct error *arena_create(struct arena_source *source, struct arena **ret)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return &error_no_memory;
	arena->plain = (struct arena_source){.make = plain_make, .done = plain_done};
	arena->source = source ? source : &arena->plain;
	*ret = arena;
	return NULL;
}

void arena_destroy(struct arena *arena)
{
	if (!arena)
		return;
	for (u32 i = 0; i < arena->nslabs; i++)
		arena->source->done(arena->source, i, arena->slab[i]);
	free(arena->free);
	free(arena);
}

static void remove_extent(struct arena *arena, size_t i)
{
	arena->nfree--;
	memmove(&arena->free[i], &arena->free[i + 1], (arena->nfree - i) * sizeof(*arena->free));
}

static struct error *insert_extent(struct arena *arena, size_t i, struct extent extent)
{
	struct error *err = grow(&arena->free, arena->nfree, sizeof(*arena->free));

	if (err)
		return err;
	memmove(&arena->free[i + 1], &arena->free[i], (arena->nfree - i) * sizeof(*arena->free));
	arena->free[i] = extent;
	arena->nfree++;
	return NULL;
}

static struct error *add_slab(struct arena *arena)
{
	u32 i = arena->nslabs, first = i ? 0 : ARENA_FIRST;
	struct error *err;

	if (i == ARENA_SLABS_MAX)
		return error_new(ERROR_INTERNAL, "the unwind tables need more than %u slabs", ARENA_SLABS_MAX);
	err = arena->source->make(arena->source, i, &arena->slab[i]);
	if (err)
		return err;
	arena->nslabs++;
	return insert_extent(arena, arena->nfree,
	        (struct extent){.offset = (i << ARENA_SLAB_BITS) + first, .size = ARENA_SLAB_SIZE - first});
}

static bool take_extent(struct arena *arena, u32 size, u32 *ret)
{
	for (size_t i = 0; i < arena->nfree; i++) {
		struct extent *e = &arena->free[i];

		if (e->size < size)
			continue;
		*ret = e->offset;
		e->offset += size;
		e->size -= size;
		if (!e->size)
			remove_extent(arena, i);
		return true;
	}
	return false;
}

static u32 round_up(u32 size)
{
	return (size + 7) & ~7u;
}

struct error *arena_alloc(struct arena *arena, u32 size, u32 *ret)
{
	struct error *err;

	if (!size || size > ARENA_SLAB_SIZE - ARENA_FIRST)
		return error_new(ERROR_INTERNAL, "a table of %u bytes does not fit into a slab", size);
	size = round_up(size);
	if (!take_extent(arena, size, ret)) {
		err = add_slab(arena);
		if (err)
			return err;
		take_extent(arena, size, ret);
	}
	memset(arena_at(arena, *ret, size), 0, size);
	return NULL;
}

void arena_free(struct arena *arena, u32 offset, u32 size)
{
	struct extent *e = arena->free;
	size_t i = 0;

	if (!offset)
		return;
	size = round_up(size);
	while (i < arena->nfree && e[i].offset < offset)
		i++;
	if (i && e[i - 1].offset + e[i - 1].size == offset && offset % ARENA_SLAB_SIZE) {
		e[i - 1].size += size;
		if (i < arena->nfree && offset + size == e[i].offset && e[i].offset % ARENA_SLAB_SIZE) {
			e[i - 1].size += e[i].size;
			remove_extent(arena, i);
		}
	} else if (i < arena->nfree && offset + size == e[i].offset && e[i].offset % ARENA_SLAB_SIZE) {
		e[i].offset = offset;
		e[i].size += size;
	} else {
		error_free(insert_extent(arena, i, (struct extent){.offset = offset, .size = size}));
	}
}

void *arena_at(const struct arena *arena, u32 offset, u32 size)
{
	u32 slab = offset >> ARENA_SLAB_BITS, at = offset & (ARENA_SLAB_SIZE - 1);

	if (slab >= arena->nslabs || size > ARENA_SLAB_SIZE - at)
		return NULL;
	return (u8 *)arena->slab[slab] + at;
}

u64 arena_size(const struct arena *arena)
{
	return (u64)arena->nslabs * (ARENA_SLAB_SIZE + ARENA_SLAB_PAD);
}
