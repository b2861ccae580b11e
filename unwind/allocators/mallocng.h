/* SPDX-License-Identifier: Apache-2.0 */
/*
 * musl's mallocng (1.2.1 and later; before, and in programs built with "oldmalloc", musl has another one), shared or
 * linked statically, stripped or not. Its variables (glue.h: __malloc_context, in the data of libc or of the program)
 * hold a random word and the list of all areas of its structures; each area, a page (meta.h: meta_area), begins with
 * the same random word. So it is found by its structure.
 *
 *	variables:	random word, …, at 56 (64 where the size of pages is not fixed) the first area
 *	area:		random word, next area, number of structures, structures
 *	structure:	previous, next, group, masks of slots that are free, and packed: 5 bits last slot,
 *			1 may be freed, 6 class of size, 52 pages of a mapping of its own
 *	group:		its structure, 8 bytes, slots of one size
 *
 * A group without a mapping of its own lies in a slot of a group of larger ones.
 */
#ifndef YRT_MALLOCNG_H
#define YRT_MALLOCNG_H

#include "block_reader.h"
#include "space.h"
#include "usage.h"

#define MALLOCNG_CLASSES 48
#define MALLOCNG_ONE     63  /* class of a block with a mapping of its own */
#define MALLOCNG_SLOTS   101 /* structures of an area, at most */

struct mallocng_group {
	u64 start, end; /* it has the addresses up to end */
	u64 meta;       /* address of its structure */
	u64 slot;       /* size of one */
	u32 nslots, nused, class;
	bool mapped;
};

/* Of a structure of 5 words. False: it is not in use, or being changed. end is 0 if it is in a slot of another. */
bool mallocng_decode(u64 meta, const u64 words[5], struct mallocng_group *ret);

#endif
