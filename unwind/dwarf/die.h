/* SPDX-License-Identifier: Apache-2.0 */
/* Entries (DIEs) of a unit: iteration, and the attributes that are used here. */
#ifndef YRT_DWARF_DIE_H
#define YRT_DWARF_DIE_H

#include <types.h>

#include "abbrev.h"
#include "file.h"

struct dwarf_die {
	u64 offset;
	u16 tag;
	struct dwarf_value name, linkage_name;
	struct dwarf_value low, high, ranges;
	struct dwarf_value origin, specification; /* references */
	struct dwarf_value decl_line, call_file, call_line, call_column;
	struct dwarf_value comp_dir, line, producer, str_offsets_base, addr_base, rnglists_base; /* of a root */
};

/*
 * Iterates in file order. bytes and abbrevs must stay valid, so no other part of the file's units may be read
 * meanwhile.
 */
struct die_walk {
	const struct dwarf_unit *unit;
	const struct abbrevs *abbrevs;
	const u8 *bytes; /* of the unit */
	struct dwarf_cursor c;
	u32 depth; /* of what comes next */
};

struct die_head {
	const struct abbrev *abbrev; /* NULL: the end of a list of children */
	u64 offset;
	u64 sibling; /* 0: unknown */
	u32 depth;
};

/* From offset on, which is in the unit. False: the unit cannot be read. */
bool die_walk_start(struct die_walk *w, struct dwarf_file *f, const struct dwarf_unit *unit, u64 offset);
/* False: the end of the unit, or something there that cannot be read. */
bool die_walk_next(struct die_walk *w, struct die_head *ret);
/* Skips the children of head, if it says where its next sibling is. */
bool die_walk_skip(struct die_walk *w, const struct die_head *head);
/* What is said of the DIE at offset of the walk's unit. */
bool die_read(const struct die_walk *w, u64 offset, struct dwarf_die *ret);

/* Follows a reference: the file (f or its alternate), unit and offset of what it means. */
bool die_follow(struct dwarf_file **f, struct dwarf_unit **unit, const struct dwarf_value *ref, u64 *offset);
/* Reads the unit's root once: its bases and its line table's place. */
bool dwarf_unit_root(struct dwarf_file *f, struct dwarf_unit *unit);

#endif
