/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function's variables and parameters at a place in its code, by the scopes and locations of debug information. What
 * locations say holds before the instruction at the place runs. All of it is untrusted: libdw bounds what it reads, and
 * only the forms below are taken.
 *
 * Facts: DWARF 5, 2.6 (locations), 3.3.5 (frame bases), 6.4 (the frame's address, CFA).
 */
#ifndef YRT_TYPES_LOCAL_H
#define YRT_TYPES_LOCAL_H

#include "dwarf/types.h"

enum type_where {
	WHERE_UNKNOWN,  /* nothing in scope has this name */
	WHERE_NOWHERE,  /* the compiler keeps it nowhere at this place */
	WHERE_OTHER,    /* in pieces, in a register of numbers with a point, or by a longer computation */
	WHERE_REGISTER, /* its value is in reg */
	WHERE_SUM,      /* its value is reg + offset */
	WHERE_MEMORY,   /* it lies at reg + offset */
	WHERE_ADDRESS,  /* it lies at offset, an address of the file */
	WHERE_VALUE,    /* its value is offset, always */
};

struct type_local {
	const struct type *type;
	u8 reg; /* DWARF's number of a general register */
	s64 offset;
};

/* code: the file that has the rules for unwinding: the program itself, where t is of its separate debug file. */
enum type_where types_local(struct types *t, struct image *code, u64 addr, const char *name, struct type_local *ret);
/* Calls each() with the names of all that are in scope. */
void types_locals(struct types *t, u64 addr, void (*each)(void *ctx, const char *name), void *ctx);
/* Is addr the first instruction of a function? Frames are not made there yet. */
bool types_is_entry(struct types *t, u64 addr);

#endif
