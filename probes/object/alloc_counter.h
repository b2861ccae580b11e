/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc's own counter of bytes, from 5.3 on (include/jemalloc/internal/thread_event.h, src/thread_event.c of 5.3.0):
 * each thread counts the bytes of the blocks that it was given, rounded up to their size classes, and calls
 * te_event_trigger(tsd, ctx) whenever 64 KiB more have come together (less while jemalloc's profile is on), whichever
 * function allocates. ctx has pointers into the thread's tsd: to the count, what it was at the last event, and where
 * the next one is due. So a uprobe there knows all bytes that a program allocates, at a hit per 64 KiB.
 *
 * It does not say whose they are: a program that does the same again and again passes a multiple of 64 KiB at the same
 * place again and again (a cycle of three calls: a share 30 points off). But bytes between two windows say what these
 * stand for, at any density of calls (alloc_weigh.h).
 *
 * The function has no name in most builds. It is known by how it is called, by what it reads, and, at each hit, by what
 * it is given: alloc.bpf.h.
 */
#ifndef YRT_ALLOC_COUNTER_H
#define YRT_ALLOC_COUNTER_H

#include "alloc_functions.h"

struct alloc_counter {
	const char *prefix; /* of the names of its functions, as --with-jemalloc-prefix gave them */
	u64 offset;         /* of the place for a uprobe, in the file's bytes */
	bool stepped;       /* the kernel does not emulate the instruction there */
	u64 classes;        /* address in the file of sz_size2index_tab, a byte for each 8 of a size; 0: not known */
};

/* False: the file has none, or it is in doubt. */
bool alloc_counter_find(struct image *img, const struct alloc_functions *f, struct alloc_counter *ret);
/* Does it count blocks of this function? */
bool alloc_counter_counts(const struct alloc_counter *c, const struct alloc_function *f);
/* The smallest distance of two size classes, 8 or 16 bytes; bias: of the file's addresses in the process. */
u32 alloc_counter_quantum(const struct alloc_counter *c, const struct process *p, u64 bias);

#endif
