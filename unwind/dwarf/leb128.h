/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of variable length, as DWARF and unwind information have them. */
#ifndef YRT_DWARF_LEB128_H
#define YRT_DWARF_LEB128_H

#include <stdbool.h>
#include <types.h>

static inline bool leb128_read_long(const u8 **at, const u8 *end, bool is_signed, u64 *ret)
{
	u64 value = 0;
	u32 shift = 0;
	u8 byte;

	*ret = 0;
	do {
		if (*at == end)
			return false;
		byte = *(*at)++;
		if (shift < 64)
			value |= (u64)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= ~0ull << shift;
	*ret = value;
	return true;
}

/*
 * Reads a number and moves *at behind it. Bits above the 64th are dropped. False, and 0, if it does not end before end:
 * *at is there then. Most numbers are of one byte.
 */
static inline bool leb128_read(const u8 **at, const u8 *end, bool is_signed, u64 *ret)
{
	if (*at == end || **at & 0x80)
		return leb128_read_long(at, end, is_signed, ret);
	*ret = *(*at)++;
	if (is_signed && *ret & 0x40)
		*ret |= ~0ull << 7;
	return true;
}

#endif
