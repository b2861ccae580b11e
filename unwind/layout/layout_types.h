/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of a runtime whose file has no debug information, for `yrt y`: what the runtime says of its structures, with
 * the offsets of the build's layout (layout.h). Each member knows where its offset came from.
 */
#ifndef YRT_LAYOUT_TYPES_H
#define YRT_LAYOUT_TYPES_H

#include "dwarf/types.h"
#include "layout.h"

enum layout_type_kind { LAYOUT_END, LAYOUT_STRUCT, LAYOUT_UNION, LAYOUT_TYPEDEF };

#define LAYOUT_PART "?" /* a size */

/*
 * A structure, in the order in which they contain each other; the last one has kind LAYOUT_END.
 *
 *	text: "u8 gct; MRef array; TValue *base; u32 pad[2]; @8 void *allocd; @string_table GCRef *tab"
 *
 * A member lies where the layout has a field "NAME.member"; else behind "@" is its offset, a number or the name of a
 * place; a place that the build does not have leaves the member out ("@layout" names none: only the layout has it). All
 * others lie where C puts them. Numbers are u8, s8 … u64, s64, char and double. Of a typedef text is a type. size:
 * the name of a place; NULL: "sizeof NAME" of the layout, or what C makes of the members; LAYOUT_PART: unknown, these
 * are not all of it.
 */
struct layout_type {
	enum layout_type_kind kind;
	const char *name, *text, *size;
};

/* Of a place the number; negative: this build has none. values: the runtime's struct <name>_layout. */
typedef s64 layout_place(const void *values, const char *name);

struct layout_types;

/* place may be NULL. The result refers to types, which live as long as it. */
struct error *layout_types_make(
        const struct layout_type *types, const struct layout *l, layout_place *place, struct layout_types **ret);
void layout_types_free(struct layout_types *t); /* NULL is fine */
/* A structure or union by its tag or alone, a typedef alone. NULL: none of this name. */
const struct type *layout_types_find(const struct layout_types *t, enum type_space space, const char *name);
/* Is it one of those, whether or not a build has all of it? */
bool layout_types_name(const struct layout_type *types, const char *name);

#endif
