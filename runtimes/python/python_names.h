/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Python frames: from the code object, read once as long as its cookie is the same. */
#ifndef YRT_PYTHON_NAMES_H
#define YRT_PYTHON_NAMES_H

#include "python_layout.h"
#include "runtime.h"

struct python_names;

struct python_names *python_names_create(const struct python_layout *l, u64 code_type); /* NULL: out of memory */
void python_names_destroy(struct python_names *names);                                  /* NULL is fine */
/* False: the code object is not there any more. */
bool python_name_frame(
        struct python_names *names, struct memory *mem, const struct frame *frame, struct frame_name *ret);
/* The same of its code alone: function and file, which are valid until names are asked again. */
bool python_name_code(struct python_names *names, struct memory *mem, const struct frame *frame, const char **name,
        const char **file);
/* The frame that stands for a position in a code object. False: it is none, or cannot be read. */
bool python_code_frame(struct python_names *names, struct memory *mem, u64 code, u64 pos, struct frame *ret);

struct python_str_state {
	u8 kind; /* bytes a character */
	bool compact, ascii;
};

struct python_str_state python_str_state(u32 bits); /* of PyASCIIObject.state; in python_str.c */

/* n characters of so many bytes each as UTF-8, cut at size. In python_str.c. */
void python_str_encode(const u8 *chars, u32 n, u32 kind, char *ret, size_t size);

/* A str of the target as UTF-8, cut at size; false: it is none, or unreadable. In python_str.c. */
bool python_str(struct memory *mem, const struct python_layout *l, u64 addr, char *ret, size_t size);

/*
 * The line of the code unit pos by a co_linetable of 3.11 and later (Objects/locations.md of its source); 0: none.
 * table is untrusted. In python_lines.c.
 */
u32 python_line(const u8 *table, size_t size, u32 firstlineno, u32 pos);
/* The same by a co_linetable of 3.10 (Objects/lnotab_notes.txt of its source), and by a co_lnotab of 3.6 to 3.9. */
u32 python_line_310(const u8 *table, size_t size, u32 firstlineno, u32 pos);
u32 python_line_39(const u8 *table, size_t size, u32 firstlineno, u32 pos);

#endif
