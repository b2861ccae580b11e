/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the target, read from outside while it runs: dict, int, attributes of instances. All of it is untrusted
 * and may change between two reads; data that does not fit together counts as "not there".
 *
 * Some facts need no layout: sizes and orders of members that are the same in every build of a version
 * (Objects/dictobject.c, Objects/dict-common.h, Include/internal/pycore_dict.h, pycore_object.h, pycore_long.h of 3.6
 * to 3.14). A free-threaded build's objects have a longer head; the rest is the same.
 */
#ifndef YRT_PYTHON_OBJECTS_H
#define YRT_PYTHON_OBJECTS_H

#include "binary/memory.h"
#include "python_layout.h"

struct python_reader {
	struct memory *mem;
	const struct python_layout *l;
	u32 version; /* PY_VERSION_HEX */
	u32 *left;   /* reads that may follow, about a microsecond each: then nothing is there any more */
};

#define PYTHON_READS_MAX 200000 /* enough for some thousand threads */

#define PYTHON_DICT_MAX   65536 /* entries looked at */
#define PYTHON_DICT_CHUNK 32    /* read at once */

/* Reads what r->left still allows. */
bool python_read(const struct python_reader *r, void *dst, size_t size, u64 addr);
u64 python_word(const struct python_reader *r, u64 addr); /* 0: unreadable, too */
u32 python_head(const struct python_reader *r);           /* sizeof(PyObject) */

/* Entries in the order of their insertion; those that were deleted are among them. */
struct python_dict {
	u64 entries;
	u32 n;
	u32 words;             /* of an entry: 3 (hash, key, value) or 2 (key, value) */
	u64 values;            /* of a table that instances share keys in: here; 0: in the entries */
	u32 chunk_at, chunk_n; /* what was read last */
	u64 chunk[PYTHON_DICT_CHUNK * 3];
};

struct python_entry {
	u64 hash;       /* of the key; 0 in a table that has only str for keys, which does not store it */
	u64 key, value; /* objects; 0: none */
};

bool python_dict_open(const struct python_reader *r, u64 dict, struct python_dict *ret);
/* Entry i; false: unreadable, or i >= d->n. */
bool python_dict_entry(const struct python_reader *r, struct python_dict *d, u32 i, struct python_entry *ret);
/* The value under a str key; 0: none. name is ASCII. */
u64 python_dict_find(const struct python_reader *r, u64 dict, const char *name);

/* The attribute of an instance of a class that is written in Python; 0: none. A property is none. */
u64 python_attribute(const struct python_reader *r, u64 object, const char *name);

/* A non-negative int below 2^60. */
bool python_int(const struct python_reader *r, u64 object, u64 *ret);

/* The module of this name of an interpreter (PyInterpreterState): its dict; 0: it was not imported. */
u64 python_module(const struct python_reader *r, u64 interp, const char *name);

/* The interpreters (PyInterpreterState), the main one first, although the process lists the newest first. */
#define PYTHON_INTERPRETERS_MAX 64
u32 python_interpreters(const struct python_reader *r, u64 runtime, u64 ret[PYTHON_INTERPRETERS_MAX]);

#endif
