/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What glibc's malloc and jemalloc have in use and free over a run in the targets, and in which sizes of blocks: a
 * thread reads their heaps (unwind/allocators/), as often as takes little time. Jemalloc's is read where its functions
 * are: to find out that it is not there takes longer than all the rest. A leak is memory in use that grows; a heap that
 * grows while what is in use does not is fragmented, or caches of threads fill up.
 */
#ifndef YRT_LEAK_HEAP_H
#define YRT_LEAK_HEAP_H

#include "leak.h"
#include "leak_series.h"
#include "unwind/binary/image.h"
#include "unwind/error.h"

struct leak_heap;
struct targets;

struct error *leak_heap_create(struct leak_heap **ret);
void leak_heap_destroy(struct leak_heap *h); /* NULL is fine */
/* Whose books an allocator's file has; symbols_load() of it was called. */
enum leak_books leak_heap_books(struct image *img);
/* A target has such a heap. Glibc's is looked for in all. */
void leak_heap_want(struct leak_heap *h, enum leak_books books);
/* By the thread that samples, now and then: who is to be read. */
void leak_heap_look(struct leak_heap *h, const struct targets *t, u64 since_ns);
/* Reads once more, and ends. */
void leak_heap_end(struct leak_heap *h);
void leak_heap_points(struct leak_heap *h, struct leak_summary *s);
/* Bytes that a block of such a size takes there. */
u64 leak_heap_room(enum leak_books books, u64 size);

struct leak_heap_blocks { /* for which least to most bytes were asked, mean on average */
	enum leak_books books;
	u64 least, most;
	double mean;
};

/* As leak_series_growing(). */
u32 leak_heap_growing(struct leak_heap *h, double run_s, struct leak_class ret[LEAK_CLASSES]);

/*
 * Bytes that were asked for, not what the allocator gives (glibc's chunks take 32 bytes for 16: malloc/malloc.c,
 * request2size(); jemalloc's classes are four to a doubling: sc.h). False: it is not known.
 */
bool leak_heap_grew(struct leak_heap *h, double run_s, const struct leak_heap_blocks *of, struct leak_growing *ret);

#endif
