/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames, as debug.traceback() gives them. In 5.3 and 5.4 the name in a table of package.loaded comes first,
 * then that in the caller's bytecode; in other versions the other way round. Where neither has one: that of its
 * definition in the source (lua_source.h).
 */
#ifndef YRT_LUA_NAMES_H
#define YRT_LUA_NAMES_H

#include "lua_image.h"
#include "runtime.h"

struct lua_names;

struct lua_names *lua_names_create(const struct lua_image *image); /* NULL: no memory */
void lua_names_destroy(struct lua_names *names);
/* The functions of the stack belong to this global_State. */
void lua_names_see(struct lua_names *names, u64 state);
/* As runtime_ops.name_frame. */
bool lua_name_frame(struct lua_names *names, const struct runtime_process *p, const struct frame *frames, u32 i, u32 n,
        struct frame_name *ret);

#endif
