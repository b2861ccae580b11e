/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_blocks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <types.h>

#include "now.h"

#define BLOCK   4096u
#define BLOCKS  256
#define KEPT_NS (2 * 1000 * 1000)
#define IDLE_NS (1000 * 1000)

struct hotspot_blocks {
	struct memory memory; /* what this is to others */
	struct memory *under;
	u64 since;         /* in nanoseconds: when the oldest was read */
	u64 last;          /* when it was asked for last */
	u64 pages[BLOCKS]; /* number + 1; 0: none */
	u8 bytes[BLOCKS][BLOCK];
};

static u32 slot_of(u64 page)
{
	return page * 0x9e3779b97f4a7c15ull >> 56;
}

static const u8 *find(struct hotspot_blocks *b, u64 page)
{
	u32 slot = slot_of(page);

	if (b->pages[slot] == page + 1)
		return b->bytes[slot];
	b->pages[slot] = 0;
	if (!memory_read(b->under, b->bytes[slot], BLOCK, page * BLOCK))
		return NULL;
	b->pages[slot] = page + 1;
	return b->bytes[slot];
}

/* By the page, or as it is asked for where a page can not be read whole. */
static bool read_blocks(struct memory *m, void *dst, size_t size, uint64_t addr)
{
	struct hotspot_blocks *b = (struct hotspot_blocks *)m;
	size_t done = 0;

	if (size > BLOCK)
		return memory_read(b->under, dst, size, addr);
	while (done < size) {
		size_t at = (addr + done) % BLOCK, n = BLOCK - at < size - done ? BLOCK - at : size - done;
		const u8 *bytes = find(b, (addr + done) / BLOCK);

		if (!bytes)
			return memory_read(b->under, dst, size, addr);
		memcpy((u8 *)dst + done, bytes + at, n);
		done += n;
	}
	return true;
}

/* The last one that was destroyed: each look at a JVM needs one, and the kernel would make its pages anew. */
static _Atomic(struct hotspot_blocks *) spare;

struct hotspot_blocks *hotspot_blocks_create(void)
{
	struct hotspot_blocks *b = atomic_exchange(&spare, NULL);

	if (!b)
		b = malloc(sizeof(*b));
	if (!b)
		return NULL;
	b->memory = (struct memory){.read = read_blocks};
	b->under = NULL;
	b->since = b->last = 0;
	memset(b->pages, 0, sizeof(b->pages));
	return b;
}

void hotspot_blocks_destroy(struct hotspot_blocks *b)
{
	free(b ? atomic_exchange(&spare, b) : NULL);
}

__attribute__((destructor)) static void free_spare(void)
{
	free(atomic_exchange(&spare, NULL));
}

struct memory *hotspot_blocks_of(struct hotspot_blocks *b, struct memory *m)
{
	u64 now = now_ns();

	if (m != b->under || now - b->since > KEPT_NS || now - b->last > IDLE_NS) {
		memset(b->pages, 0, sizeof(b->pages));
		b->under = m;
		b->since = now;
	}
	b->last = now;
	return &b->memory;
}

struct memory *hotspot_blocks_renew(struct hotspot_blocks *b, struct memory *m)
{
	memset(b->pages, 0, sizeof(b->pages));
	b->under = m;
	return &b->memory;
}

struct memory *hotspot_blocks_kept(struct hotspot_blocks *b)
{
	return &b->memory;
}

void hotspot_blocks_prefetch(struct hotspot_blocks *b, const uint64_t *at, uint32_t n)
{
	u32 slots[HOTSPOT_PREFETCH_MAX], put = 0;
	struct memory_piece pieces[HOTSPOT_PREFETCH_MAX];
	bool claimed[BLOCKS] = {false};

	for (u32 i = 0; i < n; i++) {
		u64 page = at[i] / BLOCK;
		u32 slot = slot_of(page);

		if (!at[i] || claimed[slot] || b->pages[slot] == page + 1)
			continue;
		claimed[slot] = true;
		b->pages[slot] = 0;
		slots[put] = slot;
		pieces[put++] = (struct memory_piece){b->bytes[slot], page * BLOCK, BLOCK};
	}
	n = put ? memory_read_pieces(b->under, pieces, put) : 0;
	for (u32 i = 0; i < n; i++)
		b->pages[slots[i]] = pieces[i].addr / BLOCK + 1;
}

struct memory *hotspot_blocks_direct(const struct hotspot_blocks *b)
{
	return b->under;
}
