/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua's source text: the first bytes say which function is looked for. And what is around the URL of Envoy's
 * configuration, which these bytes say where to put.
 */
#include <stdlib.h>
#include <string.h>

#include "runtimes/luajit/luajit_envoy.h"
#include "runtimes/lua_common/lua_source.h"

static const char url[] = LUAJIT_ENVOY_URL "PerRoute";

static void each(void *ctx, const struct luajit_envoy_script *script)
{
	const char *const *text = ctx;
	const char *at = (const char *)script->text;

	if (at < text[0] || at + script->len > text[1] || !script->len ||
	        strlen(script->filter) >= sizeof(script->filter) || strlen(script->part) >= sizeof(script->part))
		abort();
}

static void parse_envoy(const uint8_t *data, const char *text, size_t size)
{
	size_t before = data[0] < size ? data[0] : size, len = data[1] & 1 ? sizeof(url) - 1 : strlen(LUAJIT_ENVOY_URL);
	char *copy = malloc(size + len);
	const char *bounds[] = {copy, copy + size + len};

	memcpy(copy, text, before);
	memcpy(copy + before, url, len);
	memcpy(copy + before + len, text + before, size - before);
	luajit_envoy_size((const u8 *)copy, size + len, before);
	luajit_envoy_parse((const u8 *)copy, size + len, before, each, bounds);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lua_definition d;
	char *text, name[16];

	if (size < 4)
		return 0;
	d = (struct lua_definition){
	        .line = data[0], .last = data[0] + data[1] % 4u, .parameters = data[2] % 8u, .vararg = data[3] & 1};
	text = malloc(size - 4 ? size - 4 : 1); /* nothing behind its end may be read */
	memcpy(text, data + 4, size - 4);
	if (lua_source_parse(text, size - 4, &d, name, sizeof(name)) && (!name[0] || strlen(name) >= sizeof(name)))
		abort();
	parse_envoy(data, text, size - 4);
	free(text);
	return 0;
}
