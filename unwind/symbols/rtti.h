/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ classes of functions that have no symbol, by run-time type information. A virtual table has the offset to the top
 * of the object, the class's type_info, and then the class's virtual functions; the type_info names the class (Itanium
 * C++ ABI, 2.5.2 and 2.9.4; libstdc++ and libc++ alike). Stripping keeps all of that.
 */
#ifndef YRT_RTTI_H
#define YRT_RTTI_H

#include <types.h>

#include "error.h"
#include "binary/image.h"

struct rtti;

/*
 * All virtual tables of a file: those in .data.rel.ro and .rodata, as they are after relocation. Never fails but for
 * memory; a file without any, or a corrupt one, gives an empty result. It keeps nothing of img, which may be closed.
 * Some 30 ms for a program of 100 MB.
 */
struct error *rtti_create(struct image *img, struct rtti **ret);
void rtti_destroy(struct rtti *r); /* NULL is fine */
/* The same as img->rtti, unless that is there. */
struct error *rtti_load(struct image *img);
/* from's becomes to's, unless that has one. */
void rtti_move(struct image *to, struct image *from);

struct rtti_function {
	const char *type; /* the class's mangled name, as "N5Envoy4HttpE"; owned by the rtti */
	u32 index;        /* in the virtual table: two are destructors, where there are any */
};

/*
 * Does a virtual function start at this address (of the file)? If several classes have it, the one nearest to the root
 * of their inheritance is returned: that is the class that defined the function, unless the compiler needed no table of
 * that class.
 */
bool rtti_find(const struct rtti *r, u64 function, struct rtti_function *ret);

#endif
