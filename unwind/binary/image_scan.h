/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of large files, read without keeping them. With image_section(), libelf would keep the data until the image
 * is closed.
 */
#ifndef YRT_IMAGE_SCAN_H
#define YRT_IMAGE_SCAN_H

#include <types.h>

#include "error.h"
#include "image.h"

/* A way through a section, a piece at a time. */
struct image_scan {
	const u8 *bytes; /* this piece, and up to `overlap` bytes of the next */
	size_t size;     /* of both */
	size_t own;      /* of the piece alone */
	u64 addr;        /* of bytes[0] */
	struct image *img;
	u8 *buf;
	size_t overlap;
	u64 offset, left; /* in the file: what is to come */
	bool failed;      /* the file can not be read on */
};

/* False: no such section, or it is compressed, or there is no memory. Else image_scan_end() is due. */
bool image_scan_start(struct image_scan *s, struct image *img, const char *section, size_t overlap);
/* False: the end, or failed. */
bool image_scan_next(struct image_scan *s);
void image_scan_end(struct image_scan *s);
/* The address of the first place in a section where these bytes are. 0: none. */
u64 image_scan_find(struct image *img, const char *section, const void *bytes, size_t size);

/*
 * A copy of a section's bytes, for free(); with room for a word behind them. *ret is NULL if there is none, it is
 * compressed, larger than 256 MiB or can not be read. Only fails for memory.
 */
struct error *image_copy_section(struct image *img, const char *section, u8 **ret, size_t *ret_size, u64 *ret_addr);

#endif
