/* SPDX-License-Identifier: Apache-2.0 */
#include "image_scan.h"

#include <stdlib.h>
#include <string.h>

#include "elf_table.h"

#define PIECE    (64u << 10) /* below what malloc() gets from the kernel each time */
#define COPY_MAX (256u << 20)

bool image_scan_start(struct image_scan *s, struct image *img, const char *section, size_t overlap)
{
	struct elf_place place;

	*s = (struct image_scan){.img = img, .overlap = overlap};
	if (!elf_place_find(img, section, &place) || !(s->buf = malloc(PIECE + overlap)))
		return false;
	s->addr = place.addr;
	s->offset = place.offset;
	s->left = place.size;
	return true;
}

bool image_scan_next(struct image_scan *s)
{
	s->addr += s->own;
	s->offset += s->own;
	s->left -= s->own;
	s->own = s->left < PIECE ? s->left : PIECE;
	s->size = s->left - s->own < s->overlap ? s->left : s->own + s->overlap;
	s->bytes = s->buf;
	if (s->size && elf_read(s->img, s->buf, s->size, s->offset))
		return true;
	s->failed = s->size > 0;
	s->left = s->own = s->size = 0;
	return false;
}

void image_scan_end(struct image_scan *s)
{
	free(s->buf);
	*s = (struct image_scan){0};
}

u64 image_scan_find(struct image *img, const char *section, const void *bytes, size_t size)
{
	struct image_scan s;
	const u8 *at = NULL;
	u64 addr;

	if (!image_scan_start(&s, img, section, size - 1))
		return 0;
	while (!at && image_scan_next(&s))
		at = memmem(s.bytes, s.size, bytes, size);
	addr = at ? s.addr + (u64)(at - s.bytes) : 0;
	image_scan_end(&s);
	return addr;
}

struct error *image_copy_section(struct image *img, const char *section, u8 **ret, size_t *ret_size, u64 *ret_addr)
{
	struct elf_place place;

	*ret = NULL;
	if (!elf_place_find(img, section, &place) || !place.size || place.size > COPY_MAX)
		return NULL;
	*ret = malloc(place.size + sizeof(u64));
	if (!*ret)
		return &error_no_memory;
	if (elf_read(img, *ret, place.size, place.offset)) {
		*ret_size = place.size;
		*ret_addr = place.addr;
		return NULL;
	}
	free(*ret);
	*ret = NULL;
	return NULL;
}
