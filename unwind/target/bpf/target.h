/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a read means in a walk inside the kernel: user memory of the current task, and maps for yrt's own tables. */
#ifndef YRT_TARGET_H
#define YRT_TARGET_H

#include "shared/record.h"

struct slab_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct slab));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, ARENA_SLABS_MAX);
	__type(key, u32);
	__array(values, struct slab_map);
} slabs SEC(".maps");

struct { /* resized before loading: CPUs * slots * chunks of a stack */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_record);
} chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WALK_CACHES);
	__type(key, u32);
	__type(value, struct walk_cache);
} caches SEC(".maps");

static inline bool walk_read(struct walk *w, void *dst, u32 size, u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr) == 0;
}

static inline bool walk_fill(struct walk *w, u64 *dst, u32 size, u64 addr)
{
	WALK_BARRIER(size);
	if (size > WALK_WINDOW)
		return false;
	return bpf_probe_read_user(dst, size, (const void *)addr) == 0;
}

static inline const u8 *walk_slab(struct walk *w, u32 offset)
{
	u32 number = offset >> ARENA_SLAB_BITS, zero = 0;
	void *slab = bpf_map_lookup_elem(&slabs, &number);

	return slab ? bpf_map_lookup_elem(slab, &zero) : NULL;
}

static inline struct walk_cache *walk_cache(struct walk *w, u32 index)
{
	index &= WALK_CACHES - 1;
	return bpf_map_lookup_elem(&caches, &index);
}

static inline __attribute__((always_inline)) bool walk_put(struct walk *w, u32 index, u64 where, u64 detail)
{
	u32 number = w->target.chunk + index / CHUNK_FRAMES;
	struct stack_record *chunk = bpf_map_lookup_elem(&chunks, &number);
	u64 i = index % CHUNK_FRAMES;

	if (!chunk)
		return false;
	WALK_BARRIER(i);
	if (i >= CHUNK_FRAMES)
		return false;
	chunk->frame[i].where = where;
	chunk->frame[i].detail = detail;
	return true;
}

#endif
