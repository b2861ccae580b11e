/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of any bytes: an address is taken modulo the size of the input, so that every pointer leads somewhere. */
#ifndef YRT_FUZZ_ANY_BYTES_H
#define YRT_FUZZ_ANY_BYTES_H

#include "unwind/binary/memory.h"
#include "types.h"

struct bytes {
	struct memory memory;
	const u8 *data;
	size_t size;
	u32 fail; /* reads until one fails; 0: none does */
};

static inline bool read_bytes(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct bytes *b = (struct bytes *)mem;

	if (b->fail && !--b->fail)
		return false;
	for (size_t i = 0; i < size; i++)
		((u8 *)dst)[i] = b->data[(addr + i) % b->size];
	return true;
}

#endif
