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

#endif
