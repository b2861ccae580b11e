/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of PUC-Lua in a process's memory, and their objects. A main thread lies right before its global_State
 * (lstate.c: LG), which points back to it. All objects that the collector may free, but strings in 5.1 and 5.2, are in
 * one list: rootgc, later allgc.
 */
#ifndef YRT_LUA_STATES_H
#define YRT_LUA_STATES_H

#include "lua_image.h"
#include "runtime.h"

/* Calls each() for what looks like a main thread and its global_State. */
struct error *lua_states(const struct lua_image *image, const struct runtime_process *p,
        void (*each)(void *ctx, u64 thread, u64 g), void *ctx);

/*
 * Calls add() for each object of a type (tt) in the list of a global_State; 5.1 to 5.4. Of a state that runs some may
 * be missing.
 */
struct error *lua_objects(const struct lua_image *image, const struct runtime_process *p, u64 g, u8 type,
        struct error *(*add)(void *ctx, u64 object), void *ctx);

#endif
