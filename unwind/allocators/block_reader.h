/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory of a process in order of address, in blocks of 1 MiB. Pages that are not in memory are not touched: they
 * read as zeros, as they would.
 */
#ifndef YRT_BLOCK_READER_H
#define YRT_BLOCK_READER_H

#include <types.h>

#include "space.h"

#define BLOCK_READER_SIZE (1u << 20)

enum block_state { BLOCK_READ, BLOCK_ABSENT, BLOCK_SWAPPED, BLOCK_UNREADABLE };

struct block_reader {
	struct space *space;
	u64 start, end; /* what block has */
	enum block_state state;
	u8 *block;
};

struct error *block_reader_open(struct space *s, struct block_reader *ret);
void block_reader_close(struct block_reader *r);
/* Reads from addr on up to limit, at most a block. False: not even a first word; r->state says why. */
bool block_reader_fill(struct block_reader *r, u64 addr, u64 limit);
/* What was read at addr; NULL: not all of it is in the block. */
static inline const u8 *block_reader_at(const struct block_reader *r, u64 addr, u64 size)
{
	return addr >= r->start && addr <= r->end && size <= r->end - addr ? r->block + (addr - r->start) : NULL;
}

/* Reads a few bytes that lie elsewhere. */
bool block_reader_read(struct block_reader *r, void *dst, u64 size, u64 addr);
/* Calls each() with the words of [start, end) that are not 0, until it returns false; it may read elsewhere. */
bool block_reader_words(
        struct block_reader *r, u64 start, u64 end, bool (*each)(void *arg, u64 at, u64 word), void *arg);

#endif
