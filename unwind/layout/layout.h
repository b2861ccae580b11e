/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: where the members of a runtime's structures lie in one build of it. Offsets are data with an origin.
 *
 * A runtime declares what it needs as a table of struct layout_field, each with a place in its own `struct
 * <name>_layout`. The table is filled by the first source that can: DWARF of the file or of its separate debug file,
 * the library (data files made from DWARF of real builds), and, by the runtime itself, the process or the code of
 * functions. What fills a member says so: every member keeps its origin, `yrt inspect` prints it.
 */
#ifndef YRT_LAYOUT_H
#define YRT_LAYOUT_H

#include <stddef.h>
#include <stdio.h>
#include <types.h>

#include "error.h"
#include "binary/image.h"

/* A member: its offset, and its size in bytes. size 0: this build has none (or it is not known). */
struct layout_member {
	u16 at, size;
};

/* Names by number: of an enumeration, in the order of its values; "" where a value has none. Owned by the layout. */
struct layout_list {
	const char **names;
	u32 n;
};

/*
 * name: "lua_State.base" (struct, union or typedef, then a path of members: "global_State.gc.total"; members of unnamed
 * structs and unions are their parent's, as in C), "runtime.g:sched.sp" (a type whose own name has dots), "sizeof
 * GCproto" (at and size are the size), or "enum BCOp BC_" (all enumerators with that prefix, which is cut off, by
 * value; those that go on with
 * "_" are counts, and left out).
 * slot: offset of the struct layout_member, or the struct layout_list, in the runtime's layout.
 */
struct layout_field {
	const char *name;
	u16 slot;
	bool list;
	bool optional; /* builds may lack it */
};

/* What a runtime declares. */
struct layout_schema {
	const char *runtime;
	const struct layout_field *fields;
	u32 n;
	u32 size; /* of its struct <name>_layout */
};

/*
 * For the table of fields, in a file that defines LAYOUT as the name of the struct: what a runtime's list of members
 * calls, and the rest of its schema.
 */
#define LAYOUT_MEMBER(slot_, name_)   {.name = name_, .slot = offsetof(struct LAYOUT, slot_)},
#define LAYOUT_OPTIONAL(slot_, name_) {.name = name_, .slot = offsetof(struct LAYOUT, slot_), .optional = true},
#define LAYOUT_LIST(slot_, name_)     {.name = name_, .slot = offsetof(struct LAYOUT, slot_), .list = true},
#define LAYOUT_FIELDS(f)              .fields = (f), .n = sizeof(f) / sizeof(*(f)), .size = sizeof(struct LAYOUT)

enum layout_source { LAYOUT_UNKNOWN, LAYOUT_DWARF, LAYOUT_DEBUG_FILE, LAYOUT_LIBRARY, LAYOUT_CODE, LAYOUT_PROCESS };
#define LAYOUT_SOURCES (LAYOUT_PROCESS + 1)

/* How a field was filled. */
struct layout_fill {
	u8 source;           /* enum layout_source */
	const char *problem; /* of an unknown one, if more is known than that it is not there: static text */
};

struct layout {
	const struct layout_schema *schema;
	void *values;                  /* the runtime's struct <name>_layout */
	struct layout_fill *fills;     /* of each field */
	char *details[LAYOUT_SOURCES]; /* what a source is, for people: a file's path; NULL: nothing to add */
};

/* Nothing filled. */
struct error *layout_create(const struct layout_schema *schema, struct layout **ret);
void layout_destroy(struct layout *l); /* NULL is fine */
struct error *layout_copy(const struct layout *from, struct layout **ret);

struct layout_member *layout_member(const struct layout *l, u32 field);
struct layout_list *layout_list(const struct layout *l, u32 field);

/* Fills a field. A name of a list is copied (NULL: the value has no name). */
void layout_set(struct layout *l, u32 field, struct layout_member value, enum layout_source source);
struct error *layout_set_list(struct layout *l, u32 field, const char *const *names, u32 n, enum layout_source source);
/* Notes what a source is; format as of printf. */
struct error *layout_detail(struct layout *l, enum layout_source source, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* The origin of a field, for people: "DWARF", "library debian-sid.layout"… in buf, cut if need be. */
const char *layout_origin(const struct layout *l, u32 field, char *buf, size_t size);
/* An error that names the fields that are not filled (the first few, and how many); NULL if none but optional ones. */
struct error *layout_complete(const struct layout *l, const char *what);
bool layout_equal_field(const struct layout *a, const struct layout *b, u32 field);
bool layout_equal(const struct layout *a, const struct layout *b);

/* --- inspect: layout_report.c --- */

struct report;
/* Adds a section "layout": a row for each field, with its size and origin. */
void layout_report(const struct layout *l, struct report *out);

/* --- DWARF: layout_dwarf.c --- */

/*
 * Fills members that are unknown so far from the debug information in img, with source as origin. Optional members
 * whose struct exists but which are not in it get size 0. Without debug information nothing is filled. Definitions of
 * one name that disagree, and bit-fields, fill nothing: layout_fill.problem says why.
 */
struct error *layout_from_dwarf(struct image *img, enum layout_source source, struct layout *l);
/* The same from img, or else from its separate debug file (symbols.h; root as there). */
struct error *layout_from_debug(struct image *img, const char *root, struct layout *l);
/*
 * A layout for which img, or img and its debug file, or the cache have everything; *ret is left alone if they do not.
 */
struct error *layout_whole_from_debug(
        const struct layout_schema *schema, struct image *img, const char *root, struct layout **ret);

/* --- data files: layout_file.c --- */

/*
 * A text, a line each; "#" begins a comment:
 *
 *	runtime luajit			before all others
 *	build-id 0a6563c55d87		of a file with this layout; any number of them
 *	version LuaJIT 2.1.0-beta3	as the runtime calls itself; any number of them
 *	lua_State.base 32 8		offset and size; "-" in place of both: this build has none
 *	sizeof GCproto 104
 *	enum BCOp BC_ ISLT - ISLE	"-" for a value without a name
 */
struct layout_file {
	struct layout *layout;
	char *name;       /* for people */
	char **build_ids; /* in hexadecimal, lower case */
	u32 nbuild_ids;
	char **versions;
	u32 nversions;
};

/*
 * text is untrusted. *ret is NULL for a file of another runtime. Errors name the line. A member that the text does not
 * mention is an error, because a file made by an older yrt lacks what a newer one needs.
 */
struct error *layout_parse(
        const struct layout_schema *schema, const char *name, const char *text, size_t size, struct layout_file **ret);
void layout_file_destroy(struct layout_file *file); /* NULL is fine */
bool layout_file_has_build_id(const struct layout_file *file, const struct image *img);
/* Prints the fields of a complete layout as such a file has them, after "runtime". */
void layout_print(const struct layout *l, FILE *out);
/* The same without optional fields of which nothing is known. */
void layout_print_known(const struct layout *l, FILE *out);

/* --- the cache: layout_cache.c --- */

/*
 * What layout_whole_from_debug() found is kept beside the unwind tables (cfi_cache_dir.h), in img->cache_dir: reading
 * debug information takes 16 MB of a Python. Named by the image and what the schema asks for. A file that does
 * not parse is as good as none.
 */
/* *ret is left alone if there is none. Only fails for memory. */
struct error *layout_cache_load(const struct layout_schema *schema, const struct image *img, struct layout **ret);
/* Of a layout that one source gave all of; others are not kept. */
void layout_cache_store(const struct image *img, const struct layout *l);

/* --- the library: layout_library.c --- */

/*
 * All files of a runtime: first those of the directory that YRT_LAYOUTS names (*.layout), so that a user can add a
 * build and can overrule, then those that were built in (runtimes/<name>/layouts/). A file of the directory that does
 * not parse is an error; without such a directory there is none.
 */
struct layout_library {
	struct layout_file **files;
	u32 n;
};

struct error *layout_library_load(const struct layout_schema *schema, struct layout_library *ret);
void layout_library_free(struct layout_library *library);
/*
 * A copy of the layout of the first file that names this version or, if version is NULL, img's build-id; *ret is left
 * alone if there is none. how: what it was found by, as text: "build-id".
 */
struct error *layout_library_find(const struct layout_schema *schema, const struct image *img, const char *version,
        const char *how, struct layout **ret);

/* Made by the build (cmake/layouts.cmake). */
struct layout_embedded {
	const char *runtime, *name, *text;
};
extern const struct layout_embedded layout_embedded[];
extern const u32 layout_embedded_count;

#endif
