/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cfi/cfi_search_cache.h"
#include "lua_image.h"

/* What is kept, in words. */
struct kept {
	u64 by_symbol;
	u64 nranges;
	struct {
		u64 start, end, part;
	} range[LUA_RANGES_MAX];
	struct lua_gc gc;
	struct lua_vm vm; /* what the code shows */
};
_Static_assert(sizeof(struct kept) % sizeof(u64) == 0, "whole words");
_Static_assert(sizeof(struct kept) / sizeof(u64) <= SEARCH_RESULT_MAX, "it fits");

static bool is_code(const struct image *img, u64 start, u64 end)
{
	return start < end && image_has_code(img, start, end);
}

static bool fits(const struct image *img, const struct kept *k)
{
	if (!k->nranges || k->nranges > LUA_RANGES_MAX || k->gc.n > LUA_GC_FUNCTIONS || k->vm.nspills > LUA_SPILLS)
		return false;
	for (u32 i = 0; i < k->nranges; i++)
		if (!is_code(img, k->range[i].start, k->range[i].end) || k->range[i].part > LUA_RESUME)
			return false;
	for (u32 i = 0; i < k->gc.n; i++)
		if (!is_code(img, k->gc.start[i], k->gc.end[i]))
			return false;
	return true;
}

bool lua_code_load(struct image *img, struct lua_image *ret)
{
	struct search_result found;
	struct kept k;

	if (!search_cache_load(img, LUA_CODE_SEARCH, &found) || found.n != sizeof(k) / sizeof(u64))
		return false;
	memcpy(&k, found.values, sizeof(k));
	if (!fits(img, &k))
		return false;
	ret->found_by = k.by_symbol ? "symbol" : "code";
	ret->nranges = (u32)k.nranges;
	for (u32 i = 0; i < k.nranges; i++)
		ret->ranges[i] = (struct lua_range){k.range[i].start, k.range[i].end, (enum lua_part)k.range[i].part};
	ret->gc = k.gc;
	ret->vm = k.vm;
	return true;
}

void lua_code_store(const struct image *img, const struct lua_image *image)
{
	struct search_result found = {.n = sizeof(struct kept) / sizeof(u64)};
	struct kept k = {.by_symbol = !strcmp(image->found_by, "symbol"),
	        .nranges = image->nranges,
	        .gc = image->gc,
	        .vm = image->vm};

	for (u32 i = 0; i < image->nranges; i++) {
		k.range[i].start = image->ranges[i].start;
		k.range[i].end = image->ranges[i].end;
		k.range[i].part = image->ranges[i].part;
	}
	memcpy(found.values, &k, sizeof(k));
	search_cache_store(img, LUA_CODE_SEARCH, &found);
}
