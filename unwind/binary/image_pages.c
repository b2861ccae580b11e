/* SPDX-License-Identifier: Apache-2.0 */
#include "image_pages.h"

#include <stdlib.h>

#define BLOCK        (16u << 10)
#define STRIDE       (BLOCK + IMAGE_PAGES_AHEAD)
#define BLOCKS       128u /* of a section */
#define BLOCKS_TABLE 512u /* of a table of strings: those of 200,000 symbols are all over 6 MB */

static struct error *open_pages(struct image_pages *p, struct image *img, const struct elf_place *place, u32 most)
{
	u64 all = place->size / BLOCK + 1;

	*p = (struct image_pages){.img = img, .place = *place, .nblocks = all < most ? (u32)all : most};
	p->bytes = malloc((size_t)p->nblocks * STRIDE);
	p->held = calloc(p->nblocks, sizeof(*p->held));
	if (p->bytes && p->held)
		return NULL;
	image_pages_free(p);
	return &error_no_memory;
}

struct error *image_pages_of_place(struct image_pages *p, struct image *img, const struct elf_place *place)
{
	return open_pages(p, img, place, BLOCKS_TABLE);
}

struct error *image_pages_create(struct image_pages *p, struct image *img, const char *section)
{
	struct elf_place place;

	*p = (struct image_pages){.img = img};
	return elf_place_find(img, section, &place) ? open_pages(p, img, &place, BLOCKS) : NULL;
}

void image_pages_free(struct image_pages *p)
{
	free(p->bytes);
	free(p->held);
	*p = (struct image_pages){0};
}

const u8 *image_pages_at(struct image_pages *p, u64 addr, size_t *room)
{
	u64 at = addr - p->place.addr, block = at / BLOCK, start = block * BLOCK, left, slot;
	u8 *bytes;
	size_t size;

	if (!p->bytes || at >= p->place.size)
		return NULL;
	slot = block % p->nblocks;
	bytes = p->bytes + slot * STRIDE;
	left = p->place.size - start;
	size = left < STRIDE ? left : STRIDE;
	if (p->held[slot] != block + 1) {
		p->held[slot] = 0;
		if (!elf_read(p->img, bytes, size, p->place.offset + start))
			return NULL;
		p->held[slot] = block + 1;
	}
	*room = size - (at - start) < IMAGE_PAGES_AHEAD ? size - (at - start) : IMAGE_PAGES_AHEAD;
	return bytes + (at - start);
}
