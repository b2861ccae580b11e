/* SPDX-License-Identifier: Apache-2.0 */
/* A regex (up to the first NUL) and a text. What matches lies within the text, and captures within what matches. */
#include <stdlib.h>
#include <string.h>

#include "frontends/ylang/regex.h"
#include "frontends/ylang/source.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void check(const struct y_regex *r, const u32 *saved, u32 len)
{
	for (u32 i = 0; i < r->captures; i++) {
		u32 start = saved[2 * i], end = saved[2 * i + 1];

		if (end == UINT32_MAX)
			continue;
		if (start > end || end > len || start < saved[0] || end > saved[1])
			abort();
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const u8 *nul = memchr(data, 0, size);
	u32 len = (u32)(nul ? (size_t)(nul - data) : size), rest = nul ? (u32)size - len - 1 : 0, at;
	u32 saved[2 * Y_REGEX_CAPTURES];
	struct y_memory *memory = y_memory_new();
	char *pattern = malloc(len + 1);
	const char *problem;
	struct y_regex *r;
	void *room;

	memcpy(pattern, data, len);
	r = y_regex_compile(memory, pattern, len, size & 1, &problem, &at);
	if (!r && (!problem || at > len))
		abort();
	room = r ? malloc(y_regex_room(r)) : NULL;
	rest = rest < 200 ? rest : 200;
	if (r && y_regex_match(r, nul ? (const char *)nul + 1 : "", rest, saved, room))
		check(r, saved, rest);
	free(room);
	free(pattern);
	y_memory_free(memory);
	return 0;
}
