/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one ELF file shows of the Lua in it: release, layout, where luaV_execute() is and where it keeps its lua_State.
 */
#ifndef YRT_LUA_IMAGE_H
#define YRT_LUA_IMAGE_H

#include "lua.h"
#include "lua_gc.h"
#include "lua_layout.h"
#include "binary/image.h"

#define LUA_RELEASE_MAX 32
#define LUA_RANGES_MAX  32

struct lua_range {
	u64 start, end;
	enum lua_part part;
};

struct lua_image {
	char release[LUA_RELEASE_MAX]; /* "Lua 5.4.4" */
	u64 near;                      /* lua_release_find() */
	const char *found_by;          /* luaV_execute(): "symbol", "code" */
	struct lua_range ranges[LUA_RANGES_MAX];
	u32 nranges;
	struct lua_gc gc;
	struct lua_vm vm;
	const struct lua_layout *layout;
	struct layout *origins;
};

/* *ret is NULL for a file without Lua. An error says what is missing in a file with Lua. */
struct error *lua_image_read(struct image *img, struct lua_image **ret);
void lua_image_destroy(struct lua_image *image); /* NULL is fine */

/* The parts of luaV_execute(), where it keeps its lua_State, and the collector: ranges, gc, vm. lua_code.c. */
struct error *lua_code_find(struct image *img, struct lua_image *ret);
/*
 * The same, kept for the next run (cfi_search_cache.h). False: it is not, or contradicts the file. lua_code_cache.c.
 */
#define LUA_CODE_SEARCH "lua code 2"
bool lua_code_load(struct image *img, struct lua_image *ret);
void lua_code_store(const struct image *img, const struct lua_image *image);

/*
 * Where luaV_execute(), the code of [start, end), keeps its first argument, the lua_State: of the registers and the
 * slots of the stack that its prologue copies it to, the one that the rest of the function writes to least. In most
 * builds that is never. gcc 13 with frame pointers (Ubuntu 24.04) keeps it in a register that calls do not preserve,
 * and stores it to one of six slots before each call. False: there is no such place. lua_state.c.
 */
struct lua_sweep;
bool lua_state_find(struct lua_sweep *sweep, u64 start, u64 end, struct lua_vm *ret);

/* Where in luaV_execute() that place holds, for people. */
const char *lua_state_extent(const struct lua_vm *vm);

/*
 * struct runtime_ops.c_names: of functions of the tables of luaL_Reg in a file that has to do with Lua: "string.format"
 * if luaopen_string(), which takes the table's address, is exported, else "format". lua_c_names.c.
 */
struct c_names;
struct error *lua_c_names(struct image *img, struct c_names *ret);

#endif
