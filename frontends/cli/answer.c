/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* google.rpc.Status; ExportProfilesServiceResponse and its ExportProfilesPartialSuccess */
enum { STATUS_MESSAGE = 2, RESPONSE_PARTIAL = 1, PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct field {
	u32 number;
	u64 value;
	const char *bytes; /* NULL: it is a number */
	size_t size;
};

static bool take_varint(const char **at, const char *end, u64 *ret)
{
	*ret = 0;
	for (u32 shift = 0; *at < end && shift < 64; shift += 7) {
		u8 byte = (u8) * (*at)++;

		*ret |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Of bytes that are cut what there is. */
static bool take_field(const char **at, const char *end, struct field *ret)
{
	u64 key, size;

	*ret = (struct field){0};
	if (!take_varint(at, end, &key))
		return false;
	ret->number = (u32)(key >> 3);
	switch (key & 7) {
	case WIRE_VARINT:
		return take_varint(at, end, &ret->value);
	case WIRE_BYTES:
		if (!take_varint(at, end, &size))
			return false;
		ret->bytes = *at;
		ret->size = size < (u64)(end - *at) ? size : (size_t)(end - *at);
		*at += ret->size;
		return true;
	case WIRE_64:
	case WIRE_32:
		size = (key & 7) == WIRE_64 ? 8 : 4;
		if ((u64)(end - *at) < size)
			return false;
		*at += size;
		return true;
	default:
		return false;
	}
}

static bool find_field(const char *bytes, size_t size, u32 number, struct field *ret)
{
	const char *at = bytes, *end = bytes + size;

	while (take_field(&at, end, ret))
		if (ret->number == number)
			return true;
	return false;
}

static bool is_of_type(const struct answer *a, const char *type)
{
	return strcasestr(a->type, type);
}

bool answer_is_page(const struct answer *a)
{
	return is_of_type(a, "text/html");
}

/* Without what a browser does not show, each run of blanks as one. */
static void squeeze(const char *from, size_t n, bool is_page, char *ret, size_t size)
{
	static const char *const hidden[] = {"style", "script"};
	const char *end = from + n, *until = NULL;
	bool in_tag = false, blank = false;
	size_t used = 0;

	for (; from < end && used + 2 < size; from++) {
		if (is_page && *from == '<') {
			in_tag = true;
			for (u32 i = 0; i < 2; i++)
				if (!strncasecmp(from + 1, hidden[i], strlen(hidden[i])))
					until = hidden[i];
			if (until && from[1] == '/' && !strncasecmp(from + 2, until, strlen(until)))
				until = NULL;
		}
		if (in_tag || until || isspace((u8)*from)) {
			in_tag = in_tag && *from != '>';
			blank = used;
			continue;
		}
		if (blank)
			ret[used++] = ' ';
		ret[used++] = *from;
		blank = false;
	}
	ret[used] = '\0';
}

void answer_text(const struct answer *a, char *ret, size_t size)
{
	struct field f = {.bytes = a->body, .size = a->size};

	*ret = '\0';
	if (!is_of_type(a, "protobuf") || find_field(a->body, a->size, STATUS_MESSAGE, &f))
		squeeze(f.bytes ? f.bytes : "", f.bytes ? f.size : 0, answer_is_page(a), ret, size);
}

u64 answer_rejected(const struct answer *a, char *why, size_t size)
{
	struct field partial, f;

	*why = '\0';
	if (!is_of_type(a, "protobuf") || !find_field(a->body, a->size, RESPONSE_PARTIAL, &partial) || !partial.bytes)
		return 0;
	if (find_field(partial.bytes, partial.size, PARTIAL_MESSAGE, &f) && f.bytes)
		squeeze(f.bytes, f.size, false, why, size);
	return find_field(partial.bytes, partial.size, PARTIAL_REJECTED, &f) && !f.bytes ? f.value : 0;
}
