/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions by the tables that hold them, as debug.traceback() gives them (lauxlib.c: pushglobalfuncname):
 * "mod.name" of the table that package.loaded has as "mod", "name" of a global function. Then those that the registry
 * holds under a name: Redis keeps a script there as "f_" and its SHA.
 */
#ifndef YRT_LUA_GLOBALS_H
#define YRT_LUA_GLOBALS_H

#include "lua_image.h"
#include "binary/memory.h"

struct lua_globals;

/* NULL: out of memory. image stays the caller's. */
struct lua_globals *lua_globals_create(const struct lua_image *image);
void lua_globals_destroy(struct lua_globals *g); /* NULL is fine */

/* A global_State that a walk has met, which has such tables. */
void lua_globals_see(struct lua_globals *g, u64 state);

/*
 * Of a function in Lua, by its Proto and lua_cookie(), or in C, by its code and 0: NULL if no table gives a name, or
 * different closures of it have different ones. Reads the tables if it does not know the function, but spends at most
 * a twentieth of the time on that. The text is valid until the next call.
 */
const char *lua_globals_find(struct lua_globals *g, struct memory *mem, u64 function, u32 cookie);

/*
 * For a function in Lua, the name of the function in the registry inside of which it is written; NULL: none. Redis
 * calls the source of all scripts "user_script".
 */
const char *lua_globals_chunk(struct lua_globals *g, struct memory *mem, u64 proto, u32 cookie);

/*
 * The host's name for the script whose outermost function is proto, which is read while it runs. False:
 * the host gives none, or it was not seen running.
 */
bool lua_globals_script(struct lua_globals *g, struct memory *mem, u64 proto, u32 cookie, char *ret, size_t size);

#endif
