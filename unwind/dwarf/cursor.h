/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers from debug information. Past the end every number is 0 and the cursor stays at its end. */
#ifndef YRT_DWARF_CURSOR_H
#define YRT_DWARF_CURSOR_H

#include <string.h>
#include <types.h>

#include "leb128.h"

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
	if (cursor_left(c) >= sizeof(value)) { /* memcpy() with a variable size would be a call */
		memcpy(&value, c->p, sizeof(value));
		value &= size ? ~0ull >> (64 - 8 * size) : 0;
	} else {
		memcpy(&value, c->p, size);
	}
	c->p += size;
	return value;
}

static inline u64 cursor_uleb(struct dwarf_cursor *c)
{
	u64 value;

	leb128_read(&c->p, c->end, false, &value);
	return value;
}

static inline s64 cursor_sleb(struct dwarf_cursor *c)
{
	u64 value;

	leb128_read(&c->p, c->end, true, &value);
	return (s64)value;
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
