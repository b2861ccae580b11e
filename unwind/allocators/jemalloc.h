/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc 5.0 to 5.3, on machines with pages of 4 KiB and addresses of 48 bits, shared, linked statically, stripped or
 * renamed. It keeps a radix tree of two levels over all pages that it has (rtree.h): 2^18 pointers in its .bss, each to
 * 2^18 words, one for a page. A word leads to the extent that the page belongs to (extent_structs.h, from 5.3 on
 * edata.h): packed bits, the address, and the size. So the tree is found by its structure, and whatever is read is
 * checked against it.
 *
 *	bits of an extent		5.0	5.1, 5.2	5.3
 *	arena, slab, committed		0, 12, 13
 *	state				15	16		17 (3 bits)
 *	size class			17	18		20
 *	free regions of a slab		25	26		28
 *
 * A size class is a number: with a quantum of 16 bytes they are 8, 16, 32, 48 …; with one of 8, as in Redis's own,
 * 8, 16, 24, 32 ….
 */
#ifndef YRT_JEMALLOC_H
#define YRT_JEMALLOC_H

#include "block_reader.h"
#include "space.h"
#include "usage.h"

#define JEMALLOC_CLASSES 236 /* at most; with a quantum of 16 bytes 232 */
#define JEMALLOC_ARENAS  4096
#define JEMALLOC_WORDS   1024
#define JEMALLOC_NODE    (1u << 18) /* words of a node of the tree */

enum jemalloc_state {
	JEMALLOC_ACTIVE,
	JEMALLOC_DIRTY,    /* free pages, as they were left */
	JEMALLOC_MUZZY,    /* free pages that the kernel may take */
	JEMALLOC_RETAINED, /* addresses without memory */
	JEMALLOC_STATES,   /* from here on: being changed */
};

struct jemalloc_layout {
	const char *versions;
	u8 state_at, state_bits, class_at, free_at;
};

struct jemalloc_extent {
	u64 start, size;
	u32 arena, class, nfree; /* nfree: of a slab */
	enum jemalloc_state state;
	bool slab;
};

struct jemalloc {
	struct space *space;
	struct usage *usage;
	struct block_reader reader;
	const struct jemalloc_layout *layout;
	u32 lg_quantum;
	u64 *leaves; /* addresses of the tree's lower nodes */
	u32 nleaves;
	u64 words[JEMALLOC_WORDS]; /* of leaves, the first that lead to other extents than the ones before */
	u32 nwords;
	u64 *extents; /* addresses of their structures, ascending */
	u32 nextents;
	struct jemalloc_extent *all; /* what they say, by address; only those that are whole */
	u32 nall, torn;
};

/* The tree's root in [start, end) of a file's data; 0: none. */
u64 jemalloc_find_root(struct jemalloc *j, u64 start, u64 end);
/* Decodes an extent's first three words. False: it is none, or is being changed. */
bool jemalloc_decode(const struct jemalloc_layout *layout, const u64 words[3], struct jemalloc_extent *ret);
/* Bytes of a block of a class; 0: there is no such class. */
u64 jemalloc_class_size(u32 class, u32 lg_quantum);
/* Bytes of a slab of blocks of a size: the least number of whole pages that they fill (sc.c: slab_size()). */
u64 jemalloc_slab_size(u64 size);

#endif
