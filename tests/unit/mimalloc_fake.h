/* SPDX-License-Identifier: Apache-2.0 */
/* A process with mimalloc in it, as bytes: a segment of version 2, and a map, an arena and pages of version 3. */
#ifndef MIMALLOC_FAKE_H
#define MIMALLOC_FAKE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_memory.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/mimalloc.h"

#define FAKE_DATA     0x7f0000200000ull /* has the map's address */
#define FAKE_MAP      0x7f0010001000ull
#define FAKE_MAP_SIZE (1ull << 21)
#define FAKE_SUB      (FAKE_MAP + FAKE_MAP_SIZE + 0x10000)
#define FAKE_SEGMENT  0x7f0040000000ull
#define FAKE_ARENA    0x7f0080000000ull
#define FAKE_META     (FAKE_ARENA + 0x1000) /* mi_page_t by slice */
#define FAKE_PART     (FAKE_MAP + 8 * (FAKE_ARENA / (MIMALLOC_SUB_ENTRIES * MIMALLOC_SLICE)))
#define FAKE_MAPPINGS 4
#define FAKE_PAGE     128

struct mimalloc_fake {
	struct memory memory;
	struct space space;
	struct pages pages;
	struct map_line lines[FAKE_MAPPINGS];
	struct space_map of[FAKE_MAPPINGS];
	u8 *bytes[FAKE_MAPPINGS];
	u32 slice; /* the next one, of the segment or the arena */
	struct core_segment written[6];
	struct core_file core; /* says which pages are in memory: the few that have something */
};

/* 2.1.9 or later; 2.0.9 to 2.1.2. */
static const struct mimalloc_layout mimalloc_fake_late = {"", 288, 96, false, 56};
static const struct mimalloc_layout mimalloc_fake_early = {"", 264, 80, true, 40};

static inline u8 *mimalloc_fake_at(struct mimalloc_fake *f, u64 addr, u64 size)
{
	return fake_memory_at(f->lines, f->bytes, FAKE_MAPPINGS, addr, size);
}

static inline bool mimalloc_fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	return fake_memory_read(mimalloc_fake_at((struct mimalloc_fake *)mem, addr, size), dst, size);
}

static inline void mimalloc_fake_put(struct mimalloc_fake *f, u64 addr, u64 word)
{
	fake_memory_put(mimalloc_fake_at(f, addr, sizeof(word)), word);
}

/* Slices of the segment behind those of the last run. block 0: free ones. */
static inline void mimalloc_fake_slices(struct mimalloc_fake *f, const struct mimalloc_layout *l, u32 n, u64 block,
        u32 used, u32 capacity, u32 reserved)
{
	u64 entry = FAKE_SEGMENT + l->slices + (u64)f->slice * l->stride;

	mimalloc_fake_put(f, entry, n);
	mimalloc_fake_put(f, entry + 8, (u64)capacity << 16 | (u64)reserved << 32);
	if (l->packed) {
		mimalloc_fake_put(f, entry + 24, used | block << 32);
	} else {
		mimalloc_fake_put(f, entry + 32, used);
		mimalloc_fake_put(f, entry + 40, block);
	}
	f->slice += n;
}

static inline void mimalloc_fake_segment(struct mimalloc_fake *f, const struct mimalloc_layout *l)
{
	mimalloc_fake_put(f, FAKE_SEGMENT + l->slices - 40, MIMALLOC_SLICES);
	mimalloc_fake_put(f, FAKE_SEGMENT + l->slices - 32, 1);
	mimalloc_fake_put(f, FAKE_SEGMENT + l->slices - 16, MIMALLOC_SLICES);
	f->slice = 0;
	mimalloc_fake_slices(f, l, 1, MIMALLOC_SLICE, 0, 0, 0);
}

/* A page of version 3.4, or (old) of 3.0 to 3.3, behind those of the last one in the arena. */
static inline void mimalloc_fake_page(
        struct mimalloc_fake *f, bool old, u32 n, u64 block, u32 used, u32 capacity, u32 reserved)
{
	u64 meta = FAKE_META + FAKE_PAGE * (u64)f->slice, start = FAKE_ARENA + f->slice * MIMALLOC_SLICE;
	u64 memid = meta + (old ? 96 : 88);

	mimalloc_fake_put(f, meta + 16, used | (u64)capacity << 16 | (u64)reserved << 32);
	mimalloc_fake_put(f, meta + 40, block);
	mimalloc_fake_put(f, meta + 48, old ? start : (start - meta) / 8);
	mimalloc_fake_put(f, memid, FAKE_ARENA);
	mimalloc_fake_put(f, memid + 8, f->slice | (u64)n << 32);
	for (u32 i = 0; i < n; i++)
		mimalloc_fake_put(f, FAKE_SUB + 8ull * (f->slice + i), meta);
	f->slice += n;
}

/* Of 64 slices, the first of which is its own. */
static inline void mimalloc_fake_arena(struct mimalloc_fake *f)
{
	mimalloc_fake_put(f, FAKE_DATA + 0x48, FAKE_MAP);
	mimalloc_fake_put(f, FAKE_MAP, FAKE_MAP + FAKE_MAP_SIZE);
	mimalloc_fake_put(f, FAKE_PART, FAKE_SUB);
	mimalloc_fake_put(f, FAKE_ARENA + 40, 64);
	mimalloc_fake_put(f, FAKE_ARENA + 48, 1);
	f->slice = 1;
}

static inline struct mimalloc_fake *mimalloc_fake_create(void)
{
	static const u64 starts[] = {FAKE_DATA, FAKE_MAP, FAKE_SEGMENT, FAKE_ARENA};
	static const u64 sizes[] = {0x1000, FAKE_MAP_SIZE + 0x20000, MIMALLOC_SEGMENT, 64 * MIMALLOC_SLICE};
	struct mimalloc_fake *f = calloc(1, sizeof(*f));

	f->memory.read = mimalloc_fake_read;
	for (u32 i = 0; i < FAKE_MAPPINGS; i++) {
		f->lines[i] = (struct map_line){.start = starts[i],
		        .end = starts[i] + sizes[i],
		        .prot = PROT_READ | PROT_WRITE,
		        .ino = !i,
		        .path = (char *)(i ? "" : "/no/such/folder/program")};
		f->of[i].all = (struct amount){.size = sizes[i], .resident = sizes[i]};
		f->bytes[i] = calloc(1, sizes[i]);
	}
	f->written[0] = (struct core_segment){.start = FAKE_DATA, .end = FAKE_MAP, .kept = PAGES_SIZE};
	f->written[1] =
	        (struct core_segment){.start = FAKE_MAP, .end = FAKE_PART & ~(PAGES_SIZE - 1), .kept = PAGES_SIZE};
	f->written[2] =
	        (struct core_segment){.start = FAKE_PART & ~(PAGES_SIZE - 1), .end = FAKE_SUB, .kept = PAGES_SIZE};
	f->written[3] = (struct core_segment){.start = FAKE_SUB, .end = FAKE_SEGMENT, .kept = 0x10000};
	f->written[4] = (struct core_segment){.start = FAKE_SEGMENT, .end = FAKE_ARENA, .kept = MIMALLOC_SEGMENT};
	f->written[5] =
	        (struct core_segment){.start = FAKE_ARENA, .end = FAKE_ARENA + sizes[3], .kept = 64 * MIMALLOC_SLICE};
	f->core = (struct core_file){.segments = f->written, .nsegments = 6};
	pages_open(&f->pages, 0, &f->core);
	f->space = (struct space){
	        .memory = &f->memory, .maps = {f->lines, FAKE_MAPPINGS, 0}, .of = f->of, .pages = &f->pages};
	return f;
}

static inline void mimalloc_fake_destroy(struct mimalloc_fake *f)
{
	for (u32 i = 0; i < FAKE_MAPPINGS; i++)
		free(f->bytes[i]);
	free(f);
}

#endif
