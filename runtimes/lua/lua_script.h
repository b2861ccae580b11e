/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How Redis and Valkey call the running script or function. While one runs, the field "__RUN_CTX__" of the registry is
 * the address of a struct scriptRunCtx (script.h: Redis 7.0, Valkey 8.1), whose first or second word is the name: that
 * under which a function was registered, or a script's SHA. Lua itself has no name for it except in Redis's registry.
 * The running one is the function that the main lua_State was entered with. Both are read while it runs, and the name
 * counts if neither has changed meanwhile.
 */
#ifndef YRT_LUA_SCRIPT_H
#define YRT_LUA_SCRIPT_H

#include "lua_image.h"
#include "binary/memory.h"

#define LUA_SCRIPT_STATES 4
#define LUA_SCRIPTS       256
#define LUA_SCRIPT_NAME   128

struct lua_script {
	struct {
		u64 state, at, key; /* a global_State, the pair of its registry, the pair's key */
	} state[LUA_SCRIPT_STATES];
	u32 n;
	u64 spent_ns;
	struct {
		u64 proto;
		u32 cookie;
		char name[LUA_SCRIPT_NAME];
	} found[LUA_SCRIPTS];
	u32 nfound;
};

/* The registry of a global_State has the field. */
void lua_script_see(struct lua_script *s, u64 state, u64 at, u64 key);

/* Has not too much time been spent already? */
bool lua_script_may_look(const struct lua_script *s);

/* The name of what runs with proto as its outermost function. Looks for a few milliseconds whether it does. cookie: of
 * the Proto (lua.h). */
bool lua_script_find(struct lua_script *s, const struct lua_image *image, struct memory *mem, u64 proto, u32 cookie,
        char *ret, size_t size);

#endif
