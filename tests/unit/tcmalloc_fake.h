/* SPDX-License-Identifier: Apache-2.0 */
/* A process with tcmalloc of gperftools in it, as bytes: a data segment with root and sizes, a node, spans. */
#ifndef TCMALLOC_FAKE_H
#define TCMALLOC_FAKE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_memory.h"
#include "unwind/allocators/allocators.h"
#include "unwind/allocators/tcmalloc.h"

#define TCMALLOC_NODE (1u << 18) /* words of a lower node */
#define FAKE_DATA     0x7f0000200000ull
#define FAKE_SIZES    (FAKE_DATA + 0x40)
#define FAKE_ROOT     (FAKE_DATA + 0x1000)
#define FAKE_NODE     0x7f0010000000ull
#define FAKE_SPANS    (FAKE_NODE + 8ull * TCMALLOC_NODE) /* their structures */
#define FAKE_HEAP     0x7f0080000000ull                  /* nobody reads what it holds */
#define FAKE_SIZE     (8ull * TCMALLOC_NODE + 0x10000)
#define FAKE_MAPPINGS 3

struct tcmalloc_fake {
	struct memory memory;
	struct space space;
	struct pages pages;
	struct map_line lines[FAKE_MAPPINGS];
	struct space_map of[FAKE_MAPPINGS];
	u8 *bytes[2];
	u64 span, at; /* of the next one */
	struct core_segment written[4];
	struct core_file core; /* says which pages are in memory: the few that have something */
};

static inline u8 *tcmalloc_fake_at(struct tcmalloc_fake *f, u64 addr, u64 size)
{
	return fake_memory_at(f->lines, f->bytes, 2, addr, size);
}

static inline bool tcmalloc_fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	return fake_memory_read(tcmalloc_fake_at((struct tcmalloc_fake *)mem, addr, size), dst, size);
}

static inline void tcmalloc_fake_put(struct tcmalloc_fake *f, u64 addr, u64 word)
{
	fake_memory_put(tcmalloc_fake_at(f, addr, sizeof(word)), word);
}

/* Pages behind those of the last span. */
static inline void tcmalloc_fake_span(
        struct tcmalloc_fake *f, enum tcmalloc_place place, u32 class, u32 nused, u64 npages)
{
	u64 page = f->at / TCMALLOC_PAGE;

	tcmalloc_fake_put(f, f->span, page);
	tcmalloc_fake_put(f, f->span + 8, npages);
	tcmalloc_fake_put(f, f->span + 40, nused | class << 16 | (u64)place << 24);
	for (u64 i = 0; i < npages; i++)
		tcmalloc_fake_put(f, FAKE_NODE + 8 * ((page + i) % TCMALLOC_NODE), f->span);
	f->span += 48;
	f->at += npages * TCMALLOC_PAGE;
}

/* 0, 16, 32 … and the largest. */
static inline void tcmalloc_fake_sizes(struct tcmalloc_fake *f)
{
	for (u32 i = 0; i < 20; i++) {
		u32 size = i == 19 ? 262144 : 16 * i;

		memcpy(tcmalloc_fake_at(f, FAKE_SIZES + 4ull * i, 4), &size, 4);
	}
}

#define FAKE_GOOGLE_SIZE  0x810000ull
#define FAKE_GOOGLE_NODE  (FAKE_NODE + 8) /* lies anywhere */
#define FAKE_GOOGLE_WORDS (FAKE_GOOGLE_NODE + 32768)

/* The same of Google's: a root of 2^20 words, classes of pages by themselves, packed spans. */
static inline void tcmalloc_fake_google_span(struct tcmalloc_fake *f, u32 class, u32 nused, u64 npages)
{
	u64 page = f->at / TCMALLOC_PAGE;

	tcmalloc_fake_put(f, f->span + 16, (u64)nused << 32);
	tcmalloc_fake_put(f, f->span + 24, page | (u64)(npages > 63) << 60);
	tcmalloc_fake_put(f, f->span + 32, npages);
	for (u64 i = 0; i < npages; i++) {
		u64 at = (page + i) % 32768;

		tcmalloc_fake_put(f, FAKE_GOOGLE_WORDS + 8 * at, f->span | (u64) class << 48);
		*tcmalloc_fake_at(f, FAKE_GOOGLE_NODE + at, 1) = (u8) class;
	}
	f->span += 64;
	f->at += npages * TCMALLOC_PAGE;
}

static inline struct tcmalloc_fake *tcmalloc_fake_create(void)
{
	static const u64 starts[] = {FAKE_DATA, FAKE_NODE, FAKE_HEAP};
	struct tcmalloc_fake *f = calloc(1, sizeof(*f));

	f->memory.read = tcmalloc_fake_read;
	f->span = FAKE_SPANS;
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
	tcmalloc_fake_sizes(f);
	tcmalloc_fake_put(f, FAKE_ROOT + 8 * (FAKE_HEAP / TCMALLOC_PAGE / TCMALLOC_NODE), FAKE_NODE);
	f->written[0] = (struct core_segment){.start = FAKE_DATA, .end = FAKE_NODE, .kept = 0x110000};
	f->written[1] = (struct core_segment){.start = FAKE_NODE, .end = FAKE_SPANS, .kept = PAGES_SIZE};
	f->written[2] = (struct core_segment){.start = FAKE_SPANS, .end = FAKE_HEAP, .kept = PAGES_SIZE};
	f->written[3] = (struct core_segment){.start = FAKE_HEAP, .end = FAKE_HEAP + FAKE_SIZE, .kept = FAKE_SIZE};
	f->core = (struct core_file){.segments = f->written, .nsegments = 4};
	pages_open(&f->pages, 0, &f->core);
	f->space = (struct space){
	        .memory = &f->memory, .maps = {f->lines, FAKE_MAPPINGS, 0}, .of = f->of, .pages = &f->pages};
	return f;
}

/* Behind a root that is larger than gperftools' one: call it instead of adding spans of that. */
static inline struct tcmalloc_fake *tcmalloc_fake_google(void)
{
	struct tcmalloc_fake *f = tcmalloc_fake_create();

	free(f->bytes[0]);
	f->lines[0].end = FAKE_DATA + FAKE_GOOGLE_SIZE;
	f->of[0].all = (struct amount){.size = FAKE_GOOGLE_SIZE, .resident = FAKE_GOOGLE_SIZE};
	f->bytes[0] = calloc(1, FAKE_GOOGLE_SIZE);
	f->written[0].kept = FAKE_GOOGLE_SIZE;
	f->written[1].kept = 0x60000; /* the node */
	tcmalloc_fake_sizes(f);
	tcmalloc_fake_put(f, FAKE_ROOT + 8 * (FAKE_HEAP / TCMALLOC_PAGE / 32768), FAKE_GOOGLE_NODE);
	return f;
}

static inline void tcmalloc_fake_destroy(struct tcmalloc_fake *f)
{
	free(f->bytes[0]);
	free(f->bytes[1]);
	free(f);
}

#endif
