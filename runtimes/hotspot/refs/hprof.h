/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a heap dump of version 1.0.2, as the JDK does (heapDumper.cpp has its description), with identifiers of 8
 * bytes. Errors of the file are those of the stream.
 */
#ifndef YRT_HPROF_H
#define YRT_HPROF_H

#include <stdio.h>
#include <types.h>

enum hprof_type {
	HPROF_NONE,
	HPROF_OBJECT = 2,
	HPROF_BOOLEAN = 4,
	HPROF_CHAR,
	HPROF_FLOAT,
	HPROF_DOUBLE,
	HPROF_BYTE,
	HPROF_SHORT,
	HPROF_INT,
	HPROF_LONG
};

/* Of things in the heap. */
enum hprof_tag {
	HPROF_ROOT_JNI_GLOBAL = 0x01,
	HPROF_ROOT_CLASS = 0x05,
	HPROF_ROOT_THREAD = 0x08,
	HPROF_CLASS = 0x20,
	HPROF_INSTANCE,
	HPROF_OBJECTS,
	HPROF_PRIMITIVES,
	HPROF_ROOT_OTHER = 0xff
};

#define HPROF_BUFFER (1u << 20)
#define HPROF_TRACE  1 /* the number of the only stack trace, which is empty */

struct hprof {
	FILE *out;
	u64 left; /* of what hprof_begin() announced and has no room in the buffer: it is written at once */
	u32 used, classes;
	u8 buffer[HPROF_BUFFER];
};

/* w: zero. */
void hprof_start(struct hprof *w, FILE *out);
void hprof_end(struct hprof *w);
/* id: how it will be referred to. */
void hprof_string(struct hprof *w, u64 id, const char *text);
void hprof_loaded(struct hprof *w, u64 class, u64 name);
/* Begins a record of the heap: size bytes follow. */
void hprof_begin(struct hprof *w, enum hprof_tag tag, u64 size);
void hprof_bytes(struct hprof *w, const void *bytes, u64 size);
/* Appends a number of size bytes, big-endian. */
void hprof_put(struct hprof *w, u64 value, u32 size);

/* Of a field's or an array's signature. */
enum hprof_type hprof_type_of(char signature);
u32 hprof_size_of(enum hprof_type type);

#endif
