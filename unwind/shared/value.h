/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Where the arguments of a call lie as it begins, and what is read of each, for BPF: plain data that a runtime fills
 * (unwind/runtime_calls.h). Arguments lie in slots, one after the other. Nothing is called in the target.
 */
#ifndef YRT_SHARED_VALUE_H
#define YRT_SHARED_VALUE_H

#include <types.h>

#define VALUES_MAX   8   /* arguments of a call that are read; of others their number is not even counted */
#define VALUE_BYTES  128 /* of an object; a multiple of 8 */
#define VALUE_SHAPES 12  /* types of which more than the type is read */

/* What a value is in a Y program (probes/y/y_values.bpf.h): a number, a text, or neither. */
enum value_sense {
	VALUE_OTHER,
	VALUE_SIGNED, /* an integer: the slot's low bytes (value_shape.plain), or the object's, from value_at to `to` */
	VALUE_UNSIGNED, /* the same */
	VALUE_REAL, /* a double, or a float if it has 4 bytes; a slot without a shape above all doubles is no number */
	VALUE_DIGITS, /* CPython's up to 3.11: at value_at ob_size, and up to two digits of 30 bits */
	VALUE_TAGGED, /* and from 3.12 on: lv_tag */
	VALUE_FALSE,
	VALUE_TRUE,
	VALUE_TEXT,    /* bytes as they are */
	VALUE_UNICODE, /* CPython's: of 1, 2 or 4 bytes, at value_at if it is not `narrow` */
	VALUE_UTF16,   /* UTF-16, or Latin-1 where value_text.kind is 0 and there is a kind */
};

/* An object of one type. Offsets in bytes, from its beginning. */
struct value_shape {
	u64 type;
	u16 sense, value_at; /* enum value_sense */
	u16 from, to; /* these bytes tell its value. from: a multiple of 8, up to VALUE_HEAD_MAX. to 0: it has none, its
	                 type is all */
	/*
	 * It has text from data_at on, as long as the integer at length_at says: those bits of it, in one word of 8
	 * bytes. data_at 0: none.
	 */
	u16 length_at, data_at;
	u32 length_bits;
	u16 narrow_at, narrow; /* if none of these bits is set in that byte, each character may take 4 bytes, and more
	                          precedes them */
	u32 plain;             /* not 0: there is no object, so many bytes of the slot are the value */
	/*
	 * Or its text is in another object: the reference at behind_at, of so many bytes, shifted to the left, plus
	 * behind_base, leads there, and length_at (4 bytes) and data_at are offsets in that one. A unit of the text
	 * takes 1 << behind_unit bytes. What is read is a struct value_text. behind_bytes 0: it is not.
	 */
	u64 behind_base;
	u16 behind_at;
	u8 behind_bytes, behind_shift, behind_unit;
};

struct value_text {
	u32 kind;   /* the object's byte at narrow_at, if that is not 0 */
	u32 length; /* in bytes; not all may have been read */
	u8 text[VALUE_BYTES - 8];
};

#define VALUE_HEAD_MAX  32
#define VALUE_WIDE_HEAD 24 /* so much may precede wide characters */

enum value_base {
	VALUE_NOWHERE,   /* it is not known where they are */
	VALUE_FRAME,     /* behind the call's frame (struct runtime_callee's frame_cursor) */
	VALUE_PLACE,     /* where the call's part of its language's stack begins (struct runtime_place) */
	VALUE_POINTER,   /* a register points there */
	VALUE_REGISTERS, /* slots are registers */
	VALUE_ABSOLUTE,  /* at an address from which paths lead to all: read ahead, or not at all */
};

enum value_typing {
	VALUE_TYPE_OF_OBJECT, /* a word of the object, at type_at */
	VALUE_TYPE_IN_WORD,   /* the slot's first word, shifted to the right by type_at */
	VALUE_TYPE_BESIDE,    /* the low byte of the word behind that, without the bits of type_at, and with this: */
	VALUE_TYPE_DECLARED,  /* argument i has shape[i], whatever its type, and lies in slot[i] */
};
#define VALUE_BESIDE 0x100 /* each has a type: 0 is none */

/* A key of a hash (Perl), of a dict, or the name of an attribute (CPython). */
#define VALUE_KEY 32 /* letters, ASCII */
struct value_entry {
	u64 key[VALUE_KEY / 8], mask[VALUE_KEY / 8]; /* mask 0: any letter */
	u64 length;                                  /* 0: the entry is free */
};

/* How CPython has dicts, and attributes of instances (Objects/dictobject.c, Include/internal/pycore_object.h). */
enum value_table {
	VALUE_NO_TABLE,
	VALUE_TABLE_SIZE,   /* 3.8 to 3.10: PyDictKeysObject has dk_size, an instance a dict where its type says */
	VALUE_TABLE_LOG,    /* 3.11: dk_log2_index_bytes, and before an instance are its values and its dict, if any; */
	VALUE_TABLE_TAGGED, /* 3.12: one word for either, */
	VALUE_TABLE_INLINE, /* from 3.13 on: the dict; without one, the values are behind the instance */
};

/*
 * Of an argument that is an object, what is taken is a text in an object to which its fields lead. Fields are offsets,
 * of references that value_places.reference describes; or with VALUE_KEYED, numbers of an entry: what a hash or a dict
 * has under that, with VALUE_NAMED also: the attribute of an instance. The last leads to an object of the argument's
 * shape; or, bytes not 0, to an array whose text is behind that many bytes, between two fields (s32) of the object that
 * it is in; or, with `pv`, to a Perl SV; or, with `string`, to the text itself.
 */
enum value_string {
	VALUE_NO_STRING,
	VALUE_STRING_C,     /* it ends in a 0 */
	VALUE_STRING_SIZED, /* behind the pointer to it is its length */
};
#define VALUE_HOPS  14
#define VALUE_KEYED 0x8000
#define VALUE_NAMED 0x4000
struct value_path {
	u16 n; /* fields; 0: the argument itself is taken */
	u16 at[VALUE_HOPS];
	u16 bytes, from, to;
	u16 pv;
	u16 string; /* enum value_string */
};

/* Perl's: where an SV has its body, its flags and a word of its own; of the body xhv_max, xpv_cur; of a HEK. */
struct value_hash {
	u16 body, flags, own, max, length, key_length, key_text;
	u16 is_text; /* of the flags */
};

struct value_places {
	u32 n, base;  /* enum value_base */
	s32 at, step; /* from there to the first slot, and from each to the next */
	u32 typing;   /* enum value_typing */
	u32 type_at;
	u32 others_plain; /* slots of a type without a shape are values */
	u32 others_sense; /* of these, and of what has no shape: enum value_sense */
	/*
	 * 1 + the register (DWARF number) that has 1 + how many slots there are (u32); of the others all bits are set.
	 * 0: all are there.
	 */
	u32 given;
	u64 mask;            /* of a slot: the object's address */
	u32 pointer;         /* VALUE_POINTER: the register (DWARF number) */
	u8 slot[VALUES_MAX]; /* VALUE_REGISTERS: 1 + the register's number, 0: in none */
	u32 table;           /* enum value_table, */
	u32 table_text;      /* where a key has its letters, behind its length of 8 bytes at 16 */
	struct value_entry entry[VALUES_MAX];
	u32 ahead;          /* not 0: arguments are taken before the call's stack is walked, along their paths; */
	u32 later;          /* after that, as it tells where they are */
	u64 reference_base; /* added to a reference that was shifted to the left; */
	u32 reference_shift, reference_bytes; /* 4 or 8 */
	u64 absolute;                         /* VALUE_ABSOLUTE */
	struct value_path path[VALUES_MAX];
	struct value_hash hash;
	u8 wanted[VALUES_MAX]; /* by a Y program's handler: 1 + which argument each is; 0: there is none */
	struct value_shape shape[VALUE_SHAPES];
};

#endif
