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
#include "unwind/allocators/size_class.h"
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
struct leak_heap_growth {     /* of blocks of some sizes */
	double early, late;   /* bytes by which they became more in each half of the run */
	double in_use;        /* at the end */
	double a_minute;      /* bytes, over all of the run, */
	double late_a_minute; /* and over its second half */
};

/* Bytes that a block of such a size takes there. */
u64 leak_heap_room(enum leak_books books, u64 size);

struct leak_heap_blocks { /* for which least to most bytes were asked, mean on average */
	enum leak_books books;
	u64 least, most;
	double mean;
};

/* A class of sizes (size_class.h), by bytes that blocks take there. */
struct leak_heap_class {
	enum leak_books books;
	u32 number;
	struct leak_heap_growth growth;
};
#define LEAK_HEAP_CLASSES (LEAK_BOOKS * SIZE_CLASSES)

/* Those that became so much more in both halves of the run that it matters, the largest growth first. */
u32 leak_heap_growing(struct leak_heap *h, double run_s, struct leak_heap_class ret[LEAK_HEAP_CLASSES]);

/*
 * Bytes that were asked for, not what the allocator gives (glibc's chunks take 32 bytes for 16: malloc/malloc.c,
 * request2size(); jemalloc's classes are four to a doubling: sc.h). False: it is not known.
 */
bool leak_heap_grew(struct leak_heap *h, double run_s, const struct leak_heap_blocks *of, struct leak_heap_growth *ret);

#endif
