/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed section as a stream that can go back. */
#ifndef YRT_DWARF_UNPACK_H
#define YRT_DWARF_UNPACK_H

#include <types.h>

#include "binary/image.h"

struct unpacker;

enum packing {
	PACKING_ZLIB,
	PACKING_ZSTD,
};

/*
 * For size compressed bytes at offset of the file. NULL: no memory, or not a stream of that kind. It takes no buffers
 * before the first unpacker_next().
 */
struct unpacker *unpacker_create(struct image *img, enum packing packing, u64 offset, u64 size, u64 unpacked);
void unpacker_destroy(struct unpacker *u);
/* Back to the start, without buffers and saved positions. */
void unpacker_rest(struct unpacker *u);
/* Where the next bytes belong. */
u64 unpacker_at(const struct unpacker *u);
/* Goes to the best saved position at or before offset; it never goes forward past what unpacker_next() has unpacked. */
void unpacker_seek(struct unpacker *u, u64 offset);
/* The next size bytes; false: the stream is corrupt or ends, or there is no memory. */
bool unpacker_next(struct unpacker *u, u8 *dst, size_t size);

#endif
