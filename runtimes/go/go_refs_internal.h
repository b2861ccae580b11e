/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of go-refs share. */
#ifndef YRT_GO_REFS_INTERNAL_H
#define YRT_GO_REFS_INTERNAL_H

#include "dwarf/types.h"
#include "go_goroutines.h"
#include "go_spans.h"
#include "go_view.h"
#include "runtime_heap.h"
#include "table.h"

/* What a word of a type is. */
enum go_slot_kind {
	GO_SLOT_POINTER, /* to: what it leads to; 0: unknown */
	GO_SLOT_SLICE,   /* to: of the elements */
	GO_SLOT_STRING,
	GO_SLOT_INTERFACE, /* two words: which type, and its value */
	GO_SLOT_CHANNEL,   /* to: of the elements */
	GO_SLOT_DIRECTORY, /* to: the address of a table */
};

struct go_slot {
	u32 at;
	u32 label;
	enum go_slot_kind kind;
	u64 to;
};

/* A type of the target, with its pointers in order of address: those of nested structures and arrays too. */
struct go_type {
	u64 addr, size;
	const char *name; /* by DWARF; NULL: its description has it */
	struct go_slot *slots;
	u32 nslots;
	bool whole; /* all of its pointers are in slots */
	bool map;   /* a map: what it leads to is described nowhere */
};

/* What is known of an object by what leads to it: the address of a type, and in the lowest bits how. */
enum go_hint { GO_ONE, GO_MANY, GO_TEXT, GO_CHANNEL, GO_HINTS };

struct go_refs {
	struct heap *h;
	struct runtime_process p; /* with its memory as it is now */
	struct go_view *v;
	struct go_module module;
	struct go_span *spans; /* with objects, by address */
	u32 nspans;
	struct table type_at; /* from a type's address to its number + 1 */
	struct go_type **types;
	u32 ntypes;
	struct types *dwarf;   /* NULL: there is none */
	struct table dwarf_at; /* from go_refs_dwarf()'s result to the struct type */
	struct table hints;    /* from an object's address */
	u32 nhints;
	u32 root;   /* what references are given to; 0: the object being read */
	bool named; /* there is DWARF */
	u32 depth;  /* of variables that were made statically, from a root */
};

/* go_refs_types.c: the type that is described there; NULL: none is. */
const struct go_type *go_refs_type(struct go_refs *r, u64 addr);
/*
 * What stands for a type of DWARF in place of the address of a description: that address if it has one, as not all
 * types do; 0: nothing is known of it.
 */
u64 go_refs_dwarf(struct go_refs *r, const struct type *type);
void go_refs_types_free(struct go_refs *r);
/* The type that the first word of an interface says, and how its value is kept: *direct, the value is a pointer. */
u64 go_refs_interface(struct go_refs *r, u64 word, bool *direct);
/* What a pointer type leads to; of a map itself; 0: it is none. */
u64 go_refs_pointee(struct go_refs *r, u64 type);

/* go_refs_roots.c */
struct error *go_refs_roots(void *reader);

/* A reference to whatever object is at this address, of a root or of the object being read. hint: 0 if none. */
void go_refs_give(struct go_refs *r, u32 label, u64 addr, u64 hint);
/* References of a value of this type; item: the label of those that have none. */
void go_refs_give_typed(struct go_refs *r, const struct go_type *t, u64 at, u32 item);
/* The same of words whose types nobody knows; label: HEAP_MAYBE is added. */
void go_refs_give_words(struct go_refs *r, u64 at, u64 size, u32 label);
u64 go_refs_word(struct go_refs *r, u64 addr); /* 0: unreadable, too */

#endif
