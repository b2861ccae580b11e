/* SPDX-License-Identifier: Apache-2.0 */
/* What types.c (the index) and types_read.c (each type) share. */
#ifndef YRT_DWARF_TYPES_READ_H
#define YRT_DWARF_TYPES_READ_H

#include <elfutils/libdw.h>

#include "table.h"
#include "dwarf/types.h"

struct types_entry {
	const char *name;
	u64 die, parent, size;
	enum type_space space;
	bool alternate, defined, several;
};

struct types {
	struct image *image;
	Elf *elf; /* of its own: libelf keeps what it has unpacked */
	Dwarf *dwarf, *alternate;
	u64 visits; /* of entries: what is left, as links may lead in circles */
	bool indexed, failed, cpp;
	struct types_entry *entries;
	u32 nentries;
	struct table names;   /* hash of space and name: index of entries */
	struct table statics; /* C++: offset of a class's variable where it is declared: index of entries */
	struct table read;    /* offset of an entry: struct type * */
	struct table members; /* struct type *: struct type_list * */
	struct types_chunk *chunks;
	u32 depth; /* of types being read in each other */
};

const struct types_entry *types_lookup(struct types *t, enum type_space space, const char *name);
const char *types_keep(struct types *t, const char *text);
void types_forget(struct types *t);
bool types_die(struct types *t, u64 offset, bool alternate, Dwarf_Die *ret);
/* The type that an entry is; NULL: nothing usable. */
const struct type *type_of_die(struct types *t, Dwarf_Die *die);
/* The type of what an entry is (DW_AT_type); void if there is none. */
const struct type *type_referred(struct types *t, Dwarf_Die *die);
bool enumerator_value(Dwarf_Die *die, bool is_signed, s64 *ret);

#endif
