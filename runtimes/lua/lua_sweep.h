/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over the instructions of functions of a file that holds Lua. */
#ifndef YRT_LUA_SWEEP_H
#define YRT_LUA_SWEEP_H

#include "code/disassembler.h"
#include "error.h"

struct lua_sweep {
	struct image *img;
	struct disassembler d;
};

struct error *lua_sweep_open(struct image *img, struct lua_sweep *ret);
void lua_sweep_close(struct lua_sweep *s); /* also if it could not be opened */

/* Shows the instructions of [start, end). */
void lua_sweep(struct lua_sweep *s, u64 start, u64 end, code_look *look, void *ctx);

/* Functions of the file, by where they start. */
#define LUA_CALLEES_MAX 64
struct lua_callees {
	u64 start[LUA_CALLEES_MAX];
	u32 n;
};

bool lua_callees_has(const struct lua_callees *c, u64 start);
void lua_callees_add(struct lua_callees *c, u64 start); /* once; more than there is room for are left out */

/* Adds those that the function at start calls or ends in by a jump, and theirs, depth deep. */
void lua_callees(struct lua_sweep *s, u64 start, u32 depth, struct lua_callees *ret);
/* The same of an exported function; false: the file has none of this name. */
bool lua_callees_of(struct lua_sweep *s, const char *name, u32 depth, struct lua_callees *ret);

#endif
