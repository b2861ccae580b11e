/* SPDX-License-Identifier: Apache-2.0 */
/* A process that has musl's malloc in it, as bytes: a file's data with the list of areas, one area, and groups. */
#ifndef MALLOCNG_FAKE_H
#define MALLOCNG_FAKE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_memory.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/mallocng.h"

#define FAKE_DATA     0x7f0000200000ull
#define FAKE_HEAP     0x7f0010000000ull /* the area, and behind it groups */
#define FAKE_SIZE     0x40000ull
#define FAKE_MAPPINGS 2
#define FAKE_SECRET   0x123456789abcdefull
#define FAKE_HEAD     (FAKE_DATA + 0x100 + 56)

struct mallocng_fake {
	struct memory memory;
	struct space space;
	struct pages pages;
	struct map_line lines[FAKE_MAPPINGS];
	struct space_map of[FAKE_MAPPINGS];
	u8 *bytes[FAKE_MAPPINGS];
	u32 nmetas;
};

static inline u8 *mallocng_fake_at(struct mallocng_fake *f, u64 addr, u64 size)
{
	return fake_memory_at(f->lines, f->bytes, FAKE_MAPPINGS, addr, size);
}

static inline bool mallocng_fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	return fake_memory_read(mallocng_fake_at((struct mallocng_fake *)mem, addr, size), dst, size);
}

static inline void mallocng_fake_put(struct mallocng_fake *f, u64 addr, u64 word)
{
	fake_memory_put(mallocng_fake_at(f, addr, sizeof(word)), word);
}

/* Returns the address of its structure. */
static inline u64 mallocng_fake_group(
        struct mallocng_fake *f, u64 at, u32 class, u32 slots, u32 avail, u32 freed, u64 pages)
{
	u64 meta = FAKE_HEAP + 24 + 40ull * f->nmetas++;

	mallocng_fake_put(f, meta + 16, at);
	mallocng_fake_put(f, meta + 24, avail | (u64)freed << 32);
	mallocng_fake_put(f, meta + 32, (slots - 1) | 1 << 5 | class << 6 | pages << 12);
	mallocng_fake_put(f, at, meta);
	return meta;
}

static inline struct mallocng_fake *mallocng_fake_create(void)
{
	static const u64 starts[FAKE_MAPPINGS] = {FAKE_DATA, FAKE_HEAP};
	struct mallocng_fake *f = calloc(1, sizeof(*f));

	f->memory.read = mallocng_fake_read;
	for (u32 i = 0; i < FAKE_MAPPINGS; i++) {
		f->lines[i] = (struct map_line){.start = starts[i],
		        .end = starts[i] + FAKE_SIZE,
		        .prot = PROT_READ | PROT_WRITE,
		        .ino = !i,
		        .path = (char *)(i ? "" : "/no/such/folder/program")};
		f->of[i].all = (struct amount){.size = FAKE_SIZE, .resident = FAKE_SIZE};
		f->bytes[i] = calloc(1, FAKE_SIZE);
	}
	pages_open(&f->pages, 0, NULL);
	f->space = (struct space){
	        .memory = &f->memory, .maps = {f->lines, FAKE_MAPPINGS, 0}, .of = f->of, .pages = &f->pages};
	mallocng_fake_put(f, FAKE_HEAD - 56, FAKE_SECRET);
	mallocng_fake_put(f, FAKE_HEAD, FAKE_HEAP);
	mallocng_fake_put(f, FAKE_HEAD + 8, FAKE_HEAP);
	mallocng_fake_put(f, FAKE_HEAP, FAKE_SECRET);
	mallocng_fake_put(f, FAKE_HEAP + 16, MALLOCNG_SLOTS);
	return f;
}

static inline void mallocng_fake_destroy(struct mallocng_fake *f)
{
	for (u32 i = 0; i < FAKE_MAPPINGS; i++)
		free(f->bytes[i]);
	free(f);
}

#endif
