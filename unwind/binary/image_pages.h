/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scattered reads from a section: it is read by the block, and 2 MiB of blocks are kept, because a section of read-only
 * data can have hundreds of MiB; of a table of strings 8 MiB.
 */
#ifndef YRT_IMAGE_PAGES_H
#define YRT_IMAGE_PAGES_H

#include <types.h>

#include "elf_table.h"
#include "error.h"
#include "image.h"

#define IMAGE_PAGES_AHEAD 1025u /* bytes that can be had from each address, up to the end of the section */

struct image_pages {
	struct image *img;
	struct elf_place place;
	u32 nblocks;
	u8 *bytes; /* NULL: there is no such section */
	u64 *held; /* of each place in bytes: number of the block + 1; 0: none */
};

/* Only fails for memory. Without such a section, or with a compressed one, there is nothing at any address. */
struct error *image_pages_create(struct image_pages *p, struct image *img, const char *section);
/* Of a table that has no address: it begins at 0. */
struct error *image_pages_of_place(struct image_pages *p, struct image *img, const struct elf_place *place);
void image_pages_free(struct image_pages *p);
/*
 * The bytes at an address of the file, valid until the next call; *room: how many there are, IMAGE_PAGES_AHEAD or up to
 * the end of the section. NULL: none, or they can not be read.
 */
const u8 *image_pages_at(struct image_pages *p, u64 addr, size_t *room);

#endif
