/* SPDX-License-Identifier: Apache-2.0 */
#include "size_class.h"

#include <inttypes.h>
#include <stdio.h>

#define EXACT 64 /* classes 0 to 64 are multiples of 16 */

/* The largest size of a class. */
static u64 largest(u32 number)
{
	u32 above = number - EXACT - 1;

	if (number <= EXACT)
		return 16ull * number;
	return (5ull + above % 4) << (8 + above / 4);
}

u32 size_class(u64 size)
{
	u32 bits, quarter, number;

	if (size <= 16 * EXACT)
		return (u32)((size + 15) / 16);
	bits = 63 - (u32)__builtin_clzll(size - 1); /* 2^bits <= size - 1 */
	quarter = (u32)((size - 1) >> (bits - 2)) & 3;
	number = EXACT + 1 + 4 * (bits - 10) + quarter;
	return number < SIZE_CLASSES ? number : SIZE_CLASSES - 1;
}

void size_text(char *ret, size_t room, u64 bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	u32 unit = 0;

	while (bytes >= 10240 || (bytes >= 1024 && bytes % 1024 == 0)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(ret, room, "%" PRIu64 " %s", bytes, units[unit]);
}

const char *size_class_name(u32 number, char ret[SIZE_CLASS_NAME])
{
	char text[24];

	size_text(text, sizeof(text), largest(number));
	snprintf(ret, SIZE_CLASS_NAME, number <= EXACT ? "%s" : "up to %s", text);
	return ret;
}
