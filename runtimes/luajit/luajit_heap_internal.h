/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read LuaJIT's objects share. */
#ifndef YRT_LUAJIT_HEAP_INTERNAL_H
#define YRT_LUAJIT_HEAP_INTERNAL_H

#include <string.h>

#include "luajit_heap.h"
#include "luajit_vms.h"

/* The complement of a value's type, and an object's gct (lj_obj.h: LJ_TSTR …). */
enum luajit_gct {
	GCT_STRING = 4,
	GCT_UPVALUE,
	GCT_THREAD,
	GCT_PROTO,
	GCT_FUNCTION,
	GCT_TRACE,
	GCT_CDATA,
	GCT_TABLE,
	GCT_USERDATA,
	GCT_TYPES,
};

#define NODE_SIZE 24 /* struct Node: value, key, next */

/* Sizes and places in objects that the layout does not have, by the size of references. */
struct luajit_objects {
	u8 ref;       /* 4, 8 */
	u8 slots;     /* of a frame below its base: function and link (LJ_FR2) */
	u8 table;     /* sizeof(GCtab) */
	u8 colocated; /* GCtab: s8, slots of the array that lie behind the table; negative: the array moved away */
	u8 array, metatable, node, asize, hmask;
	u8 upvalue, closed, tv, v;              /* sizeof(GCupval) */
	u8 userdata, env, len;                  /* sizeof(GCudata); metatable as in GCtab */
	u8 cdata, ctype;                        /* sizeof(GCcdata) */
	u8 function_upvalues, c_upvalues, nups; /* GCfuncL.uvptr, GCfuncC.upvalue */
};

struct luajit_heap_vm {
	u64 g, registry, loaded, globals, main_thread;
	u64 ctypes; /* CTState; 0: no FFI */
	u32 own_root, strings_root;
	char name[32];
};

struct luajit_heap {
	struct heap *h;
	const struct runtime_process *p;
	const struct luajit_image *image;
	struct luajit_names *names;
	const struct luajit_layout *layout;
	struct luajit_objects at;
	struct luajit_heap_vm *vms;
	u32 nvms;
	u32 types[GCT_TYPES];
	u8 block[2048 * NODE_SIZE];
};

struct luajit_table {
	u64 array, metatable, node;
	u32 asize, nodes; /* nodes 0: no hash part */
	s8 colocated;
};

static inline u64 luajit_ref_at(const struct luajit_heap *r, const u8 *bytes)
{
	u64 ref = 0;

	memcpy(&ref, bytes, r->at.ref);
	return ref;
}

static inline u64 luajit_word_at(const u8 *bytes)
{
	u64 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static inline u32 luajit_u32_at(const u8 *bytes)
{
	u32 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The type of a value, complemented: GCT_STRING to GCT_USERDATA are objects, whose address *ret is. */
static inline u32 luajit_value(const struct luajit_heap *r, u64 value, u64 *ret)
{
	s64 tag = r->at.ref == 8 ? (s64)value >> 47 : (s64)(s32)(value >> 32);

	*ret = r->at.ref == 8 ? value & ((1ull << 47) - 1) : (u32)value;
	return tag < 0 && tag >= -(s64)GCT_TYPES ? (u32)~tag : ~0u;
}

static inline bool luajit_is_object(u32 type)
{
	return type >= GCT_STRING && type < GCT_TYPES;
}

/* Sets where members of objects are, by the size of references. */
void luajit_heap_shape(struct luajit_heap *r);
/* Bytes of a string of this length. */
u64 luajit_heap_string_size(const struct luajit_heap *r, u64 len);
/* The string at addr, cut and terminated; len: its whole length. False: there is none. */
bool luajit_heap_string(struct luajit_heap *r, u64 addr, char *ret, size_t size, u32 *len);
bool luajit_heap_table(struct luajit_heap *r, u64 addr, struct luajit_table *ret);
/* Calls each() with value and key of each entry of the hash part that is not nil, until it returns false. */
bool luajit_heap_each(struct luajit_heap *r, const struct luajit_table *t,
        bool (*each)(struct luajit_heap *r, u64 key, u64 value, void *ctx), void *ctx);
/* The value of a string key in the hash part; 0, which is no object: none. */
u64 luajit_heap_field(struct luajit_heap *r, const struct luajit_table *t, const char *name);

#endif
