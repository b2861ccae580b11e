/* SPDX-License-Identifier: Apache-2.0 */
/* How a function of Lua is asked for, as an event: "FILE:FUNCTION" or "FILE:LINE". */
#ifndef YRT_LUA_CALLEE_H
#define YRT_LUA_CALLEE_H

#include "runtime.h"
#include "runtime_calls.h"

/* Is a function's name looked for, and not just the line of its definition? NULL: any is. */
bool lua_asks_for_name(const char *pattern);

/* by_line, or a function without a name: "FILE:LINE". */
void lua_callee_name(const struct frame_name *name, bool by_line, char *ret, size_t size);

/* Calls add() with each form in which the function may be asked for by this pattern. */
struct error *lua_add_callee(struct runtime_callee *c, const struct frame_name *name, const char *pattern,
        struct error *(*add)(void *ctx, const struct runtime_callee *c), void *ctx);

#endif
