/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read line tables share. */
#ifndef YRT_DWARF_LINE_READ_H
#define YRT_DWARF_LINE_READ_H

#include "line.h"

struct line_header {
	u8 min_length, opcode_base, line_range;
	u32 per_range; /* n * per_range >> 16 is n / line_range of each byte n */
	s8 line_base;
	u8 lengths[256];  /* operands of standard opcodes */
	u64 program, end; /* offsets from the start of the table */
};

/* line_header.c. bytes: the table's, size: with its length field. */
bool line_header_read(struct line_table *t, const u8 *bytes, u64 size, struct line_header *ret);
/* The size of the table at offset, from its length field; 0: none there. */
u64 line_table_size(struct dwarf_file *f, u64 offset, u8 *ret_offset_size);
/* One more in a growing array of at most max; NULL: no more. */
void *line_add(void *array, u32 *n, u32 *room, u32 max, size_t size);

#endif
