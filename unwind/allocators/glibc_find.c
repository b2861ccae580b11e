/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds main_arena without symbols. An empty bin's two links point to the bin itself, 16 bytes before its links; one
 * that is not empty is pointed to by its first and last chunk. 127 such bins in a row are nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "binary/memory.h"
#include "cleanup.h"
#include "glibc.h"

#define DATA_MAX  (64u << 20)
#define UNPROVED  4 /* bins whose chunks were just moved */
#define EMPTY_MIN 8 /* of 127, to look closer */
#define USER_END  (1ull << 47)
/* Bytes of struct malloc_state before its bins; 24 to 112 are known. */
#define OFFSET_MIN 16
#define OFFSET_MAX 512

static bool is_empty(const u64 *pair, u64 at)
{
	return pair[0] == at - 16 && pair[1] == at - 16;
}

static bool may_be_chunk(u64 value)
{
	return value >= 4096 && value < USER_END && !(value & 15);
}

/* Do the first and the last chunk of a bin point back to it? */
static bool is_linked(struct space *s, const u64 *pair, u64 at)
{
	u64 back, next;

	return memory_read(s->memory, &back, 8, pair[0] + 24) && memory_read(s->memory, &next, 8, pair[1] + 16) &&
	       back == at - 16 && next == at - 16;
}

static bool are_bins(struct space *s, const u64 *words, u64 at)
{
	u32 unproved = 0, proved = 0;

	for (u32 i = 0; i < GLIBC_BINS; i++) {
		const u64 *pair = words + 2ul * i;

		if (is_empty(pair, at + 16ull * i)) {
			proved++;
			continue;
		}
		if (!may_be_chunk(pair[0]) || !may_be_chunk(pair[1]))
			return false;
	}
	for (u32 i = 0; proved >= EMPTY_MIN && i < GLIBC_BINS && unproved <= UNPROVED; i++)
		if (!is_empty(words + 2ul * i, at + 16ull * i) && !is_linked(s, words + 2ul * i, at + 16ull * i))
			unproved++;
	return proved >= EMPTY_MIN && unproved <= UNPROVED;
}

/* Does a ring of arenas whose bins lie so far from their start lead back to this one? */
static bool closes(struct space *s, u64 start, u64 offset)
{
	u64 at = start, seen = 0;

	for (u32 i = 0; i < GLIBC_ARENAS_MAX; i++) {
		if (!memory_read(s->memory, &at, 8, at + offset + GLIBC_NEXT) || !at || at & 7 || at == seen)
			return false;
		if (at == start)
			return true;
		seen = at;
	}
	return false;
}

bool glibc_is_ring(struct space *s, u64 bins, u64 *offset)
{
	for (u64 at = OFFSET_MIN; at <= OFFSET_MAX; at += 8)
		if (closes(s, bins - at, at)) {
			*offset = at;
			return true;
		}
	return false;
}

/* Rough: is there any empty bin at the start of a list? Most words are none, and fail here. */
static u32 count_empty(const u64 *words, u64 at)
{
	u32 n = 0;

	for (u32 i = 0; i < GLIBC_BINS; i++)
		n += is_empty(words + 2ul * i, at + 16ull * i);
	return n;
}

static bool may_begin(const u64 *words, u64 at)
{
	return is_empty(words, at) || (may_be_chunk(words[0]) && may_be_chunk(words[1]));
}

static void read_what_is_there(struct space *s, u8 *to, u64 start, u64 size)
{
	for (u64 at = 0; at < size; at += PAGES_SIZE) {
		u64 n = size - at < PAGES_SIZE ? size - at : PAGES_SIZE;

		if (pages_at(s->pages, start + at) == PAGE_ABSENT || !memory_read(s->memory, to + at, n, start + at))
			memset(to + at, 0, n);
	}
}

bool glibc_find_arena(struct space *s, u64 start, u64 end, u64 *bins)
{
	u64 size = end - start < DATA_MAX ? end - start : DATA_MAX;
	cleanup(free) u64 *words = malloc(size);
	u64 offset;

	if (!words)
		return false;
	read_what_is_there(s, (u8 *)words, start, size);
	for (u64 i = 2; i + 2 * GLIBC_BINS + 2 < size / 8; i++) {
		u64 at = start + 8 * i;

		if (may_begin(words + i, at) && count_empty(words + i, at) >= EMPTY_MIN && are_bins(s, words + i, at) &&
		        glibc_is_ring(s, at, &offset)) {
			*bins = at;
			return true;
		}
	}
	return false;
}
