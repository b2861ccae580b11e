/* SPDX-License-Identifier: Apache-2.0 */
/* A function's prototype, read from the target: where it is defined, its lines, its bytecode. */
#ifndef YRT_LUA_PROTO_H
#define YRT_LUA_PROTO_H

#include "lua_image.h"
#include "binary/memory.h"

#define LUA_SOURCE_MAX 512
#define LUA_NAME_MAX   256
#define LUA_CODE_MAX   (1u << 20) /* instructions */

struct lua_proto {
	struct lua_proto *next; /* of a cache's bucket */
	u64 addr;
	u32 cookie; /* lua_cookie() */
	u32 version;
	u32 sizecode, sizek, sizelocvars, sizeupvalues;
	u32 linedefined, lastlinedefined;
	u32 parameters; /* by name, with self */
	bool vararg;
	u64 k, locvars, upvalues, text; /* text: TString of the source */
	char source[LUA_SOURCE_MAX];    /* cut */
	char *definition;               /* what the source calls it, "" if it gives no name; NULL: not looked up yet */
	s32 *lines;                     /* of each instruction; NULL: stripped */
	u32 code[];
};

/* NULL: unreadable, not a prototype, or no memory. */
struct lua_proto *lua_proto_read(const struct lua_image *image, struct memory *mem, u64 addr);
/* lua_cookie() of what stands there now. False: unreadable, or no prototype. */
bool lua_proto_cookie(const struct lua_image *image, struct memory *mem, u64 addr, u32 *ret);
void lua_proto_free(struct lua_proto *p); /* NULL is fine */

/* The text of a TString, cut to fit and terminated; false: unreadable, or no string is there any more. */
bool lua_string_read(u32 version, struct memory *mem, u64 addr, char *ret, size_t size);
/* A constant that is a string. */
bool lua_constant_string(const struct lua_proto *p, struct memory *mem, u32 index, char *ret, size_t size);

/*
 * What the function that is called, or the metamethod that is run, at pos is called there, as luaG's getfuncname()
 * finds it
 * ("find", "__index"). False: nothing says. lua_bytecode.c.
 */
bool lua_proto_callee(const struct lua_proto *p, struct memory *mem, u32 pos, char ret[LUA_NAME_MAX]);

/*
 * What the definition calls the function that is number `index` of those that p makes: the variable or the field that
 * it is stored in, as "f" or "t.f". False: nothing says. lua_bytecode.c.
 */
bool lua_proto_defines(const struct lua_proto *p, struct memory *mem, u32 index, char ret[LUA_NAME_MAX]);

/*
 * Where calls of the function begin and end, as positions in its code. False: its first statement is a loop, whose
 * turns are not told from calls. lua_bytecode.c.
 */
#define LUA_EXITS_MAX 64
struct lua_entry {
	u32 begin;
	u32 nexits;               /* of all, also of those that exit[] has no room for */
	u32 exit[LUA_EXITS_MAX];  /* instructions that return */
	bool tail[LUA_EXITS_MAX]; /* or give the frame to another function */
};
bool lua_proto_entry(const struct lua_proto *p, struct lua_entry *ret);

#endif
