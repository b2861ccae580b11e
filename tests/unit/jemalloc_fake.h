/* SPDX-License-Identifier: Apache-2.0 */
/* A process that has jemalloc in it, as bytes: a file's data with the tree's root, one leaf, and extents. */
#ifndef JEMALLOC_FAKE_H
#define JEMALLOC_FAKE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_memory.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/jemalloc.h"

#define FAKE_DATA     0x7f0000200000ull
#define FAKE_BASE     0x7f0010000000ull /* the leaf, and behind it the extents' structures */
#define FAKE_HEAP     0x7f0040000000ull
#define FAKE_NODE     (8ull * JEMALLOC_NODE)
#define FAKE_EXTENTS  (FAKE_BASE + 64 + FAKE_NODE + 64)
#define FAKE_ROOT     (FAKE_DATA + 0x348 + 8 * (FAKE_HEAP >> 30)) /* the root's only word */
#define FAKE_SIZE     (FAKE_NODE + 0x10000)
#define FAKE_MAPPINGS 3

struct jemalloc_fake {
	struct memory memory;
	struct space space;
	struct pages pages;
	struct map_line lines[FAKE_MAPPINGS];
	struct space_map of[FAKE_MAPPINGS];
	u8 *bytes[2]; /* nobody reads what blocks hold */
	const struct jemalloc_layout *layout;
	u64 extent, at; /* of the next one */
	struct core_segment written[FAKE_MAPPINGS];
	struct core_file core; /* says which pages are in memory: the few that have something */
};

static inline u8 *jemalloc_fake_at(struct jemalloc_fake *f, u64 addr, u64 size)
{
	return fake_memory_at(f->lines, f->bytes, 2, addr, size);
}

static inline bool jemalloc_fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	return fake_memory_read(jemalloc_fake_at((struct jemalloc_fake *)mem, addr, size), dst, size);
}

static inline void jemalloc_fake_put(struct jemalloc_fake *f, u64 addr, u64 word)
{
	fake_memory_put(jemalloc_fake_at(f, addr, sizeof(word)), word);
}

/* Pages behind those of the last extent; nfree: of a slab, whose pages are all in the leaf. */
static inline void jemalloc_fake_extent(
        struct jemalloc_fake *f, u32 arena, enum jemalloc_state state, u32 class, bool slab, u32 nfree, u64 size)
{
	u64 bits = arena | (u64)slab << 12 | (u64)state << f->layout->state_at | (u64) class << f->layout->class_at |
	           (u64)nfree << f->layout->free_at;
	u64 leaf = FAKE_BASE + 64, word = (u64) class << 48 | f->extent | slab;

	jemalloc_fake_put(f, f->extent, bits);
	jemalloc_fake_put(f, f->extent + 8, f->at);
	jemalloc_fake_put(f, f->extent + 16, size | 1);
	for (u64 at = f->at; at < f->at + size; at += PAGES_SIZE)
		if (slab || at == f->at || at + PAGES_SIZE == f->at + size)
			jemalloc_fake_put(f, leaf + (at / PAGES_SIZE % JEMALLOC_NODE) * 8, word);
	f->extent += 128;
	f->at += size;
}

static inline struct jemalloc_fake *jemalloc_fake_create(const struct jemalloc_layout *layout)
{
	static const u64 starts[] = {FAKE_DATA, FAKE_BASE, FAKE_HEAP};
	struct jemalloc_fake *f = calloc(1, sizeof(*f));

	f->memory.read = jemalloc_fake_read;
	f->layout = layout;
	f->extent = FAKE_EXTENTS;
	f->at = FAKE_HEAP;
	for (u32 i = 0; i < FAKE_MAPPINGS; i++) {
		f->lines[i] = (struct map_line){.start = starts[i],
		        .end = starts[i] + FAKE_SIZE,
		        .prot = PROT_READ | PROT_WRITE,
		        .ino = !i,
		        .path = (char *)(i ? "" : "/no/such/folder/program")};
		f->of[i].all = (struct amount){.size = FAKE_SIZE, .resident = FAKE_SIZE};
	}
	for (u32 i = 0; i < 2; i++)
		f->bytes[i] = calloc(1, FAKE_SIZE);
	f->written[0] = (struct core_segment){
	        .start = FAKE_ROOT & ~(PAGES_SIZE - 1), .end = FAKE_DATA + FAKE_SIZE, .kept = PAGES_SIZE};
	f->written[1] = (struct core_segment){.start = FAKE_BASE, .end = FAKE_EXTENTS, .kept = 4 * PAGES_SIZE};
	f->written[2] = (struct core_segment){.start = FAKE_EXTENTS, .end = FAKE_HEAP, .kept = 0x8000};
	f->core = (struct core_file){.segments = f->written, .nsegments = FAKE_MAPPINGS};
	pages_open(&f->pages, 0, &f->core);
	f->space = (struct space){
	        .memory = &f->memory, .maps = {f->lines, FAKE_MAPPINGS, 0}, .of = f->of, .pages = &f->pages};
	jemalloc_fake_put(f, FAKE_ROOT, FAKE_BASE + 64);
	return f;
}

static inline void jemalloc_fake_destroy(struct jemalloc_fake *f)
{
	free(f->bytes[0]);
	free(f->bytes[1]);
	free(f);
}

#endif
