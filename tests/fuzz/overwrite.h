/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_FUZZ_OVERWRITE_H
#define YRT_FUZZ_OVERWRITE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What the input says of memory that is there: again and again two bytes where, one how many, and the bytes. */
static inline void overwrite(void *memory, size_t room, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t at = (data[0] | data[1] << 8) % room, n = data[2] & 15;

		data += 3;
		size -= 3;
		n = n < size ? n : size;
		n = n < room - at ? n : room - at;
		memcpy((char *)memory + at, data, n);
		data += n;
		size -= n;
	}
}

#endif
