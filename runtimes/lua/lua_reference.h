/* SPDX-License-Identifier: Apache-2.0 */
/* Code that refers to a place of its file: lea relative to RIP, or a 32-bit mov in a program at fixed addresses. */
#ifndef YRT_LUA_REFERENCE_H
#define YRT_LUA_REFERENCE_H

#include <elf.h>
#include <string.h>

#include "binary/image.h"
#include "binary/image_scan.h"

#define LUA_REFERENCE 7 /* bytes of the longest such instruction */

/* What the instruction at code, LUA_REFERENCE bytes, refers to; addr: where it is. 0: nothing, or it is another one. */
static inline u64 lua_referred(const u8 *code, u64 addr)
{
	s32 distance;
	u32 absolute;

	if ((code[0] & 0xfb) == 0x48 && code[1] == 0x8d && (code[2] & 0xc7) == 5) { /* lea reg, [rip + disp32] */
		memcpy(&distance, code + 3, sizeof(distance));
		return addr + LUA_REFERENCE + (u64)distance;
	}
	if ((code[0] & 0xf8) != 0xb8) /* mov reg, imm32 */
		return 0;
	memcpy(&absolute, code + 1, sizeof(absolute));
	return absolute;
}

/* Where in a piece of code such an instruction may begin, from i on; not before scan->own: nowhere. */
static inline size_t lua_reference_next(const struct image_scan *scan, size_t i)
{
	const u8 *lea;

	if (scan->img->type == ET_EXEC || i + 1 >= scan->size)
		return i;
	lea = memchr(scan->bytes + i + 1, 0x8d, scan->size - i - 1);
	return lea ? (size_t)(lea - scan->bytes) - 1 : scan->own;
}

/* The first instruction of .text that refers to it. 0: none. */
u64 lua_reference_find(struct image *img, u64 to);

#endif
