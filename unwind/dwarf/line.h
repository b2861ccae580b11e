/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line tables (.debug_line, versions 2 to 5; DWARF 5, section 6.2). A table is decoded as a whole when an address in it
 * is looked up, and dropped later to make room for others.
 */
#ifndef YRT_DWARF_LINE_H
#define YRT_DWARF_LINE_H

#include <types.h>

#include "file.h"

struct line_row {
	u64 addr : 48;
	u64 column : 16;
	u32 line, file;
};

struct line_sequence { /* rows of consecutive addresses */
	u64 low, high;
	u32 first, n;
};

struct line_entry {              /* a directory or a file */
	struct dwarf_value name; /* of form DW_FORM_string: an offset into .debug_line */
	u64 dir;
};

struct line_table {
	u64 offset, used;
	u16 version;
	u8 addr_size, offset_size;
	struct line_entry *dirs, *files;
	u32 ndirs, dirs_room, nfiles, files_room;
	struct line_row *rows;
	u32 nrows, rows_room;
	struct line_sequence *sequences; /* sorted by high */
	u32 nsequences, sequences_room;
	const char **paths; /* of files, made on demand by who uses the table; the strings are theirs */
};

/* The unit's table; NULL: it has none, or none that can be read. Valid until tables of other units are asked for. */
struct line_table *line_table_of(struct dwarf_file *f, struct dwarf_unit *unit);
void line_table_destroy(struct line_table *t);
/* The row that covers addr; NULL: none. */
const struct line_row *line_find(const struct line_table *t, u64 addr);
/* "directory/file" from the root as far as that is known; malloc'd, NULL: no such file, or no memory. */
char *line_path(struct dwarf_file *f, const struct dwarf_unit *unit, const struct line_table *t, u64 file);

#endif
