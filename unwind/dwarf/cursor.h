/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers from debug information. Past the end every number is 0 and the cursor stays at its end. */
#ifndef YRT_DWARF_CURSOR_H
#define YRT_DWARF_CURSOR_H

#include <string.h>
#include <types.h>

struct dwarf_cursor {
	const u8 *p, *end;
};

static inline u64 cursor_left(const struct dwarf_cursor *c)
{
	return c->end - c->p;
}

static inline void cursor_skip(struct dwarf_cursor *c, u64 n)
{
	c->p = n < cursor_left(c) ? c->p + n : c->end;
}

/* size: at most 8 bytes, little end first */
static inline u64 cursor_fixed(struct dwarf_cursor *c, u32 size)
{
	u64 value = 0;

	if (cursor_left(c) < size) {
		c->p = c->end;
		return 0;
	}
	memcpy(&value, c->p, size);
	c->p += size;
	return value;
}

static inline u64 cursor_uleb(struct dwarf_cursor *c)
{
	u64 value = 0;
	u32 shift = 0;

	while (c->p < c->end) {
		u8 byte = *c->p++;

		if (shift < 64)
			value |= (u64)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			return value;
	}
	return 0;
}

static inline s64 cursor_sleb(struct dwarf_cursor *c)
{
	u64 value = 0;
	u32 shift = 0;

	while (c->p < c->end) {
		u8 byte = *c->p++;

		if (shift < 64)
			value |= (u64)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			return shift < 64 && byte & 0x40 ? (s64)(value | ~0ULL << shift) : (s64)value;
	}
	return 0;
}

static inline void cursor_skip_leb(struct dwarf_cursor *c)
{
	while (c->p < c->end && *c->p++ & 0x80)
		;
}

static inline void cursor_skip_string(struct dwarf_cursor *c)
{
	const u8 *end = memchr(c->p, 0, cursor_left(c));

	c->p = end ? end + 1 : c->end;
}

#endif
