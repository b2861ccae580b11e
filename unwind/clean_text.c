/* SPDX-License-Identifier: Apache-2.0 */
#include "clean_text.h"

#include <stdlib.h>
#include <string.h>

static u32 sequence_length(u8 first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

static bool is_code_point(u32 c, u32 length)
{
	static const u32 least[] = {0, 0, 0x80, 0x800, 0x10000};

	return c >= least[length] && c <= 0x10ffff && (c < 0xd800 || c >= 0xe000);
}

u32 text_next(const char **s)
{
	const u8 *b = (const u8 *)*s;
	u32 length = sequence_length(*b), c = length > 1 ? *b & (0x7f >> length) : *b, i = 1;

	while (i < length && (b[i] & 0xc0) == 0x80)
		c = c << 6 | (b[i++] & 0x3f);
	if (!length || i < length || !is_code_point(c, length)) {
		(*s)++;
		return TEXT_REPLACEMENT;
	}
	*s += length;
	return c;
}

u32 text_encode(u32 c, char ret[4])
{
	u32 length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (u32 i = length - 1; i; i--, c >>= 6)
		ret[i] = (char)(0x80 | (c & 0x3f));
	ret[0] = (char)(length == 1 ? c : (0xf00 >> length & 0xff) | c);
	return length;
}

bool text_is_control(u32 c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t text_clean(const char *s, char to[TEXT_CLEAN])
{
	size_t n = 0;

	while (*s && n + 4 < TEXT_CLEAN) {
		u32 c = text_next(&s);

		n += text_encode(text_is_control(c) ? ' ' : c, to + n);
	}
	to[n] = 0;
	return n;
}

char *clean_text(const char *text)
{
	char *ret = text ? malloc(4 * strlen(text) + 1) : NULL, *to = ret;

	while (ret && *text) {
		u32 c = text_next(&text);

		to += text_encode(text_is_control(c) ? TEXT_REPLACEMENT : c, to);
	}
	if (ret)
		*to = '\0';
	return ret;
}
