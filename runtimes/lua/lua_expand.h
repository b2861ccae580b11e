/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is placed between native frames: "(gc)", and functions in C. The walker meets all functions of a lua_State where
 * luaV_execute() ran. So C functions that have called each other since (pcall(string.gsub)) all come before its native
 * frame. Each belongs right outside of its own code.
 */
#ifndef YRT_LUA_EXPAND_H
#define YRT_LUA_EXPAND_H

#include "lua_image.h"
#include "runtime.h"

/*
 * struct runtime_ops.expand for native frames: takes a whole run of them, frames[i] and on, and the C functions behind.
 * bias: of the image.
 */
u32 lua_expand_native(const struct lua_image *image, u64 bias, const struct runtime_process *p,
        const struct frame *frames, u32 i, u32 n, struct frame *ret, u32 max, u32 *eaten);

#endif
