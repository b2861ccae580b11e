/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls of functions in Lua can be seen (unwind/runtime_calls.h): luaV_execute() reads the first instruction of a
 * function once for each call. In 5.4 that is the second one of a function with ..., as the first one moves its frame.
 * A function whose first statement is a loop reads it again, and is left out. A call's part of the Lua stack begins at
 * CallInfo.func.
 *
 * Names are those of definitions: what the bytecode that makes the function stores it in. Where that was collected (the
 * chunk of a module), those of tables (lua_names.h).
 */
#ifndef YRT_LUA_CALLS_H
#define YRT_LUA_CALLS_H

#include "lua_image.h"
#include "lua_names.h"
#include "runtime_calls.h"

/* runtime_calls_ops.list */
struct error *lua_calls(const struct lua_image *image, u64 bias, struct lua_names *names,
        const struct runtime_process *p, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);

#endif
