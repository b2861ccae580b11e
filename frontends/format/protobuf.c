/* SPDX-License-Identifier: Apache-2.0 */
#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

#define VARINT_MAX 10

static bool reserve(struct pb *m, size_t more)
{
	size_t capacity = (m->size + more) * 2;
	u8 *bytes;

	if (!m->failed && m->size + more <= m->capacity)
		return true;
	bytes = m->failed ? NULL : realloc(m->bytes, capacity);
	m->failed = !bytes;
	if (!bytes)
		return false;
	m->bytes = bytes;
	m->capacity = capacity;
	return true;
}

void pb_packed(struct pb *m, u64 value)
{
	if (!reserve(m, VARINT_MAX))
		return;
	for (; value >= 0x80; value >>= 7)
		m->bytes[m->size++] = (u8)(value | 0x80);
	m->bytes[m->size++] = (u8)value;
}

void pb_number(struct pb *m, u32 field, u64 value)
{
	if (!value)
		return;
	pb_packed(m, field << 3 | WIRE_VARINT);
	pb_packed(m, value);
}

void pb_raw(struct pb *m, const void *bytes, size_t size)
{
	if (!size || !reserve(m, size))
		return;
	memcpy(m->bytes + m->size, bytes, size);
	m->size += size;
}

void pb_bytes(struct pb *m, u32 field, const void *bytes, size_t size)
{
	pb_packed(m, field << 3 | WIRE_BYTES);
	pb_packed(m, size);
	pb_raw(m, bytes, size);
}
