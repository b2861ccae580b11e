/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a process that a test makes up: of its first n mappings. */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include <string.h>

#include "unwind/allocators/allocators.h"

/* NULL: no mapping has all of it. */
static inline u8 *fake_memory_at(const struct map_line *lines, u8 *const *bytes, u32 n, u64 addr, u64 size)
{
	for (u32 i = 0; i < n; i++)
		if (addr >= lines[i].start && addr < lines[i].end && size <= lines[i].end - addr)
			return bytes[i] + (addr - lines[i].start);
	return NULL;
}

static inline bool fake_memory_read(const u8 *from, void *dst, size_t size)
{
	if (from)
		memcpy(dst, from, size);
	return from;
}

static inline void fake_memory_put(u8 *to, u64 word)
{
	if (to)
		memcpy(to, &word, sizeof(word));
}

#endif
