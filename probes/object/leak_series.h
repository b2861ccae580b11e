/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What allocators' books said over a run. If the books of one allocator could not be read at a point, though they could
 * before, that point is not used for that allocator: its memory would seem freed there, and grown at the next point.
 */
#ifndef YRT_LEAK_SERIES_H
#define YRT_LEAK_SERIES_H

#include "leak.h"
#include "unwind/allocators/size_class.h"
#include "unwind/error.h"

struct leak_books_point { /* of an allocator, in all processes */
	u64 in_use, free; /* bytes; free: for threads, too */
	u64 in_use_of[SIZE_CLASSES];
	u32 failed; /* processes where it could not be read */
	bool whole; /* set by leak_series_add() */
};

struct leak_series_point {
	u64 ns; /* since the begin */
	u32 processes;
	struct leak_books_point of[LEAK_BOOKS];
};

struct leak_series {
	struct leak_series_point *points; /* LEAK_HEAP_POINTS */
	u32 n;
};

struct leak_growing {       /* blocks of some sizes */
	double early, late; /* bytes by which they became more in each half of the run */
	double in_use;      /* at the end */
	double a_minute;    /* bytes, */
	double low, high;   /* and their interval; not of a leak_class */
};

/* A class of sizes (size_class.h), by bytes that blocks take there. */
struct leak_class {
	enum leak_books books;
	u32 number;
	struct leak_growing growth;
};
#define LEAK_CLASSES (LEAK_BOOKS * SIZE_CLASSES)

struct error *leak_series_create(struct leak_series *s);
void leak_series_free(struct leak_series *s);
/* A copy of it, if the books of any allocator are whole. True: each second point went, to make room. */
bool leak_series_add(struct leak_series *s, const struct leak_series_point *p);
/* The last point. NULL: there is none, or books that could be read before could not be read there. */
const struct leak_series_point *leak_series_last(const struct leak_series *s);
/* Points at which all allocators are whole that ever are. Sets heap, nheap. */
void leak_series_curve(const struct leak_series *s, struct leak_summary *ret);
struct leak_series_of {
	enum leak_books books;
	u32 from, to;  /* classes */
	double part;   /* of their bytes */
	double unsure; /* bytes of these that are at times counted, and at times not: in caches of threads */
};

/*
 * a_minute is the rate over the longest period, up to the end, in which growth was even: before that, a cache may have
 * filled up. If no such period exists, the interval covers the rates of both halves. False: not known.
 */
bool leak_series_grew(
        const struct leak_series *s, double run_s, const struct leak_series_of *of, struct leak_growing *ret);
/* Those that became so much more in both halves of the run that it matters, the largest growth first. */
u32 leak_series_growing(const struct leak_series *s, double run_s, struct leak_class ret[LEAK_CLASSES]);

#endif
