/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/grow.h"

#define AHEAD       16u                   /* pages read at once where addresses ascend */
#define CHUNKS_MOST (256u << 20) / Y_PAGE /* even if each holds one page */
#define UNREADABLE  1u

void y_pages_begin(struct y_pages *p, struct memory *memory)
{
	*p = (struct y_pages){.memory = memory};
}

void y_pages_end(struct y_pages *p)
{
	for (u32 i = 0; i < p->nchunks; i++)
		free(p->chunks[i]);
	free(p->chunks);
	p->chunks = NULL;
	p->nchunks = 0;
	table_free(&p->table);
	p->table = (struct table){0};
	p->last = 0;
	p->next = 0;
}

/* Keys of a table are hashes, and never 0. The multiplication can be undone. */
#define SPREAD   0x9e3779b97f4a7c15ull
#define UNSPREAD 0xf1de83e19937733dull

static u64 key_of(u64 number)
{
	return (number + 1) * SPREAD;
}

static u8 *new_chunk(struct y_pages *p, u32 pages)
{
	u8 *chunk;

	if (p->read && p->table.used >= CHUNKS_MOST)
		y_pages_end(p);
	chunk = malloc((size_t)pages * Y_PAGE);
	if (!chunk || grow(&p->chunks, p->nchunks, sizeof(*p->chunks))) {
		free(chunk);
		return NULL;
	}
	p->chunks[p->nchunks++] = chunk;
	return chunk;
}

static bool get(const struct y_pages *p, u8 *dst, u64 size, u64 addr)
{
	return p->memory && memory_read(p->memory, dst, size, addr);
}

/* Reads up to n pages; how many came. */
static u32 read_pages(struct y_pages *p, u64 number, u32 n)
{
	u8 *chunk = new_chunk(p, n);

	if (!chunk)
		return 0;
	while (n && !get(p, chunk, (size_t)n * Y_PAGE, number * Y_PAGE))
		n = n > 1 ? 1 : 0;
	for (u32 i = 0; i < n; i++)
		if (!table_get(&p->table, key_of(number + i)) &&
		        table_put(&p->table, key_of(number + i), (u64)(chunk + i * Y_PAGE)))
			return i;
	p->read += n;
	return n;
}

static const u8 *page(struct y_pages *p, u64 number)
{
	u64 *known = table_get(&p->table, key_of(number));

	if (!known) {
		u32 n = read_pages(p, number, number == p->next ? AHEAD : 1);

		if (!n && table_put(&p->table, key_of(number), UNREADABLE))
			return NULL;
		p->next = number + (n ? n : 1);
		known = table_get(&p->table, key_of(number));
	}
	if (!known || *known == UNREADABLE)
		return NULL;
	p->last = number + 1;
	p->bytes = (const u8 *)*known;
	return p->bytes;
}

/* Of a page that cannot be read whole. */
static bool read_part(struct y_pages *p, u8 *dst, u64 size, u64 addr, u64 *at)
{
	if (get(p, dst, size, addr))
		return true;
	for (*at = addr; size && get(p, dst, 1, *at); size--)
		++*at;
	return false;
}

bool y_pages_read(struct y_pages *p, void *dst, u64 size, u64 addr, u64 *at)
{
	u8 *to = dst;

	if (addr + size < addr || addr + size > 1ull << 63) {
		*at = addr;
		return false;
	}
	while (size) {
		u64 inside = addr % Y_PAGE, n = size < Y_PAGE - inside ? size : Y_PAGE - inside;
		const u8 *bytes = page(p, addr / Y_PAGE);

		if (bytes)
			memcpy(to, bytes + inside, n);
		else if (!read_part(p, to, n, addr, at))
			return false;
		to += n;
		addr += n;
		size -= n;
	}
	return true;
}

u64 y_pages_changed(struct y_pages *p)
{
	u64 changed = 0;
	u8 now[Y_PAGE];

	for (size_t i = 0; i < p->table.capacity; i++) {
		u64 number = p->table.entries[i].key * UNSPREAD - 1;

		if (!p->table.entries[i].key || p->table.entries[i].value == UNREADABLE)
			continue;
		changed += !memory_read(p->memory, now, Y_PAGE, number * Y_PAGE) ||
		           memcmp(now, (const u8 *)p->table.entries[i].value, Y_PAGE);
	}
	return changed;
}
