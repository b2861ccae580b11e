/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gperftools' tcmalloc (2.5 to 2.16) and Google's (2022 to July 2026), with pages of 8 KiB and addresses of 48 bits,
 * shared or linked statically, stripped or not. Both keep a radix tree of two levels over all pages (pagemap.h):
 * pointers in the .bss to nodes with a word for each page, which leads to the span that the page belongs to (span.h).
 *
 *			gperftools	Google's
 *	words of root	2^17		2^20
 *	words of node	2^18		2^15, behind the classes of size of its pages, one byte or two each
 *	a word's upper 16 bits -	the class again (since February 2025)
 *
 * Span of gperftools: first page, pages, two links, free objects, and packed: 16 bits objects that are out, 8 class of
 * size, 2 place (0 in use, 1 free, 2 free and given back to the system). Google's: two links, counts (of 16 bits, one
 * of which is of objects that are out), first page, pages; since September 2024 packed: 35 bits first page, 2 (from
 * bit 60 on) large or sampled, else only 6 of pages are valid.
 *
 * A span is in the tree at least by its first page. Of gperftools what the pages in a free one lead to may be old;
 * Google's has no free spans, and leaves ones that it gave up in the tree: their first word is a link then. The sizes
 * of the classes are a table in the .bss, too (class_to_size_). An object that is out may be in a cache of a thread or
 * CPU.
 */
#ifndef YRT_TCMALLOC_H
#define YRT_TCMALLOC_H

#include "block_reader.h"
#include "space.h"
#include "usage.h"

#define TCMALLOC_PAGE    8192u
#define TCMALLOC_CLASSES 256

enum tcmalloc_place { TCMALLOC_USED, TCMALLOC_FREE, TCMALLOC_RETURNED, TCMALLOC_PLACES };

struct tcmalloc_span {
	u64 start, size; /* in the process; bytes */
	u32 class, nused;
	enum tcmalloc_place place;
};

enum tcmalloc_spans { TCMALLOC_GPERFTOOLS, TCMALLOC_2022, TCMALLOC_2024, TCMALLOC_PACKED };

struct tcmalloc_layout {
	const char *name;
	enum tcmalloc_spans spans;
	u32 root_bits, node_bits;
	u32 before; /* bytes of a node before its words: a class for each */
};

extern const struct tcmalloc_layout tcmalloc_layouts[];
#define TCMALLOC_LAYOUTS 7

/* Decodes a span of 6 words; Google's says its class elsewhere. False: it is none. */
bool tcmalloc_decode(enum tcmalloc_spans spans, const u64 words[6], struct tcmalloc_span *ret);
/* The sizes of classes, 0: no such class, from an array of n words. False: it is no such table. */
bool tcmalloc_sizes(const u32 *words, u32 n, u64 ret[TCMALLOC_CLASSES]);

#endif
