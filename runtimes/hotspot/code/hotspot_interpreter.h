/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of the template interpreter where no frame of a method stands at rbp: before an entry has made it, and
 * after `leave`.
 */
#ifndef YRT_HOTSPOT_INTERPRETER_H
#define YRT_HOTSPOT_INTERPRETER_H

#include "hotspot_stubs.h"

struct interpreter_piece {
	u64 start, end;
	u8 part; /* HOTSPOT_ENTRY: the method is in rbx. HOTSPOT_STUBS */
	struct cfi_entry *entries;
	u32 nentries;
};

/* [start, end): the interpreter's code. *ret is malloc'ed, and the entries of each piece. */
struct error *hotspot_interpreter_pieces(
        const struct vmstructs *v, struct memory *m, u64 start, u64 end, struct interpreter_piece **ret, u32 *n);

#endif
