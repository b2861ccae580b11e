/* SPDX-License-Identifier: Apache-2.0 */
/* How values lie in debug information, by form (DWARF 5, section 7.5.6; the GNU forms as in elfutils 0.188's dwarf.h).
 */
#ifndef YRT_DWARF_FORM_H
#define YRT_DWARF_FORM_H

#include <dwarf.h>
#include <types.h>

#include "cursor.h"

enum form_op {
	FORM_UNKNOWN,
	FORM_FIXED, /* n bytes */
	FORM_LEB,
	FORM_STRING,
	FORM_BLOCK, /* a length of n bytes, then as many bytes */
	FORM_EXPR,  /* the same with a LEB128 as length */
	FORM_INDIRECT,
};

/* What n of FORM_FIXED may be besides a number of bytes. */
#define FORM_ADDR     0xfd
#define FORM_OFFSET   0xfe
#define FORM_REF_ADDR 0xff /* an address in version 2, then an offset */

struct form_shape {
	u8 op, n;
};

struct form_sizes {
	u8 addr, offset;
	u16 version;
};

static inline struct form_shape form_shape(u64 form)
{
	static const struct form_shape shapes[] = {
	        [DW_FORM_addr] = {FORM_FIXED, FORM_ADDR},
	        [DW_FORM_block2] = {FORM_BLOCK, 2},
	        [DW_FORM_block4] = {FORM_BLOCK, 4},
	        [DW_FORM_data2] = {FORM_FIXED, 2},
	        [DW_FORM_data4] = {FORM_FIXED, 4},
	        [DW_FORM_data8] = {FORM_FIXED, 8},
	        [DW_FORM_string] = {FORM_STRING, 0},
	        [DW_FORM_block] = {FORM_EXPR, 0},
	        [DW_FORM_block1] = {FORM_BLOCK, 1},
	        [DW_FORM_data1] = {FORM_FIXED, 1},
	        [DW_FORM_flag] = {FORM_FIXED, 1},
	        [DW_FORM_sdata] = {FORM_LEB, 0},
	        [DW_FORM_strp] = {FORM_FIXED, FORM_OFFSET},
	        [DW_FORM_udata] = {FORM_LEB, 0},
	        [DW_FORM_ref_addr] = {FORM_FIXED, FORM_REF_ADDR},
	        [DW_FORM_ref1] = {FORM_FIXED, 1},
	        [DW_FORM_ref2] = {FORM_FIXED, 2},
	        [DW_FORM_ref4] = {FORM_FIXED, 4},
	        [DW_FORM_ref8] = {FORM_FIXED, 8},
	        [DW_FORM_ref_udata] = {FORM_LEB, 0},
	        [DW_FORM_indirect] = {FORM_INDIRECT, 0},
	        [DW_FORM_sec_offset] = {FORM_FIXED, FORM_OFFSET},
	        [DW_FORM_exprloc] = {FORM_EXPR, 0},
	        [DW_FORM_flag_present] = {FORM_FIXED, 0},
	        [DW_FORM_strx] = {FORM_LEB, 0},
	        [DW_FORM_addrx] = {FORM_LEB, 0},
	        [DW_FORM_ref_sup4] = {FORM_FIXED, 4},
	        [DW_FORM_strp_sup] = {FORM_FIXED, FORM_OFFSET},
	        [DW_FORM_data16] = {FORM_FIXED, 16},
	        [DW_FORM_line_strp] = {FORM_FIXED, FORM_OFFSET},
	        [DW_FORM_ref_sig8] = {FORM_FIXED, 8},
	        [DW_FORM_implicit_const] = {FORM_FIXED, 0},
	        [DW_FORM_loclistx] = {FORM_LEB, 0},
	        [DW_FORM_rnglistx] = {FORM_LEB, 0},
	        [DW_FORM_ref_sup8] = {FORM_FIXED, 8},
	        [DW_FORM_strx1] = {FORM_FIXED, 1},
	        [DW_FORM_strx2] = {FORM_FIXED, 2},
	        [DW_FORM_strx3] = {FORM_FIXED, 3},
	        [DW_FORM_strx4] = {FORM_FIXED, 4},
	        [DW_FORM_addrx1] = {FORM_FIXED, 1},
	        [DW_FORM_addrx2] = {FORM_FIXED, 2},
	        [DW_FORM_addrx3] = {FORM_FIXED, 3},
	        [DW_FORM_addrx4] = {FORM_FIXED, 4},
	};

	if (form < sizeof(shapes) / sizeof(*shapes))
		return shapes[form];
	if (form == DW_FORM_GNU_addr_index || form == DW_FORM_GNU_str_index)
		return (struct form_shape){FORM_LEB, 0};
	if (form == DW_FORM_GNU_ref_alt || form == DW_FORM_GNU_strp_alt)
		return (struct form_shape){FORM_FIXED, FORM_OFFSET};
	return (struct form_shape){FORM_UNKNOWN, 0};
}

/* The bytes of a FORM_FIXED, or of the length of a FORM_BLOCK. */
static inline u32 form_bytes(struct form_shape shape, struct form_sizes sizes)
{
	switch (shape.n) {
	case FORM_ADDR:
		return sizes.addr;
	case FORM_OFFSET:
		return sizes.offset;
	case FORM_REF_ADDR:
		return sizes.version <= 2 ? sizes.addr : sizes.offset;
	default:
		return shape.n;
	}
}

/* A number, or 0 for what is skipped: blocks, strings and data of more than 8 bytes. Not for FORM_INDIRECT. */
static inline u64 form_read(struct dwarf_cursor *c, u32 form, struct form_shape shape, struct form_sizes sizes)
{
	u32 n = form_bytes(shape, sizes);

	switch (shape.op) {
	case FORM_FIXED:
		if (n <= 8)
			return cursor_fixed(c, n);
		cursor_skip(c, n);
		return 0;
	case FORM_LEB:
		return form == DW_FORM_sdata ? (u64)cursor_sleb(c) : cursor_uleb(c);
	case FORM_STRING:
		cursor_skip_string(c);
		return 0;
	case FORM_BLOCK:
		cursor_skip(c, cursor_fixed(c, n));
		return 0;
	case FORM_EXPR:
		cursor_skip(c, cursor_uleb(c));
		return 0;
	default:
		return 0;
	}
}

#endif
