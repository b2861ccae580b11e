/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_release.h"

#include <stdio.h>
#include <string.h>

#include "binary/image_scan.h"
#include "cfi/cfi_search_cache.h"
#include "lua_reference.h"
#include "symbols/symbols.h"

#define IDENT_MAX  64  /* bytes of lua_ident that are read */
#define TEXTS_MAX  16  /* places of the same text */
#define STATEMENTS 128 /* bytes of code, far more than two calls with constant arguments take */

/* The newest release of each series. */
static const char *const newest[] = {NULL, "Lua 5.1.5", "Lua 5.2.4", "Lua 5.3.6", "Lua 5.4.8", "Lua 5.5.0"};

/* Takes the release from a piece that has the text. */
static bool take_release(const struct image_scan *scan, char *ret)
{
	static const char *const heads[] = {"$LuaVersion: Lua 5.", "$Lua: Lua 5."};

	for (u32 i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		const char *end = (const char *)scan->bytes + scan->size;
		const char *p = memmem(scan->bytes, scan->size, heads[i], strlen(heads[i]));
		u32 n = 0;

		if (!p)
			continue;
		for (p = strchr(p, ' ') + 1; p < end && n + 1 < LUA_RELEASE_MAX && (n < 4 || *p > ' '); p++)
			ret[n++] = *p;
		ret[n] = '\0';
		return true;
	}
	return false;
}

static bool find_ident(struct image *img, char *ret, bool *failed)
{
	struct image_scan scan;
	bool found = false;

	if (!image_scan_start(&scan, img, ".rodata", IDENT_MAX))
		return false;
	while (!found && image_scan_next(&scan))
		found = take_release(&scan, ret);
	*failed |= scan.failed;
	image_scan_end(&scan);
	return found;
}

/* Where "_VERSION" (series 0) and "Lua 5.4" (series 4) stand. */
struct texts {
	u64 addr[TEXTS_MAX];
	u32 series[TEXTS_MAX];
	u32 n;
};

static void add_texts(const struct image_scan *scan, const char *text, struct texts *ret)
{
	size_t size = strlen(text), behind = *text == 'L' ? 2 : 1; /* the series, the end */
	const u8 *p = scan->bytes, *end = scan->bytes + scan->size;

	for (; ret->n < TEXTS_MAX && (p = memmem(p, (size_t)(end - p), text, size)); p++) {
		u32 series = behind == 2 && p + size < end ? p[size] - (u32)'0' : 0;

		if ((size_t)(p - scan->bytes) >= scan->own || p + size + behind > end)
			return;
		if (p[size + behind - 1] || (behind == 2 && (!series || series >= sizeof(newest) / sizeof(*newest))))
			continue;
		ret->addr[ret->n] = scan->addr + (u64)(p - scan->bytes);
		ret->series[ret->n++] = series;
	}
}

static bool find_texts(struct image *img, struct texts *ret, bool *failed)
{
	struct texts names = {.n = 0};
	struct image_scan scan;

	ret->n = 0;
	if (!image_scan_start(&scan, img, ".rodata", sizeof("_VERSION")))
		return false;
	while (image_scan_next(&scan)) {
		add_texts(&scan, "Lua 5.", ret);
		add_texts(&scan, "_VERSION", &names);
	}
	*failed |= scan.failed;
	image_scan_end(&scan);
	if (!ret->n || !names.n)
		return false;
	for (u32 i = 0; i < names.n && ret->n < TEXTS_MAX; i++) {
		ret->addr[ret->n] = names.addr[i];
		ret->series[ret->n++] = 0;
	}
	return true;
}

/* Does one instruction refer to the series not far from one that refers to _VERSION? */
static bool see_code(const struct image_scan *scan, const struct texts *texts, u64 seen[2], u32 *series)
{
	for (size_t i = lua_reference_next(scan, 0); i < scan->own && i + LUA_REFERENCE <= scan->size;
	        i = lua_reference_next(scan, i + 1)) {
		u64 addr = scan->addr + i, to = lua_referred(scan->bytes + i, addr);

		for (u32 k = 0; to && k < texts->n; k++) {
			if (texts->addr[k] != to)
				continue;
			seen[!texts->series[k]] = addr;
			*series = texts->series[k] ? texts->series[k] : *series;
			if (seen[0] && seen[1] && seen[0] - seen[1] + STATEMENTS <= 2 * STATEMENTS)
				return true;
		}
	}
	return false;
}

/* The series' number; 0: luaopen_base() is not there. */
static u32 find_code(struct image *img, u64 *near, bool *failed)
{
	struct image_scan scan;
	struct texts texts;
	u64 seen[2] = {0};
	bool found = false;
	u32 series = 0;

	if (!find_texts(img, &texts, failed) || !image_scan_start(&scan, img, ".text", LUA_REFERENCE))
		return 0;
	while (!found && image_scan_next(&scan))
		found = see_code(&scan, &texts, seen, &series);
	*failed |= scan.failed;
	image_scan_end(&scan);
	if (!found)
		return 0;
	*near = seen[0];
	return series;
}

static bool find(struct image *img, char *release, u64 *near, bool *failed)
{
	bool ident = find_ident(img, release, failed);
	struct symbol symbol;
	u32 series;

	if (ident && symbols_lookup(img, "lua_newstate", &symbol))
		return true;
	series = find_code(img, near, failed);
	if (series && !ident)
		snprintf(release, LUA_RELEASE_MAX, "%s", newest[series]);
	return ident || series;
}

/* What an earlier run has found: nothing, or the address and the release. */
static bool recall(const struct search_result *cached, char *release, u64 *near)
{
	if (cached->n != LUA_RELEASE_VALUES)
		return false;
	*near = cached->values[0];
	memcpy(release, cached->values + 1, LUA_RELEASE_MAX);
	return true;
}

bool lua_release_find(struct image *img, char *release, u64 *near)
{
	struct search_result result;
	bool found, failed = false;

	*near = 0;
	if (search_cache_load(img, LUA_RELEASE_SEARCH, &result) &&
	        (!result.n || (result.n == LUA_RELEASE_VALUES && !(result.values[LUA_RELEASE_VALUES - 1] >> 56))))
		return recall(&result, release, near);
	if (!image_scan_find(img, ".rodata", "Lua 5.", strlen("Lua 5."))) /* one look is enough for nearly all files */
		return false;
	memset(release, 0, LUA_RELEASE_MAX);
	found = find(img, release, near, &failed);
	result = (struct search_result){.values = {*near}, .n = found ? LUA_RELEASE_VALUES : 0};
	if (found)
		memcpy(result.values + 1, release, LUA_RELEASE_MAX);
	if (!failed)
		search_cache_store(img, LUA_RELEASE_SEARCH, &result);
	return found;
}
