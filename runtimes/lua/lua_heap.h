/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of PUC-Lua's states, for lua-heap and lua-refs (runtime_heap.h), 5.1 to 5.4 with the usual luaconf.h on
 * 64-bit machines. What the layout (lua_layout.h) does not have is that of lobject.h and lstate.h of the version.
 *
 * Main threads are found in memory: each lies right before its global_State (lstate.c: LG), which points back to it.
 * Roots are what the collector marks: the registry, the main thread; the values of package.loaded and of the globals
 * are roots of their own.
 */
#ifndef YRT_LUA_HEAP_H
#define YRT_LUA_HEAP_H

#include "lua_image.h"
#include "runtime.h"
#include "runtime_heap.h"

struct lua_names;

struct error *lua_heap_open(const struct lua_image *image, struct lua_names *names, const struct runtime_process *p,
        struct heap *h, void **ret);
void lua_heap_close(void *reader);
struct error *lua_heap_roots(void *reader);
struct error *lua_heap_own(void *reader);
/* The collector's list (rootgc, allgc), in which the registry is. */
struct error *lua_heap_all(void *reader);
enum heap_seen lua_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret);

#endif
