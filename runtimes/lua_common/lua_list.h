/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all objects that a collector of Lua may free: each object begins with the address of the next one. */
#ifndef YRT_LUA_LIST_H
#define YRT_LUA_LIST_H

#include <types.h>

#include "error.h"
#include "binary/memory.h"

struct lua_list {
	u64 root;       /* where the address of the first object is */
	u64 end;        /* the object that the list ends at; 0: it ends in NULL */
	u32 word;       /* bytes of an address: 8 or 4 */
	u32 type_at;    /* of an object: its type, a byte. The one before has the collector's marks */
	u8 type;        /* of the objects that are looked for */
	u8 first, last; /* the types that there are: what has another one is no object, and the list is torn there */
	u8 dead;        /* marks of objects that the collector has found dead */
	u64 current;    /* where the marks are, a byte, that are not dead at the time; 0: all objects count */
};

/*
 * Their addresses, sorted. A list that changes is read again, up to 16 times, and what any reading has found counts:
 * *all is false if none came to the end; objects may then be missing. ret: for free().
 */
struct error *lua_list_read(const struct lua_list *l, struct memory *memory, u64 **ret, u32 *n, bool *all);

#endif
