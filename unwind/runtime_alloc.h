/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime reports about its allocation, for <view>-alloc: runtime_ops.alloc.
 *
 * Threads of such a runtime take a buffer from the heap (a TLAB) and then allocate by moving its top, in code that no
 * probe sees. A probe runs where a thread has got a new buffer (a *refill*). There probes/tlab/tlab.h chooses random
 * addresses in the buffer and watches them by debug registers. Objects that never were in a buffer are reported at a
 * place of their own (*outside*). Everything is read while the target runs, so all of it must be checked.
 */
#ifndef YRT_RUNTIME_ALLOC_H
#define YRT_RUNTIME_ALLOC_H

#include <sys/types.h>
#include <types.h>

#include "error.h"
#include "shared/frame.h"

struct runtime_process;

enum alloc_site_kind {
	ALLOC_REFILL,  /* the thread has a new buffer, with the object in it that did not fit into the one before */
	ALLOC_OUTSIDE, /* an object was made outside all buffers */
	/*
	 * A collection begins: objects are still in place, and will be for some milliseconds. If there is such a site,
	 * classes may be read as late as that; else they are read at once.
	 */
	ALLOC_COLLECTION,
};

/* What a register holds at a site. */
enum alloc_value {
	ALLOC_THREAD,      /* the runtime's structure of the current thread: where its buffer is described */
	ALLOC_CLASS,       /* of the object, as alloc_ops.class_frame takes it */
	ALLOC_OBJECT,      /* its address */
	ALLOC_OBJECT_SIZE, /* in bytes */
	ALLOC_BUFFER_SIZE, /* in bytes, of the new buffer */
	ALLOC_VALUES
};

#define ALLOC_NO_REG    0xff
#define ALLOC_SITES_MAX 8

struct alloc_site {
	enum alloc_site_kind kind;
	u64 offset;           /* of an instruction in the runtime's file (file offset, as uprobes take it) */
	u8 reg[ALLOC_VALUES]; /* DWARF number of the register; ALLOC_NO_REG: not to be had here */
};

struct runtime_alloc {
	struct alloc_site site[ALLOC_SITES_MAX]; /* at least one refill */
	u32 nsites;
	u32 buffer_start, buffer_top,
	        buffer_end; /* offsets in the thread's structure of three pointers, within 256 bytes */
	u64 collections_at; /* in the process: u32, collections() is one more than it; 0: not known */
	/*
	 * At a refill the thread's structure does not describe the new buffer yet: the buffer begins at ALLOC_OBJECT,
	 * has ALLOC_BUFFER_SIZE bytes, and its top will be behind the object.
	 */
	bool early;
	/*
	 * The places were found by the look of their code, so each report must be checked. An object for which a buffer
	 * was taken is at the buffer's start and not larger than it, and the buffer is where the thread's structure
	 * says.
	 */
	bool checked;
	const char *missed, *remedy; /* static: what no probe sees here, and what to do about it; NULL: nothing */
	const char *origin; /* static: how the sites were found: "symbols", "debug file", "disassembly", "USDT" */
};

struct alloc_thread {
	pid_t tid;     /* in the target's own pid namespace */
	u64 thread;    /* ALLOC_THREAD */
	u64 allocated; /* bytes so far, exact: with what is used of the buffer */
};

/* What is known of an object that covers addr. */
struct alloc_object {
	u64 thread; /* ALLOC_THREAD; 0: unknown */
	u64 start;  /* of its buffer, where an object begins */
	u64 addr;
	/*
	 * Where the object ends; 0: not known. It is what top was when the address was first written. With it, a search
	 * backwards from addr for a header whose size leads there is short.
	 */
	u64 end;
	u32 gc;      /* collections() before it was made; 0: unknown */
	bool passed; /* the thread has gone on since, for certain: the header is written */
};

enum alloc_answer {
	ALLOC_KNOWN,
	ALLOC_NOT_YET, /* what lies there may be older: the header may be what trapped, and its class not written yet */
	ALLOC_MOVED,   /* never: a collection began meanwhile */
};

/* Sizes that are alike: four to a power of two. */
static inline u32 alloc_size_class(u64 size)
{
	u32 log2 = 63 - (u32)__builtin_clzll(size | 1);

	return log2 < 2 ? (u32)size : log2 * 4 + (size >> (log2 - 2) & 3);
}

struct runtime_alloc_ops {
	/* Where probes go. An error says what is missing and its hint what to install. */
	struct error *(*sites)(void *instance, const struct runtime_process *p, struct runtime_alloc *ret);

	/* The threads as they are now, at most max. Returns how many there are in ret. */
	u32 (*threads)(void *instance, const struct runtime_process *p, struct alloc_thread *ret, u32 max);

	/*
	 * A stack, leaf first, taken where an object was made or initialised. Between the places that a compiler
	 * describes, the innermost method is not certain; this replaces its frame by the exact place of the allocation.
	 * n may be less than the stack has. May be NULL.
	 */
	void (*place)(void *instance, const struct runtime_process *p, struct frame *frames, u32 n);

	/*
	 * A reader of objects, for a separate thread: it shares no changing data with instance, and may outlive it.
	 * That thread makes the calls below.
	 */
	struct error *(*open)(void *instance, const struct runtime_process *p, void **ret);
	void (*close)(void *reader);

	/* The class of an object as a frame of this runtime, and its size in bytes. */
	enum alloc_answer (*object)(void *reader, const struct alloc_object *object, struct frame *ret, u64 *size);

	/* The frame of a class that a site gave (ALLOC_CLASS). */
	bool (*class_frame)(void *reader, u64 klass, struct frame *ret);

	/*
	 * The contents of a buffer that its thread gave up, from start to end (except for the filler): reports bytes
	 * and objects by class and alloc_size_class(); class NULL: not known. False: the contents are gone. May be
	 * NULL.
	 */
	bool (*survey)(void *reader, const struct alloc_object *buffer,
	        void (*each)(void *ctx, const struct frame *class, u64 bytes, u64 objects), void *ctx);

	/* Collections so far, and one; 0: unknown. */
	u32 (*collections)(void *reader);

	/*
	 * True for native code (by its symbol) and stubs (by their names) that only lead from the place of an
	 * allocation to its class: <view>-alloc hides them, and unnamed code of the runtime's file.
	 */
	bool (*is_runtime_internal)(const char *symbol);
};

#endif
