/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types, global variables and functions by name, from the debug information of one ELF file (its own, or a separate
 * debug file's; with what dwz moved elsewhere). Read by libdw: an index of names in one pass over the units when the
 * first name is asked for, each type when it is.
 *
 * Typedefs and qualifiers are gone: a type is what they lead to. Structures of one name and size are one type,
 * whichever unit describes them. Namespaces and enclosing classes are part of a name ("ns::Type"), base classes are
 * members without a name. All of it is untrusted: chains, sizes and the number of entries are bounded.
 *
 * Facts: DWARF 5, chapters 5 (types), 4.1 (variables), 3.3 (subroutines); DW_AT_bit_offset of versions before 4.
 */
#ifndef YRT_DWARF_TYPES_H
#define YRT_DWARF_TYPES_H

#include <stdbool.h>
#include <types.h>

#include "binary/image.h"
#include "error.h"

enum type_kind {
	TYPE_VOID,
	TYPE_INT, /* also characters and bool */
	TYPE_FLOAT,
	TYPE_POINTER, /* also C++ references */
	TYPE_ARRAY,
	TYPE_STRUCT, /* also classes */
	TYPE_UNION,
	TYPE_ENUM,
	TYPE_FUNCTION,
	TYPE_OTHER, /* what is none of these */
};

struct types;
struct type_member;

struct type {
	enum type_kind kind;
	bool is_signed, is_bool, is_char;
	bool is_declared;      /* only: nobody here says what is in it */
	const char *name;      /* "" if it has none */
	const char *alias;     /* of its first typedef; NULL: none is known */
	u64 size;              /* in bytes; of an array: of all its elements */
	u64 count;             /* of an array's elements; 0: open */
	const struct type *to; /* what a pointer leads to, an element, what an enumeration is kept in, what a function
	                          returns; never NULL but for kinds that have none */
	struct types *of;      /* who read it; NULL: made by hand */
	bool kernel;           /* what has it lies in the kernel's memory, not in the target's */
	u32 (*members)(const struct type *type, const struct type_member **ret); /* NULL: debug information has them */
	u64 die;                                                                 /* its entry there */
	bool alternate;                                                          /* which is in dwz's file */
};

struct type_member {
	const char *name; /* NULL: none; its own members count as the structure's */
	const struct type *type;
	u64 offset;       /* in bytes */
	u32 bits, shift;  /* of a bit-field: how many, above which of the word at offset; bits 0: it is none */
	u32 word;         /* of a bit-field: bytes of that word */
	const char *from; /* where the offset came from; NULL: debug information */
};

struct type_variable {
	const struct type *type;
	u64 addr;     /* the file's own */
	bool defined; /* false: only declared here, addr is unknown */
	bool thread;  /* a thread-local variable: addr is its offset in what each thread has for the file */
	bool several; /* different ones of this name are in the file (static ones) */
};

struct type_function {
	const struct type *type; /* to: what it returns */
	u64 addr;                /* 0: it has no code of its own (inlined, or only declared) */
	bool several;
};

enum type_space {
	TYPES_STRUCT,
	TYPES_UNION,
	TYPES_ENUM,
	TYPES_PLAIN,
	TYPES_VARIABLE,
	TYPES_FUNCTION,
	TYPES_ENUMERATOR
};

/* img: referenced. *ret is NULL if it has no debug information. */
struct error *types_open(struct image *img, struct types **ret);
void types_close(struct types *t);
const struct image *types_image(const struct types *t);

/* TYPES_STRUCT to TYPES_PLAIN (typedefs and base types; in C++ also classes). NULL: none of this name. */
const struct type *types_find(struct types *t, enum type_space space, const char *name);
/* Has t definitions of this name that differ in size? Then types_find() gives the first one. */
bool types_disagree(struct types *t, enum type_space space, const char *name);
bool types_variable(struct types *t, const char *name, struct type_variable *ret);
/* What an attribute of a type's entry says: a number or an address; 0: it has none. Typedefs are not asked. */
u64 type_attribute(const struct type *type, u32 attribute);
bool types_function(struct types *t, const char *name, struct type_function *ret);
/* The number of a function's parameter of this name, and its type; -1: it has none, or is unknown. */
int types_parameter(struct types *t, const char *function, const char *name, const struct type **type);
/* The first of a Go function's results, which its debug information has among the parameters; void: it has none. */
const struct type *types_result(struct types *t, const char *function);
/* Calls each() with the names of all of them. */
void types_parameters(struct types *t, const char *function, void (*each)(void *ctx, const char *name), void *ctx);
bool types_enumerator(struct types *t, const char *name, s64 *value, const struct type **type);
/* Calls each() with all names of a space, in no order. */
void types_names(struct types *t, enum type_space space, void (*each)(void *ctx, const char *name), void *ctx);

/* The members as they come; owned by the type's reader. 0: it has none, or is only declared. */
u32 type_members(const struct type *type, const struct type_member **ret);
/* By name, also within members that have none: offset counts from the start of type. */
bool type_member(const struct type *type, const char *name, struct type_member *ret);

#endif
