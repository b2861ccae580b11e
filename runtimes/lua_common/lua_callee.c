/* SPDX-License-Identifier: Apache-2.0 */
#include "lua_callee.h"

#include <stdio.h>
#include <string.h>

bool lua_asks_for_name(const char *pattern)
{
	const char *colon = pattern ? strrchr(pattern, ':') : NULL;

	return !colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1);
}

void lua_callee_name(const struct frame_name *name, bool by_line, char *ret, size_t size)
{
	if (by_line || !name->name[0])
		snprintf(ret, size, "%.400s:%u", name->file, name->definition);
	else
		snprintf(ret, size, "%.255s:%.255s", name->file, name->name);
}

struct error *lua_add_callee(struct runtime_callee *c, const struct frame_name *name, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx)
{
	struct error *err = NULL;

	snprintf(c->file, sizeof(c->file), "%s", name->file);
	c->line = name->definition;
	if (name->name[0] && lua_asks_for_name(pattern)) {
		lua_callee_name(name, false, c->name, sizeof(c->name));
		err = add(ctx, c);
	}
	if (err || (name->name[0] && pattern && lua_asks_for_name(pattern)))
		return err;
	lua_callee_name(name, true, c->name, sizeof(c->name));
	return add(ctx, c);
}
