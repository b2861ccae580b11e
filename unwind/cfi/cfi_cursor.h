/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded reader of untrusted bytes. Past the end it returns zeroes and stays marked as bad. */
#ifndef YRT_CFI_CURSOR_H
#define YRT_CFI_CURSOR_H

#include <string.h>
#include <types.h>

#include "dwarf/leb128.h"

struct cfi_cursor {
	const u8 *at, *end;
	bool bad;
};

static inline size_t cursor_left(const struct cfi_cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The next size bytes, skipped; NULL if they are not there. */
static inline const u8 *cursor_take(struct cfi_cursor *c, u64 size)
{
	const u8 *at = c->at;

	if (size > cursor_left(c)) {
		c->bad = true;
		c->at = c->end;
		return NULL;
	}
	c->at += size;
	return at;
}

#define CURSOR_READ(type)                                                                                              \
	static inline type cursor_##type(struct cfi_cursor *c)                                                         \
	{                                                                                                              \
		const u8 *at = cursor_take(c, sizeof(type));                                                           \
		type value = 0;                                                                                        \
                                                                                                                       \
		if (at)                                                                                                \
			memcpy(&value, at, sizeof(value));                                                             \
		return value;                                                                                          \
	}
CURSOR_READ(u8)
CURSOR_READ(u16)
CURSOR_READ(u32)
CURSOR_READ(u64)
#undef CURSOR_READ

static inline u64 cursor_uleb(struct cfi_cursor *c)
{
	u64 value;

	c->bad |= !leb128_read(&c->at, c->end, false, &value);
	return value;
}

static inline s64 cursor_sleb(struct cfi_cursor *c)
{
	u64 value;

	c->bad |= !leb128_read(&c->at, c->end, true, &value);
	return (s64)value;
}

#endif
