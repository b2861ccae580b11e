/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a stack the garbage collector begins. All functions of the API that make objects end in luaC_step() (lapi.c:
 * luaC_checkGC, 5.1 to 5.5). lua_gc() calls the other ones that collect: luaC_fullgc(), luaC_changemode(),
 * luaC_forcestep(), which share callees with luaC_step(). So the names of the API, which a stripped file keeps,
 * identify them. In a host that exports nothing lua_gc() is what "collectgarbage" of the base library calls most often
 * of all functions that share a callee with luaV_execute(): luaC_step(), in 5.2 what that calls.
 */
#ifndef YRT_LUA_GC_H
#define YRT_LUA_GC_H

#include "binary/image.h"
#include "shared/frame.h"

#define LUA_GC_FUNCTIONS 8

struct lua_gc {
	u64 start[LUA_GC_FUNCTIONS], end[LUA_GC_FUNCTIONS]; /* file addresses */
	u32 n;                                              /* 0: not found; there is no frame then */
};

/* execute: where luaV_execute() begins. Only fails for memory. */
struct error *lua_gc_find(struct image *img, u64 execute, struct lua_gc *ret);

#endif
