/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/grow.h"

#define AHEAD       16u /* pages read at once where addresses ascend */
#define PAGES_MOST  ((256u << 20) / Y_PAGE)
#define LARGE_FROM  1024u /* pages: beyond, they lie in large pages of yrt's own, which cost fewer misses of its TLB */
#define LARGE_CHUNK ((2u << 20) / Y_PAGE)
#define UNREADABLE  1u
#define AT_ONCE     32u /* pages, of those that are read again */

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
	p->left = 0;
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

static bool new_chunk(struct y_pages *p)
{
	bool large = p->table.used >= LARGE_FROM;
	size_t size = (large ? LARGE_CHUNK : AHEAD) * (size_t)Y_PAGE;
	u8 *chunk = aligned_alloc(large ? size : Y_PAGE, size);

	if (!chunk || grow(&p->chunks, p->nchunks, sizeof(*p->chunks))) {
		free(chunk);
		return false;
	}
	if (large)
		madvise(chunk, size, MADV_HUGEPAGE);
	p->chunks[p->nchunks++] = chunk;
	p->room = chunk;
	p->left = (u32)(size / Y_PAGE);
	return true;
}

/* Room for up to *pages. */
static u8 *room_for(struct y_pages *p, u32 *pages)
{
	if (p->read && p->table.used >= PAGES_MOST)
		y_pages_end(p);
	if (!p->left && !new_chunk(p))
		return NULL;
	*pages = *pages < p->left ? *pages : p->left;
	return p->room;
}

static bool get(const struct y_pages *p, u8 *dst, u64 size, u64 addr)
{
	return p->memory && memory_read(p->memory, dst, size, addr);
}

/* Reads up to n pages; how many came. */
static u32 read_pages(struct y_pages *p, u64 number, u32 n)
{
	u8 *chunk = room_for(p, &n);

	if (!chunk)
		return 0;
	while (n && !get(p, chunk, (size_t)n * Y_PAGE, number * Y_PAGE))
		n = n > 1 ? 1 : 0;
	p->room += (size_t)n * Y_PAGE;
	p->left -= n;
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

/* Of n pages, how many have other contents now. */
static u64 count_changed(struct y_pages *p, const struct memory_piece *pieces, const u8 *const *was, size_t n)
{
	size_t same = 0, came = 0;

	while (came < n) {
		size_t more = memory_read_pieces(p->memory, pieces + came, n - came);

		for (size_t i = came; i < came + more; i++)
			same += !memcmp(pieces[i].dst, was[i], Y_PAGE);
		came += more + 1; /* one that is gone */
	}
	return n - same;
}

u64 y_pages_changed(struct y_pages *p)
{
	struct memory_piece pieces[AT_ONCE];
	const u8 *was[AT_ONCE];
	u8 now[AT_ONCE][Y_PAGE];
	u64 changed = 0;
	size_t n = 0;

	for (size_t i = 0; i < p->table.capacity; i++) {
		const u8 *bytes = (const u8 *)p->table.entries[i].value;
		u64 number = p->table.entries[i].key * UNSPREAD - 1;

		if (!p->table.entries[i].key || p->table.entries[i].value == UNREADABLE)
			continue;
		pieces[n] = (struct memory_piece){now[n], number * Y_PAGE, Y_PAGE};
		was[n++] = bytes;
		if (n == AT_ONCE) {
			changed += count_changed(p, pieces, was, n);
			n = 0;
		}
	}
	return changed + count_changed(p, pieces, was, n);
}
