/* SPDX-License-Identifier: Apache-2.0 */
/* Where C's calling convention passes arguments, in their order (System V psABI for AMD64, 3.2.3). */
#ifndef YRT_PASSING_H
#define YRT_PASSING_H

#include <elfutils/libdw.h>

#include "parameters.h"

struct passing {
	bool known;            /* false: of no argument from here on */
	u32 general, floating; /* registers in use */
	u32 stack;             /* the next place there, from the stack pointer at the function's entry */
};

/* The next argument has this type: its registers or its place on the stack go to ret. */
void passing_next(struct passing *passing, Dwarf_Die *type, struct parameter *ret);
/* Before the first: a large result is written to where a hidden argument says. */
void passing_result(struct passing *passing, Dwarf_Die *type);

#endif
