/* SPDX-License-Identifier: Apache-2.0 */
#include "python_names.h"

#define NO_LINE (-128) /* a difference of 3.10 */

/* Kinds of location entries: bits 3-6 of their first byte; the lower kinds are short forms with columns only. */
enum { KIND_ONE_LINE0 = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NONE = 15 };

struct cursor {
	const u8 *at, *end;
};

/* Six bits a byte, low ones first; bit 6: more follow. */
static u32 read_varint(struct cursor *c)
{
	u32 value = 0;

	for (u32 shift = 0; c->at < c->end; shift += 6) {
		u8 byte = *c->at++;

		if (shift < 30)
			value |= (u32)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

/* Bit 0 is the sign. */
static s64 read_svarint(struct cursor *c)
{
	u32 value = read_varint(c);

	return value & 1 ? -(s64)(value >> 1) : value >> 1;
}

u32 python_line(const u8 *table, size_t size, u32 firstlineno, u32 pos)
{
	struct cursor c = {table, table};
	s64 line = firstlineno;
	u64 unit = 0;

	if (size) /* else there may be no table at all */
		c.end += size;
	while (c.at < c.end) {
		u8 head = *c.at++;
		u32 kind = head >> 3 & 15;

		if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
			line += read_svarint(&c);
		else if (kind >= KIND_ONE_LINE0 && kind < KIND_NO_COLUMNS)
			line += kind - KIND_ONE_LINE0;
		unit += (head & 7) + 1u;
		if (pos < unit)
			return kind == KIND_NONE || line <= 0 || line > UINT32_MAX ? 0 : (u32)line;
		while (c.at < c.end && !(*c.at & 0x80))
			c.at++;
	}
	return 0;
}

/* Pairs: how many bytes of bytecode, and how much further their line is than the one of those before. */
u32 python_line_310(const u8 *table, size_t size, u32 firstlineno, u32 pos)
{
	s64 line = firstlineno;
	u64 end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		s8 step = (s8)table[i + 1];

		end += table[i];
		if (step != NO_LINE)
			line += step;
		if (2ull * pos < end)
			return step == NO_LINE || line <= 0 || line > UINT32_MAX ? 0 : (u32)line;
	}
	return 0;
}

/* Pairs: how many bytes further the next line begins, and how much further it is. */
u32 python_line_39(const u8 *table, size_t size, u32 firstlineno, u32 pos)
{
	s64 line = firstlineno;
	u64 start = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		start += table[i];
		if (start > 2ull * pos)
			break;
		line += (s8)table[i + 1];
	}
	return line <= 0 || line > UINT32_MAX ? 0 : (u32)line;
}
