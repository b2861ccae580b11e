/* SPDX-License-Identifier: Apache-2.0 */
/* Names of frames, as debug.traceback() gives them: a function is called what its caller's bytecode calls it. */
#ifndef YRT_LUA_NAMES_H
#define YRT_LUA_NAMES_H

#include "lua_image.h"
#include "runtime.h"

struct lua_names;

struct lua_names *lua_names_create(const struct lua_image *image); /* NULL: no memory */
void lua_names_destroy(struct lua_names *names);
/* As runtime_ops.name_frame. */
bool lua_name_frame(struct lua_names *names, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n,
        struct frame_name *ret);

#endif
