/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a unit by address, and the chain of inlined functions within one. The index of a unit holds only
 * functions; the entries of a function are read when an address in it is looked up.
 *
 * Where ranges overlap, the one with the highest start is used, and among equal ones the last in the file, because a
 * child lies within its parent.
 */
#ifndef YRT_DWARF_FUNCTIONS_H
#define YRT_DWARF_FUNCTIONS_H

#include <types.h>

#include "die.h"
#include "file.h"

#define CHAIN_MAX 256u

/* The entries around addr, innermost first: inlined functions, then the function that they are in. Their number. */
u32 dwarf_chain(struct dwarf_file *f, struct dwarf_unit *unit, u64 addr, struct dwarf_die chain[CHAIN_MAX]);

#endif
