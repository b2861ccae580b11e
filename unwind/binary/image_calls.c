/* SPDX-License-Identifier: Apache-2.0 */
#include "image_calls.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define OP_CALL 0xe8 /* and a distance of 32 bits from the next instruction */

void image_calls(struct image *img, u64 start, u64 end, bool (*each)(void *ctx, u64 target), void *ctx)
{
	size_t size = end > start && end - start <= IMAGE_CALLS_MAX ? end - start : 0;
	cleanup(free) u8 *code = size ? malloc(size) : NULL;
	const u8 *at = code;

	if (!code || !image_read(img, code, size, start))
		return;
	while ((at = memchr(at, OP_CALL, size - (size_t)(at - code)))) {
		u64 next = start + (u64)(++at - code) + sizeof(s32);
		s32 distance;

		if (next > end)
			return;
		memcpy(&distance, at, sizeof(distance));
		if (!each(ctx, next + (u64)(s64)distance))
			return;
	}
}
