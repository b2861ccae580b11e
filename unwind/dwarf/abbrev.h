/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abbreviations in compiled form: skipping a DIE takes a step for each part whose length is not fixed. Most DIEs have
 * none or one of these besides the fixed part.
 */
#ifndef YRT_DWARF_ABBREV_H
#define YRT_DWARF_ABBREV_H

#include <types.h>

#include "file.h"
#include "form.h"

/* Besides enum form_op: n bytes, or a LEB128 if n is 0, give the offset of the next sibling in the unit. */
#define STEP_SIBLING 0xff

struct abbrev_step {
	u32 op; /* enum form_op, or STEP_SIBLING */
	u32 n;
};

struct abbrev_attr {
	u16 name, form;
	s64 constant; /* of DW_FORM_implicit_const */
};

struct abbrev {
	u64 code;
	u32 attr, nattrs;
	u32 step, nsteps;
	u16 tag;
	bool children;
	bool has_code; /* DW_AT_low_pc or DW_AT_ranges */
	bool has_sibling;
};

struct abbrevs { /* with its arrays in one block */
	u64 offset, used;
	struct form_sizes sizes;
	bool dense; /* codes are 1, 2, 3 … */
	struct abbrev *list;
	struct abbrev_attr *attrs;
	struct abbrev_step *steps;
	u32 n, nattrs, nsteps;
};

/* A unit's abbreviations, kept by f until others push them out; NULL: no memory, or none there. */
const struct abbrevs *abbrevs_of(struct dwarf_file *f, const struct dwarf_unit *unit);
void abbrev_maker_destroy(struct abbrev_maker *m);
const struct abbrev *abbrev_search(const struct abbrevs *a, u64 code);

static inline const struct abbrev *abbrev_find(const struct abbrevs *a, u64 code)
{
	return a->dense ? (code - 1 < a->n ? &a->list[code - 1] : NULL) : abbrev_search(a, code);
}

#endif
