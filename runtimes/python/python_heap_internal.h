/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of Python's heap share. Facts about objects are those of CPython 3.8 to 3.15 (Include/object.h,
 * its cpython and internal, Objects, Modules/_collectionsmodule.c), of builds with the GIL: there members
 * of one version are where they are in every build of it. The head of an object of a free-threaded build (3.13 on) is
 * longer: thread, flags, lock, bits of the collector, local count, shared count, type. What follows it is the same, so
 * offsets below are from python_heap_at() on, but for those that types say (basicsize, members) or layouts.
 */
#ifndef YRT_PYTHON_HEAP_INTERNAL_H
#define YRT_PYTHON_HEAP_INTERNAL_H

#include <string.h>

#include "python_image.h"
#include "python_objects.h"
#include "runtime.h"
#include "runtime_heap.h"
#include "table.h"

#define PYTHON_V3_9  0x03090000
#define PYTHON_V3_10 0x030a0000
#define PYTHON_V3_11 0x030b0000
#define PYTHON_V3_12 0x030c0000
#define PYTHON_V3_13 0x030d0000
#define PYTHON_V3_14 0x030e0000
#define PYTHON_V3_15 0x030f0000
#define PYTHON_V3_16 0x03100000

#define PYTHON_HEAD     16 /* of a build with the GIL; in a free-threaded one python_heap.longer more */
#define PYTHON_VAR_HEAD 24
#define PYTHON_GC_HEAD  16

/* PyTypeObject.tp_flags */
#define PYTHON_INLINE_VALUES  (1ull << 2) /* 3.13 */
#define PYTHON_MANAGED_WEAK   (1ull << 3) /* 3.12 */
#define PYTHON_MANAGED_DICT   (1ull << 4) /* 3.11 */
#define PYTHON_HEAP_TYPE      (1ull << 9)
#define PYTHON_HAVE_GC        (1ull << 14)
#define PYTHON_LONG_SUBCLASS  (1ull << 24)
#define PYTHON_LIST_SUBCLASS  (1ull << 25)
#define PYTHON_TUPLE_SUBCLASS (1ull << 26)
#define PYTHON_STR_SUBCLASS   (1ull << 28)
#define PYTHON_DICT_SUBCLASS  (1ull << 29)
#define PYTHON_TYPE_SUBCLASS  (1ull << 31)

/* How an object keeps what it refers to besides its words. */
enum python_kind {
	PYTHON_PLAIN,
	PYTHON_STR,
	PYTHON_INT,
	PYTHON_LIST,
	PYTHON_TUPLE,
	PYTHON_DICT,
	PYTHON_ORDERED_DICT,
	PYTHON_SET,
	PYTHON_TYPE,
	PYTHON_BYTEARRAY,
	PYTHON_ARRAY,
	PYTHON_DEQUE,
	PYTHON_NDARRAY,
	PYTHON_ELEMENT, /* of XML */
	PYTHON_FRAME,
	PYTHON_GENERATOR,
	PYTHON_MODULE,
};

/* A word of an object that may be a reference. */
struct python_slot {
	u16 at;
	bool sure; /* a declared member: else it is looked at first */
	u32 label; /* with HEAP_MAYBE where nobody knows */
};

#define PYTHON_SLOTS_MAX 256

struct python_type {
	u64 addr;
	u32 number; /* heap_type() */
	enum python_kind kind;
	u32 basicsize, itemsize;
	u64 flags;
	s32 dictoffset;
	u32 items; /* of a tuple: where its items begin */
	struct python_slot *slots;
	u32 nslots;
};

/* Labels that are needed often. */
struct python_labels {
	u32 dict, globals, type;
};

struct python_heap {
	struct heap *h;
	struct python_reader r;
	u32 left; /* of r: it does not end */
	const struct python_image *image;
	u64 bias;
	u32 longer; /* bytes by which the head of an object is longer: of a free-threaded build; else 0 */
	struct python_type **types;
	u32 ntypes;
	struct table type_at;   /* from a type's address to its number + 1; 0: it is none */
	struct table key_label; /* from a str's address, and where it is a key, to its label + 1 */
	struct python_labels labels;
	u64 tracked; /* an object that is in a list of the collector; 0: none was seen */
	u32 steps;   /* words of frames of roots that were looked at */
	u32 root;    /* what give() gives to: a root; 0: the object being read */
};

/* The type at this address; NULL: there is none. */
const struct python_type *python_heap_type(struct python_heap *p, u64 addr);
/* The head of what may be an object: only if its counts say that it is alive. NULL: it is not. */
const u8 *python_heap_alive(struct python_heap *p, u64 addr);
/* Where its members are counted from. */
static inline u64 python_heap_at(const struct python_heap *p, u64 addr)
{
	return addr + p->longer;
}
static inline u64 python_heap_type_of(const struct python_heap *p, const u8 *head)
{
	u64 ret;

	memcpy(&ret, head + p->longer + 8, sizeof(ret));
	return ret;
}
/* Is an object there, as far as can be seen: of a known type, and alive? */
bool python_heap_is_object(struct python_heap *p, u64 addr);
/* The str there as UTF-8, "" if it is none. */
void python_heap_text(struct python_heap *p, u64 str, char *ret, size_t size);

/* operations of runtime_heap.h */
enum heap_seen python_heap_object(void *reader, u64 addr, u32 label, struct heap_object *ret);
/* Gives what a frame refers to (_PyInterpreterFrame, 3.11 on); its code object, 0: none. */
u64 python_heap_frame(struct python_heap *p, u64 frame);
u64 python_heap_frame_code(struct python_heap *p, u64 frame);
/* Of the code object the name for people: "main (app.py:12)". */
void python_heap_code_name(struct python_heap *p, u64 code, char *ret, size_t size);

/* PyHeapTypeObject */
struct python_heap_type {
	u32 name, slots, qualname, keys, module; /* offsets; module 0: none */
};
struct python_heap_type python_heap_type_layout(u32 version);

u64 python_heap_word(struct python_heap *p, u64 addr); /* 0: unreadable, too */

#endif
