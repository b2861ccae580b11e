/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that has glibc's malloc in it, as bytes: libc's data with main_arena, the heap that brk() gave, and a heap
 * of one other arena. Structures are those of malloc/malloc.c and malloc/arena.c.
 */
#ifndef GLIBC_FAKE_H
#define GLIBC_FAKE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/allocators/allocators.h"
#include "unwind/allocators/glibc.h"

#define FAKE_LIBC       0x7f0000200000ull
#define FAKE_HEAP       0x555500000000ull
#define FAKE_OTHER      0x7f0008000000ull /* a heap of 64 MiB of another arena */
#define FAKE_SIZE       0x10000ull
#define FAKE_MAPPINGS   3
#define FAKE_MAIN_ARENA (FAKE_LIBC + 0xc80)

struct glibc_fake {
	struct memory memory;
	struct space space;
	struct pages pages;
	struct map_line lines[FAKE_MAPPINGS];
	struct space_map of[FAKE_MAPPINGS];
	u8 bytes[FAKE_MAPPINGS][FAKE_SIZE];
	u64 at;          /* of the next chunk */
	u64 bins;        /* offset of the bins in an arena */
	u32 other_flag;  /* CHUNK_OTHER_ARENA, while chunks of it are made */
	bool was_in_use; /* the chunk before */
};

static inline u8 *glibc_fake_at(struct glibc_fake *f, u64 addr, u64 size)
{
	for (u32 i = 0; i < FAKE_MAPPINGS; i++)
		if (addr >= f->lines[i].start && addr < f->lines[i].end && size <= f->lines[i].end - addr)
			return f->bytes[i] + (addr - f->lines[i].start);
	return NULL;
}

static inline bool glibc_fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	const u8 *bytes = glibc_fake_at((struct glibc_fake *)mem, addr, size);

	if (bytes)
		memcpy(dst, bytes, size);
	return bytes;
}

static inline void glibc_fake_put(struct glibc_fake *f, u64 addr, u64 word)
{
	u8 *to = glibc_fake_at(f, addr, 8);

	if (to)
		memcpy(to, &word, 8);
}

static inline void glibc_fake_arena(struct glibc_fake *f, u64 at, u64 next)
{
	for (u32 i = 0; i < GLIBC_BINS; i++) {
		u64 bin = at + f->bins + 16ull * i - 16;

		glibc_fake_put(f, bin + 16, bin);
		glibc_fake_put(f, bin + 24, bin);
	}
	glibc_fake_put(f, at + f->bins + GLIBC_NEXT, next);
	glibc_fake_put(f, at + f->bins + GLIBC_NEXT + 24, FAKE_SIZE); /* system_mem */
}

static inline void glibc_fake_map(struct glibc_fake *f, u32 i, u64 start, const char *path, u64 ino)
{
	f->lines[i] = (struct map_line){.start = start,
	        .end = start + FAKE_SIZE,
	        .prot = PROT_READ | PROT_WRITE,
	        .ino = ino,
	        .path = (char *)path};
	f->of[i].all = (struct amount){.size = FAKE_SIZE, .resident = FAKE_SIZE};
}

/* A chunk behind the last one; returns its address. */
static inline u64 glibc_fake_chunk(struct glibc_fake *f, u64 size, bool in_use)
{
	u64 at = f->at, other = in_use ? f->other_flag : 0;

	glibc_fake_put(f, at + 8, size | other | (f->was_in_use ? CHUNK_PREV_IN_USE : 0));
	if (!in_use)
		glibc_fake_put(f, at + size, size); /* at its end; where the next one begins */
	f->was_in_use = in_use;
	f->at += size;
	return at;
}

/* The rest of the mapping is the top of the arena. */
static inline void glibc_fake_top(struct glibc_fake *f, u64 arena, u64 end)
{
	glibc_fake_put(f, f->at + 8, (end - f->at) | (f->was_in_use ? CHUNK_PREV_IN_USE : 0));
	glibc_fake_put(f, arena + f->bins - 16, f->at);
}

/* Begins the arena's chunks: those of main_arena, or of the other one. */
static inline u64 glibc_fake_begin(struct glibc_fake *f, bool other)
{
	u64 arena = FAKE_OTHER + 0x30;

	f->was_in_use = true;
	f->other_flag = other ? CHUNK_OTHER_ARENA : 0;
	f->at = FAKE_HEAP;
	if (!other)
		return FAKE_MAIN_ARENA;
	f->at = (arena + f->bins + GLIBC_NEXT + 40 + 15) & ~15ull;
	glibc_fake_put(f, FAKE_OTHER, arena); /* heap_info */
	glibc_fake_put(f, FAKE_OTHER + 16, FAKE_SIZE);
	glibc_fake_put(f, FAKE_OTHER + 24, FAKE_SIZE);
	return arena;
}

/* bins: their offset in struct malloc_state: 0x68 until 2.26, 0x70 until 2.42, then 0x18. */
static inline struct glibc_fake *glibc_fake_create(u64 bins, bool other)
{
	struct glibc_fake *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->memory.read = glibc_fake_read;
	f->bins = bins;
	glibc_fake_map(f, 0, FAKE_HEAP, "[heap]", 0);
	glibc_fake_map(f, 1, FAKE_LIBC, "/no/such/folder/libc.so.6", 1);
	glibc_fake_map(f, 2, FAKE_OTHER, "", 0);
	pages_open(&f->pages, 0, NULL);
	f->space = (struct space){
	        .memory = &f->memory, .maps = {f->lines, FAKE_MAPPINGS, 0}, .of = f->of, .pages = &f->pages};
	glibc_fake_arena(f, FAKE_MAIN_ARENA, other ? FAKE_OTHER + 0x30 : FAKE_MAIN_ARENA);
	if (other)
		glibc_fake_arena(f, FAKE_OTHER + 0x30, FAKE_MAIN_ARENA);
	return f;
}

#endif
