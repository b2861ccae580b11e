/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glibc's malloc, 2.26 to 2.43, on 64-bit machines: malloc/malloc.c and malloc/arena.c of each version. Which version
 * it is follows from the structures themselves:
 *
 *	until 2.26	2.27	2.29	2.30	2.32	2.35	2.42	2.43
 *	fastbins at 8	at 16						none
 *			tcache keys	counts of 16 bits
 *						lists are mangled
 *							heap_info of 48 bytes
 *								counts run down, 76 bins
 *									a mapped block ends 16 bytes earlier
 */
#ifndef YRT_GLIBC_H
#define YRT_GLIBC_H

#include "block_reader.h"
#include "size_class.h"
#include "space.h"
#include "usage.h"

/* Bits in a chunk's size, and its least size. */
#define CHUNK_PREV_IN_USE 1u
#define CHUNK_MAPPED      2u
#define CHUNK_OTHER_ARENA 4u
#define CHUNK_BITS        7u
#define CHUNK_LEAST       32u
#define CHUNK_HEADER      16u
#define CHUNK_SMALL       1024u /* from here on a free chunk is in a large bin */

#define GLIBC_BINS       127 /* pairs of struct malloc_state.bins */
#define GLIBC_FAST_BINS  10
#define GLIBC_CLASSES    SIZE_CLASSES
#define GLIBC_NEXT       (2 * GLIBC_BINS * 8 + 16) /* struct malloc_state.next, from the bins: behind binmap */
#define GLIBC_ARENAS_MAX (1u << 16)

enum glibc_state {
	GLIBC_IN_USE,
	GLIBC_CACHED, /* for a thread */
	GLIBC_FAST,
	GLIBC_UNSORTED,
	GLIBC_SMALL,
	GLIBC_LARGE,
	GLIBC_TOP,
	GLIBC_METADATA,
	GLIBC_UNREAD,
	GLIBC_STATES,
};

struct glibc_classes {
	struct amount of[GLIBC_CLASSES];
};

struct glibc_segment { /* chunks one behind the other */
	u64 start, end;
	u32 arena;
	bool last; /* it ends with the arena's top */
};

struct glibc_arena {
	u64 at, top, system;
	u64 *unsorted, *fast; /* addresses of free chunks, ascending */
	u32 nunsorted, nfast;
	struct glibc_classes *states[GLIBC_STATES]; /* NULL: nothing */
};

/* struct malloc_par; 0: not found. */
struct glibc_parameters {
	u64 at; /* of sbrk_base */
	u64 sbrk_base, mapped_bytes;
	u32 mapped_blocks;
};

struct glibc {
	struct space *space;
	struct usage *usage;
	struct block_reader reader;
	char version[16];    /* "2.36"; "": unknown */
	u64 data, data_size; /* the writable memory that main_arena lies in */
	u64 bins;            /* offset of struct malloc_state.bins */
	u64 heap_info;       /* sizeof(heap_info); 0: no other arena was seen */
	struct glibc_parameters parameters;
	struct glibc_arena *arenas; /* the first is main_arena */
	u32 narenas;
	struct glibc_segment *segments;
	u32 nsegments;
	u64 *caches; /* what looks like a struct tcache_perthread_struct: addresses of chunks */
	u32 ncaches;
	struct amount mapped[GLIBC_CLASSES]; /* blocks with a mapping of their own */
	u64 torn;
	u32 node; /* of the tree */
};

/* sizeof(struct malloc_state): after the bins come binmap, next, next_free, attached_threads, system_mem, max. */
static inline u64 glibc_arena_size(const struct glibc *g)
{
	return g->bins + 2 * GLIBC_BINS * 8 + 16 + 5 * 8;
}

/* glibc_find.c: main_arena in [start, end) of the target's data, by its structure. False: it is not there. */
bool glibc_find_arena(struct space *s, u64 start, u64 end, u64 *bins);
/*
 * Do arenas that have their bins at some offset follow each other in a ring that leads back to the one whose bins are
 * here? A list of bins that is taken for one too early or too late has no such ring.
 */
bool glibc_is_ring(struct space *s, u64 bins, u64 *offset);
/* glibc_arenas.c: all arenas, their free lists and segments. False: main_arena does not hold together. */
struct error *glibc_read_arenas(struct glibc *g, u64 bins, bool *found);
/* Chunks of a list, by the first one; a link leads so many bytes (bias) behind the start of the next chunk. */
struct error *glibc_read_list(struct glibc *g, u64 first, u64 bias, u64 **ret, u32 *n);
/* Reads the arena's top again, and where its last segment ends. */
void glibc_refresh(struct glibc *g, u32 segment);
/* glibc_chunks.c: counts all chunks of a segment. */
struct error *glibc_walk(struct glibc *g, u32 segment);
/* Adds a block to what an arena has in a state. */
struct error *glibc_count(struct glibc *g, u32 arena, enum glibc_state state, u64 at, u64 size);
/* glibc_cache.c: might this chunk be a thread's cache with something in it? content: of size bytes. */
bool glibc_is_cache(const struct glibc *g, u64 size, const u8 *content);
/* Counts what is in caches of threads, which the walk took for used. */
struct error *glibc_read_caches(struct glibc *g);
/* The segment that holds an address; nsegments: none. */
u32 glibc_segment_at(const struct glibc *g, u64 addr);
/* The target of a link at an address, which may be mangled. */
static inline u64 glibc_link(u64 at, u64 value, bool mangled)
{
	return mangled ? value ^ (at >> 12) : value;
}

#endif
