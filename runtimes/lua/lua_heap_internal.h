/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read Lua's objects share. */
#ifndef YRT_LUA_HEAP_INTERNAL_H
#define YRT_LUA_HEAP_INTERNAL_H

#include <string.h>

#include "lua_heap.h"

#define HEAD_TT       8 /* CommonHeader: next, tt, marked */
#define TYPE_BITS     0x0f
#define VARIANT_BITS  0x3f
#define COLLECTABLE   0x40 /* from 5.2 on, in the tag of a value */
#define VALUE         16   /* sizeof(TValue) */
#define LIGHT_C       22   /* 5.2 on: a C function that is no object */
#define STATES_MAX    256
#define THREAD_TOP    16 /* lua_State.top, 5.1 to 5.4 */
#define STRING_HEAD   24
#define STRING_LENGTH 16

enum lua_type { /* lua.h */
	LUA_STRING = 4,
	LUA_TABLE,
	LUA_FUNCTION,
	LUA_USERDATA,
	LUA_THREAD,
	LUA_PROTO,   /* 9 until 5.3, 10 in 5.4 */
	LUA_UPVALUE, /* 10; 9 in 5.4; no object in 5.3 */
	LUA_TYPES,
};

/* Places in objects, by version. */
struct lua_objects {
	u8 table, lsizenode, table_size, metatable, array, node; /* table_size: of the array part */
	u8 node_size, key, key_tag;
	u8 closure_upvalues, nups, env; /* env 0: none */
	u8 upvalue, upvalue_v;
	u8 userdata, userdata_metatable, userdata_len, userdata_value;
};

struct lua_heap_state {
	u64 thread, g, registry, loaded, globals;
	char name[32];
};

struct lua_heap {
	struct heap *h;
	const struct runtime_process *p;
	const struct lua_image *image;
	const struct lua_layout *layout;
	struct lua_names *names;
	struct lua_objects at;
	u32 version;
	struct lua_heap_state states[STATES_MAX];
	u32 nstates;
	u32 types[LUA_TYPES];
	u8 block[1024 * 40];
};

struct lua_table {
	u64 addr, array, metatable, node;
	u32 asize, nodes;
};

struct lua_value {
	u64 addr;
	u32 type; /* enum lua_type */
	bool object;
};

static inline u64 lua_word_at(const u8 *bytes)
{
	u64 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static inline u32 lua_u32_at(const u8 *bytes)
{
	u32 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* A value from its 8 bytes and its tag. */
static inline struct lua_value lua_value_of(const struct lua_heap *r, u64 value, u32 tag)
{
	u32 type = tag & TYPE_BITS;
	bool object = r->version == 501 ? type >= LUA_STRING && type <= LUA_THREAD : (tag & COLLECTABLE) != 0;

	return (struct lua_value){value, type, object && value};
}

/* enum lua_type of an object's tt. */
static inline u32 lua_object_type(const struct lua_heap *r, u8 tt)
{
	u32 type = tt & TYPE_BITS;

	if (r->version == 504)
		return type == 9 ? LUA_UPVALUE : type == 10 ? LUA_PROTO : type;
	return type == 9 ? LUA_PROTO : type == 10 ? LUA_UPVALUE : type;
}

bool lua_heap_string(struct lua_heap *r, u64 addr, char *ret, size_t size, u32 *len);
bool lua_heap_table(struct lua_heap *r, u64 addr, struct lua_table *ret);
bool lua_heap_each(struct lua_heap *r, const struct lua_table *t,
        bool (*each)(struct lua_heap *r, struct lua_value key, struct lua_value value, void *ctx), void *ctx);
struct lua_value lua_heap_field(struct lua_heap *r, const struct lua_table *t, const char *name);

#endif
