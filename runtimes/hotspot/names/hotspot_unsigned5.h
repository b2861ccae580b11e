/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as HotSpot compresses them: UNSIGNED5, one to five bytes, the low six bits first (code/compressedStream.cpp;
 * since JDK 20 utilities/unsigned5.hpp, where no byte is zero).
 */
#ifndef YRT_HOTSPOT_UNSIGNED5_H
#define YRT_HOTSPOT_UNSIGNED5_H

#include <types.h>

#define UNSIGNED5_HIGH 192 /* bytes from here on are followed by another */

struct hotspot_stream {
	const u8 *at, *end;
	bool no_zero; /* JDK 20 and later */
	bool broken;  /* it ended within a number, or has a byte that can not be */
};

static inline u32 hotspot_read_byte(struct hotspot_stream *s)
{
	if (s->at < s->end)
		return *s->at++;
	s->broken = true;
	return 0;
}

/* 0 once the stream is broken. */
static inline u32 hotspot_read_uint(struct hotspot_stream *s)
{
	u32 sum = 0;

	for (u32 i = 0; i < 5; i++) {
		u32 byte = hotspot_read_byte(s);

		if (s->broken || (s->no_zero && !byte))
			break;
		sum += (byte - s->no_zero) << 6 * i;
		if (byte < UNSIGNED5_HIGH || i == 4)
			return sum;
	}
	s->broken = true;
	return 0;
}

/* Bit 0 is the sign. */
static inline s32 hotspot_read_int(struct hotspot_stream *s)
{
	u32 value = hotspot_read_uint(s);

	return (s32)(value >> 1 ^ -(value & 1));
}

#endif
