/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of a call as its first instruction is read (unwind/shared/value.h): behind the function on the stack,
 * up to 5.3 at the call's base, where "..." lies in between. What was not given is nil. Values are as in lobject.h of
 * 5.1 to 5.4 with the usual luaconf.h.
 */
#ifndef YRT_LUA_VALUES_H
#define YRT_LUA_VALUES_H

#include "lua_proto.h"
#include "runtime_calls.h"

/* Fills what is known of the arguments of a function; its place is there. */
void lua_places(const struct lua_image *image, struct memory *mem, const struct lua_proto *p, struct runtime_callee *c);
/* Writes nil, true, 1, 0.1, "text", or <table> and the like. */
void lua_value(const struct lua_image *image, const struct runtime_value *v, FILE *out);

#endif
