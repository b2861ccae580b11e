/* SPDX-License-Identifier: Apache-2.0 */
/* Which member of which structure lies so far behind a pointer that code uses at a place, by its debug information. */
#ifndef YRT_POINTED_MEMBER_H
#define YRT_POINTED_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <types.h>

#include "binary/image.h"

/*
 * *text: "field `next` of `struct node`": what lies offset bytes behind the pointer that is in the register reg
 * (DWARF's number; -1: in none) at addr, an address of the file. Variables and parameters that are in scope there, also
 * of what is inlined, are asked for where they are. If none is in reg, all pointers in scope and those that they lead
 * to are looked at, and there must be one such field only, not a first one ("perhaps field `next` of `struct node`").
 * root: as for symbols_debug_file(). False: it is not known.
 */
bool pointed_member(struct image *img, const char *root, u64 addr, int reg, u64 offset, char *text, size_t size);

#endif
