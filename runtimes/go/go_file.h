/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a Go program's file after relocation, without the load bias: pointers are addresses of the file. They are
 * read in blocks, some of which are kept, so a table of 40 MB is never in memory as a whole.
 */
#ifndef YRT_GO_FILE_H
#define YRT_GO_FILE_H

#include <types.h>

#include "error.h"
#include "binary/image.h"

#define GO_BLOCK_BITS 15
#define GO_BLOCK_SIZE (1u << GO_BLOCK_BITS)
#define GO_BLOCKS     256 /* power of two */

struct go_block {
	u64 addr;      /* multiple of GO_BLOCK_SIZE */
	u32 from, end; /* which of the bytes the file has */
	u8 *bytes;     /* NULL: nothing was read yet */
};

/* A word that the dynamic linker fills in. */
struct go_reloc {
	u64 at, value;
};

struct go_file {
	struct image *img; /* the owner keeps it alive */
	struct go_block block[GO_BLOCKS];
	struct go_reloc *relocs; /* sorted, of what was asked for */
	u32 nrelocs;
	bool no_memory;
};

void go_file_init(struct go_file *f, struct image *img);
void go_file_free(struct go_file *f);

/* False: not within a segment's part of the file, or no memory. */
bool go_read(struct go_file *f, void *dst, u32 size, u64 addr);
bool go_u8(struct go_file *f, u64 addr, u8 *ret);
bool go_u32(struct go_file *f, u64 addr, u32 *ret);
bool go_u64(struct go_file *f, u64 addr, u64 *ret);
/* A string, cut at max - 1 bytes; "" if it can not be read. Its length. */
u32 go_string(struct go_file *f, char *dst, u32 max, u64 addr);

/* Keeps the relocations of [start, end) as well; what was read before is forgotten. */
struct error *go_file_relocate(struct go_file *f, u64 start, u64 end);
/* The first aligned word from `after` on, in this segment's part of the file, with these bits of mask. False: none. */
bool go_file_find(struct go_file *f, const struct image_segment *seg, u64 bits, u64 mask, u64 after, u64 *ret);
/* The first place from `after` on whose word the dynamic linker makes this value. False: none. */
bool go_file_points_to(struct go_file *f, u64 value, u64 after, u64 *ret);

#endif
