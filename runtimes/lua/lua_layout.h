/* SPDX-License-Identifier: Apache-2.0 */
/* What yrt must know about a build of Lua; names are those of its sources (lstate.h, lobject.h). */
#ifndef YRT_LUA_LAYOUT_H
#define YRT_LUA_LAYOUT_H

#include "layout/layout.h"

#define LUA_MEMBERS(M, OPTIONAL)                                                                                       \
	M(l_tt, "lua_State.tt")                                                                                        \
	M(l_ci, "lua_State.ci")                                                                                        \
	M(l_stack, "lua_State.stack")                                                                                  \
	M(l_stack_last, "lua_State.stack_last")                                                                        \
	M(l_base_ci, "lua_State.base_ci")                                                                              \
	OPTIONAL(l_savedpc, "lua_State.savedpc") /* 5.1 */                                                             \
	M(ci_size, "sizeof CallInfo")                                                                                  \
	M(ci_func, "CallInfo.func")                                                                                    \
	OPTIONAL(ci_base, "CallInfo.base") /* 5.1 */                                                                   \
	OPTIONAL(ci_top, "CallInfo.top")                                                                               \
	OPTIONAL(ci_previous, "CallInfo.previous")     /* 5.2 on */                                                    \
	OPTIONAL(ci_savedpc, "CallInfo.savedpc")       /* 5.1 */                                                       \
	OPTIONAL(ci_l_savedpc, "CallInfo.u.l.savedpc") /* 5.2 on */                                                    \
	OPTIONAL(ci_status, "CallInfo.callstatus")     /* 5.2 on */                                                    \
	M(cl_p, "LClosure.p")                                                                                          \
	M(cl_f, "CClosure.f")                                                                                          \
	OPTIONAL(cl_is_c, "CClosure.isC") /* 5.1 */                                                                    \
	M(p_k, "Proto.k")                                                                                              \
	M(p_sizek, "Proto.sizek")                                                                                      \
	M(p_code, "Proto.code")                                                                                        \
	M(p_sizecode, "Proto.sizecode")                                                                                \
	M(p_lineinfo, "Proto.lineinfo")                                                                                \
	M(p_sizelineinfo, "Proto.sizelineinfo")                                                                        \
	OPTIONAL(p_abslineinfo, "Proto.abslineinfo")         /* 5.4 on */                                              \
	OPTIONAL(p_sizeabslineinfo, "Proto.sizeabslineinfo") /* 5.4 on */                                              \
	M(p_locvars, "Proto.locvars")                                                                                  \
	M(p_sizelocvars, "Proto.sizelocvars")                                                                          \
	M(p_upvalues, "Proto.upvalues")                                                                                \
	M(p_sizeupvalues, "Proto.sizeupvalues")                                                                        \
	M(p_linedefined, "Proto.linedefined")                                                                          \
	M(p_lastlinedefined, "Proto.lastlinedefined")                                                                  \
	OPTIONAL(p_maxstacksize, "Proto.maxstacksize")                                                                 \
	M(p_source, "Proto.source")                                                                                    \
	OPTIONAL(l_g, "lua_State.l_G") /* these for names of functions in tables (lua_globals.h) */                    \
	OPTIONAL(g_registry, "global_State.l_registry")                                                                \
	OPTIONAL(t_lsizenode, "Table.lsizenode")                                                                       \
	OPTIONAL(t_node, "Table.node")                                                                                 \
	OPTIONAL(p_p, "Proto.p")                                                                                       \
	OPTIONAL(p_sizep, "Proto.sizep")

struct lua_layout {
#define M(slot, name) struct layout_member slot;
	LUA_MEMBERS(M, M)
#undef M
};

extern const struct layout_schema lua_layout_schema;

/*
 * The layout of a file that holds Lua, of the first that has it: its debug information, its separate debug file, the
 * library by build-id, the library by release ("Lua 5.4.6", else "Lua 5.4"). The library's are those of 64-bit builds
 * with the usual luaconf.h; other ones are found out on the process. An error says what is missing.
 */
struct error *lua_layout_find(struct image *img, const char *release, struct layout **ret);

#endif
