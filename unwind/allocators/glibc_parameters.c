/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct malloc_par (mp_): found by sbrk_base, the start of what brk() gave, with the counts of mapped memory before it
 * and the numbers of thread caches behind it. It follows no order of versions but for what lies before.
 */
#include <stdlib.h>

#include "binary/memory.h"
#include "cleanup.h"
#include "glibc.h"

#define CACHE_BINS_MAX  64
#define CACHE_COUNT_MAX 65535

/*
 * w[0] is sbrk_base. Before it: mapped_mem, max_mapped_mem; before these n_mmaps, n_mmaps_max, max_n_mmaps,
 * no_dyn_threshold as ints, which end there until 2.34, and 4 bytes earlier from 2.35 on.
 */
static bool is_parameters(const u64 *w)
{
	return w[-2] <= w[-1] && !(w[-2] & (PAGES_SIZE - 1)) && !(w[-1] & (PAGES_SIZE - 1)) && w[1] &&
	       w[1] <= CACHE_BINS_MAX && w[3] <= CACHE_COUNT_MAX && w[2] >= 24;
}

static u32 mapped_blocks(const u64 *w)
{
	const u32 *ints = (const u32 *)(w - 2);
	const u32 *last = ints[-1] <= 1 && ints[-2] <= 1 && ints[-3] >= ints[-5] ? ints - 1 : ints;

	return last[-4];
}

void glibc_read_parameters(struct glibc *g, u64 start, u64 end)
{
	u64 size = g->data_size & ~7ull;
	cleanup(free) u64 *words = calloc(1, size + 64);

	if (!words)
		return;
	for (u64 at = 0; at < size; at += PAGES_SIZE) {
		u64 n = size - at < PAGES_SIZE ? size - at : PAGES_SIZE;

		if (pages_at(g->space->pages, g->data + at) != PAGE_ABSENT)
			memory_read(g->space->memory, (u8 *)words + at, n, g->data + at);
	}
	for (u64 i = 6; i + 4 < size / 8; i++)
		if (words[i] >= start && words[i] <= end && is_parameters(words + i)) {
			g->parameters = (struct glibc_parameters){.at = g->data + 8 * i,
			        .sbrk_base = words[i],
			        .mapped_bytes = words[i - 2],
			        .cache_count = words[i + 3],
			        .mapped_blocks = mapped_blocks(words + i)};
			return;
		}
}
