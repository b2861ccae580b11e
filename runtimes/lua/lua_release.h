/* SPDX-License-Identifier: Apache-2.0 */
/* Which release of Lua a file holds. */
#ifndef YRT_LUA_RELEASE_H
#define YRT_LUA_RELEASE_H

#include "lua_image.h"

#define LUA_RELEASE_SEARCH "lua release 2" /* of cfi_search_cache.h */
#define LUA_RELEASE_VALUES (1 + LUA_RELEASE_MAX / sizeof(u64))

/*
 * By lua_ident (lapi.c): "$LuaVersion: Lua 5.4.6  Copyright …", "$Lua: Lua 5.1.5 Copyright …". Nothing refers to it, so
 * a program linked with --gc-sections has none, and it does not say where in a large file Lua is. There, luaopen_base()
 * (lbaselib.c) is searched for, the code that sets _VERSION to "Lua 5.4". Without lua_ident that is the series alone:
 * its newest release is assumed.
 *
 * release: LUA_RELEASE_MAX bytes. near: an address in luaopen_base(); 0: not found, or the file names lua_newstate().
 * False: the file has no Lua. Large files that have such texts, as Envoy does, are searched once, not in each run.
 */
bool lua_release_find(struct image *img, char *release, u64 *near);

#endif
