/* SPDX-License-Identifier: Apache-2.0 */
/* Python's str: compact, in 1, 2 or 4 bytes a character (Include/cpython/unicodeobject.h). */
#include <string.h>

#include "python_names.h"

#define CHARS_MAX 1024

/* The bits of PyASCIIObject.state: interned has 2 of them, or in free-threaded 3.14 on 8; then kind 3, compact 1,
 * ascii 1. */
struct python_str_state python_str_state(u32 bits)
{
	bits >>= bits & 0xfc ? 2 : 8; /* kind is never 0 */
	return (struct python_str_state){.kind = bits & 7, .compact = bits >> 3 & 1, .ascii = bits >> 4 & 1};
}

static size_t put(char *to, u32 c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* A NUL or a lone surrogate has no place in a C string of UTF-8. */
static u32 printable(u32 c)
{
	return !c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0xfffd : c;
}

void python_str_encode(const u8 *chars, u32 n, u32 kind, char *ret, size_t size)
{
	size_t len = 0;

	for (u32 i = 0; i < n && len + 4 < size; i++) {
		u32 c = 0;

		memcpy(&c, chars + (size_t)i * kind, kind);
		len += put(ret + len, printable(c));
	}
	ret[len] = '\0';
}

bool python_str(struct memory *mem, const struct python_layout *l, u64 addr, char *ret, size_t size)
{
	u8 chars[CHARS_MAX * 4];
	struct python_str_state state;
	u64 length;
	u32 bits, n;

	if (!memory_read(mem, &length, sizeof(length), addr + l->str_length.at) ||
	        !memory_read(mem, &bits, sizeof(bits), addr + l->str_state.at))
		return false;
	state = python_str_state(bits);
	if (!state.compact || (state.kind != 1 && state.kind != 2 && state.kind != 4) || length > UINT32_MAX || !size)
		return false;
	n = length < CHARS_MAX ? (u32)length : CHARS_MAX;
	if (n && !memory_read(mem, chars, (size_t)n * state.kind,
	                 addr + (state.ascii ? l->str_ascii.at : l->str_compact.at)))
		return false;
	python_str_encode(chars, n, state.kind, ret, size);
	return true;
}
