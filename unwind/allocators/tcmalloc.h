/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gperftools' tcmalloc (2.5 to 2.16, pages of 8 KiB, addresses of 48 bits; not Google's newer one), shared or linked
 * statically, stripped or not. It keeps a radix tree of two levels over all pages that it has (pagemap.h): 2^17
 * pointers in its .bss, each to 2^18 words, one for a page, which lead to the span that the page belongs to (span.h):
 *
 *	first page, pages, two links, free objects, and packed: 16 bits objects that are out, 8 class of size,
 *	2 place (0 in use, 1 free, 2 free and given back to the system)
 *
 * A span is in the tree at least by its first page; what the pages in a free one lead to may be old. The sizes of the
 * classes are a table in the .bss, too (common.h: class_to_size_). An object that is out may be in a thread's cache.
 */
#ifndef YRT_TCMALLOC_H
#define YRT_TCMALLOC_H

#include "block_reader.h"
#include "space.h"
#include "usage.h"

#define TCMALLOC_PAGE    8192u
#define TCMALLOC_NODE    (1u << 18) /* words of a lower node */
#define TCMALLOC_ROOT    (1u << 17)
#define TCMALLOC_CLASSES 128

enum tcmalloc_place { TCMALLOC_USED, TCMALLOC_FREE, TCMALLOC_RETURNED, TCMALLOC_PLACES };

struct tcmalloc_span {
	u64 start, size; /* in the process; bytes */
	u32 class, nused;
	enum tcmalloc_place place;
};

/* Decodes a span of 6 words. False: it is none. */
bool tcmalloc_decode(const u64 words[6], struct tcmalloc_span *ret);
/* The sizes of classes, 0: no such class, from an array of n words. False: it is no such table. */
bool tcmalloc_sizes(const u32 *words, u32 n, u64 ret[TCMALLOC_CLASSES]);

#endif
