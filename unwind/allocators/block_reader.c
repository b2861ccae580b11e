/* SPDX-License-Identifier: Apache-2.0 */
#include "block_reader.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define PIECES (BLOCK_READER_SIZE / PAGES_SIZE + 1)

struct error *block_reader_open(struct space *s, struct block_reader *ret)
{
	*ret = (struct block_reader){.space = s, .block = malloc(BLOCK_READER_SIZE)};
	return ret->block ? NULL : &error_no_memory;
}

void block_reader_close(struct block_reader *r)
{
	free(r->block);
}

static enum block_state page_state(struct block_reader *r, u64 addr)
{
	enum page_state state = pages_at(r->space->pages, addr);

	return state == PAGE_PRESENT || (state == PAGE_SWAPPED && r->space->swapped_too) ? BLOCK_READ
	       : state == PAGE_SWAPPED                                                   ? BLOCK_SWAPPED
	                                                                                 : BLOCK_ABSENT;
}

bool block_reader_fill(struct block_reader *r, u64 addr, u64 limit)
{
	struct memory_piece pieces[PIECES];
	u64 end = limit - addr < BLOCK_READER_SIZE ? limit : addr + BLOCK_READER_SIZE;
	u32 n = 0, done;

	r->start = r->end = addr;
	r->state = page_state(r, addr);
	if (r->state != BLOCK_READ)
		return false;
	for (u64 at = addr; at < end;) {
		u64 next = (at / PAGES_SIZE + 1) * PAGES_SIZE, stop = next < end ? next : end;
		struct memory_piece *last = n ? &pieces[n - 1] : NULL;

		if (page_state(r, at) != BLOCK_READ)
			memset(r->block + (at - addr), 0, stop - at);
		else if (last && last->addr + last->size == at)
			last->size += stop - at;
		else
			pieces[n++] = (struct memory_piece){r->block + (at - addr), at, stop - at};
		at = stop;
	}
	done = (u32)memory_read_pieces(r->space->memory, pieces, n);
	r->end = done < n ? pieces[done].addr : end;
	r->state = r->end == addr ? BLOCK_UNREADABLE : BLOCK_READ;
	return r->state == BLOCK_READ;
}

bool block_reader_read(struct block_reader *r, void *dst, u64 size, u64 addr)
{
	const u8 *here = block_reader_at(r, addr, size);

	if (here) {
		memcpy(dst, here, size);
		return true;
	}
	if (addr + size < addr || page_state(r, addr) != BLOCK_READ || page_state(r, addr + size - 1) != BLOCK_READ)
		return false;
	return memory_read(r->space->memory, dst, size, addr);
}

bool block_reader_words(
        struct block_reader *r, u64 start, u64 end, bool (*each)(void *arg, u64 at, u64 word), void *arg)
{
	cleanup(free) u64 *words = malloc(BLOCK_READER_SIZE);

	for (u64 at = start; words && at < end && end - at >= 8;) {
		u64 from = at, n;

		if (!block_reader_fill(r, at, end)) {
			at = (at / PAGES_SIZE + 1) * PAGES_SIZE;
			continue;
		}
		at = r->end;
		n = (at - from) / 8;
		memcpy(words, r->block, n * 8);
		for (u64 i = 0; i < n; i++)
			if (words[i] && !each(arg, from + 8 * i, words[i]))
				return false;
	}
	return true;
}
