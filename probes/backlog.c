/* SPDX-License-Identifier: Apache-2.0 */
#include "backlog.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST ((size_t)64 << 10)
#define ROOM_KEPT  ((size_t)1 << 20) /* when nothing waits */

/* A record follows its size. */
static size_t taken(u64 size)
{
	return sizeof(size) + (size + 7) / 8 * 8;
}

static bool reserve(struct backlog *b, size_t size)
{
	size_t used = b->end - b->first, room = b->room ? b->room : ROOM_LEAST;
	u8 *grown;

	if (b->room - b->end >= size)
		return true;
	if (used)
		memmove(b->bytes, b->bytes + b->first, used);
	b->first = 0;
	b->end = used;
	while (room / 2 < used + size)
		room *= 2;
	grown = room > b->room ? realloc(b->bytes, room) : b->bytes;
	if (!grown)
		return false;
	b->bytes = grown;
	b->room = room;
	return true;
}

bool backlog_put(struct backlog *b, const void *data, size_t size)
{
	const u64 length = size;

	if (!reserve(b, taken(size)))
		return false;
	memcpy(b->bytes + b->end, &length, sizeof(length));
	memcpy(b->bytes + b->end + sizeof(length), data, size);
	b->end += taken(size);
	return true;
}

const void *backlog_first(const struct backlog *b, size_t *size)
{
	u64 length;

	if (b->first == b->end)
		return NULL;
	memcpy(&length, b->bytes + b->first, sizeof(length));
	*size = length;
	return b->bytes + b->first + sizeof(length);
}

void backlog_drop(struct backlog *b)
{
	u64 length;

	memcpy(&length, b->bytes + b->first, sizeof(length));
	b->first += taken(length);
	if (b->first < b->end)
		return;
	b->first = b->end = 0;
	if (b->room > ROOM_KEPT)
		backlog_free(b);
}

size_t backlog_bytes(const struct backlog *b)
{
	return b->end - b->first;
}

void backlog_free(struct backlog *b)
{
	free(b->bytes);
	*b = (struct backlog){0};
}
