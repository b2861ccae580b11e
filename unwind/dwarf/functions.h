/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a unit by address, and within one the chain of inlined functions. The index of a unit holds only
 * functions; the entries of one function are read when an address in it is asked for.
 *
 * Where ranges overlap, the one that starts last holds, and of those the last in the file: a child lies within its
 * parent.
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
