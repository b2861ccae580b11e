/* SPDX-License-Identifier: Apache-2.0 */
#include "protobuf_read.h"

#include <stddef.h>

u64 pb_take(struct pb_reader *r, struct pb_span *from)
{
	u64 value = 0;

	for (u32 shift = 0; shift < 64 && from->at < from->end; shift += 7) {
		u8 byte = *from->at++;

		value |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	r->broken = true;
	return 0;
}

static void skip(struct pb_reader *r, struct pb_span *from, size_t n)
{
	if (n > (size_t)(from->end - from->at)) {
		r->broken = true;
		n = 0;
	}
	from->at += n;
}

bool pb_next(struct pb_reader *r, struct pb_span *from, struct pb_field *ret)
{
	u64 key, size;

	if (r->broken || from->at == from->end)
		return false;
	key = pb_take(r, from);
	*ret = (struct pb_field){.number = (u32)(key >> 3)};
	switch (key & 7) {
	case 0:
		ret->value = pb_take(r, from);
		break;
	case 1:
	case 5:
		skip(r, from, (key & 7) == 1 ? 8 : 4);
		break;
	case 2:
		size = pb_take(r, from);
		ret->span.at = from->at;
		skip(r, from, size);
		ret->span.end = from->at;
		break;
	default:
		r->broken = true;
	}
	return !r->broken;
}
