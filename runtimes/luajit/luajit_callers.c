/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_callers.h"

#include <string.h>

#include "binary/image_scan.h"
#include "cfi/cfi.h"
#include "cfi/cfi_search_cache.h"
#include "code/disassembler.h"

#define CALL_OR_JUMP 0xe8 /* e8, e9: a displacement of 32 bits follows */
#define CALL_BYTES   5
#define BLOCK        1024 /* bytes that are looked at together */

#define SEARCH "luajit callers 2"

struct search {
	struct image *img;
	u64 start, end;
	struct search_result found; /* each once */
	bool full;
};

static bool reach(void *ctx, const cs_insn *in)
{
	u64 *at = ctx;

	if (in->address == *at)
		*at = 0;
	return *at && in->address < *at;
}

/* Does an instruction begin there, and not lie around it? Where no FDE says how to know, one does. */
static bool is_instruction(struct image *img, u64 at)
{
	const struct cfi_fde *fde = cfi_fde_at(img->cfi, at);

	return !fde || !code_each(img, fde->start, fde->end, reach, &at) || !at;
}

static void found(struct search *search, u64 at, u64 target)
{
	struct search_result *m = &search->found;
	u32 i = 0;

	while (i < m->n && m->values[i] != target)
		i++;
	search->full |= i == SEARCH_RESULT_MAX;
	if (i == m->n && !search->full && is_instruction(search->img, at))
		m->values[m->n++] = target;
}

/*
 * Does any of the BLOCK displacements that begin at these bytes, one at each, lead to less than size behind what is
 * `from` before the first? Few do, so opcodes are looked at only then; compilers turn this into vector instructions.
 */
static bool may_lead(const u8 *bytes, u32 from, u32 size)
{
	u32 hits = 0;

	for (u32 phase = 0; phase < sizeof(u32); phase++)
		for (u32 k = 0; k < BLOCK / sizeof(u32); k++) {
			u32 at = phase + k * (u32)sizeof(u32), displacement;

			memcpy(&displacement, bytes + at, sizeof(displacement));
			hits += displacement + at + from < size;
		}
	return hits;
}

static void search_block(struct search *search, const struct image_scan *s, size_t i, size_t end)
{
	for (; i < end && i + CALL_BYTES <= s->size; i++) {
		u64 at = s->addr + i, target;
		s32 displacement;

		if ((s->bytes[i] & ~1u) != CALL_OR_JUMP)
			continue;
		memcpy(&displacement, s->bytes + i + 1, sizeof(displacement));
		target = at + CALL_BYTES + (s64)displacement;
		if (target >= search->start && target < search->end && (at < search->start || at >= search->end))
			found(search, at, target);
	}
}

static void search_piece(struct search *search, const struct image_scan *s)
{
	u32 size = (u32)(search->end - search->start);

	for (size_t i = 0; i < s->own; i += BLOCK) {
		u32 from = (u32)(s->addr + i + CALL_BYTES - search->start);

		if (i + BLOCK + CALL_BYTES > s->size || may_lead(s->bytes + i + 1, from, size))
			search_block(search, s, i, i + BLOCK < s->own ? i + BLOCK : s->own);
	}
}

static bool is_inside(const struct search_result *m, u64 start, u64 end)
{
	for (u32 i = 0; i < m->n; i++)
		if (m->values[i] < start || m->values[i] >= end)
			return false;
	return true;
}

void luajit_callers(struct image *img, u64 start, u64 end, void (*each)(void *ctx, u64 target), void *ctx)
{
	struct search search = {.img = img, .start = start, .end = end};
	struct image_scan s;
	bool failed;

	if (!search_cache_load(img, SEARCH, &search.found) || !is_inside(&search.found, start, end)) {
		search.found.n = 0;
		if (!image_scan_start(&s, img, ".text", CALL_BYTES - 1))
			return;
		while (image_scan_next(&s))
			search_piece(&search, &s);
		failed = s.failed;
		image_scan_end(&s);
		if (!search.full && !failed)
			search_cache_store(img, SEARCH, &search.found);
	}
	for (u32 i = 0; i < search.found.n; i++)
		each(ctx, search.found.values[i]);
}
