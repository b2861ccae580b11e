/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime reports about its allocation, for <view>-alloc: runtime_ops.alloc.
 *
 * Threads of such a runtime take a buffer from the heap (a TLAB) and then allocate by moving its top, in code that no
 * probe sees. A probe runs where a thread has got a new buffer (a *refill*). There probes/alloc/alloc.h chooses random
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
	 * A collection begins: objects are as they were, and will be for some milliseconds. Where there is such a site
	 * classes may be read as late as that; else at once.
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
	 * At a refill the thread's structure does not describe the new buffer yet: it begins at ALLOC_OBJECT, has
	 * ALLOC_BUFFER_SIZE bytes, and its top will be behind the object.
	 */
	bool early;
	/*
	 * The places were found by what their code looks like: what they give is to be checked each time. An object
	 * that a buffer was made for lies at its start, is not larger than it, and the buffer is where the thread's
	 * structure says.
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
	 * Where it ends, 0: not known. It is what top was when the address was written first: then a search backwards
	 * from addr for a header whose size leads there is short.
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
	 * describes the innermost method is not certain; this replaces its frame by the exact place of the allocation.
	 * n may be less than the stack has. May be NULL.
	 */
	void (*place)(void *instance, const struct runtime_process *p, struct frame *frames, u32 n);

	/*
	 * A reader of objects, for a thread of its own: it shares nothing with instance that either changes, and may
	 * outlive it. The calls below are of that thread.
	 */
	struct error *(*open)(void *instance, const struct runtime_process *p, void **ret);
	void (*close)(void *reader);

	/* The class of an object as a frame of this runtime, and its size in bytes. */
	enum alloc_answer (*object)(void *reader, const struct alloc_object *object, struct frame *ret, u64 *size);

	/* The frame of a class that a site gave (ALLOC_CLASS). */
	bool (*class_frame)(void *reader, u64 klass, struct frame *ret);

	/*
	 * What lies in a buffer that its thread gave up, from start to end (behind what fills it): reports bytes and
	 * objects by class and alloc_size_class(); class NULL: not known. False: it is not there any more. May be NULL.
	 */
	bool (*survey)(void *reader, const struct alloc_object *buffer,
	        void (*each)(void *ctx, const struct frame *class, u64 bytes, u64 objects), void *ctx);

	/* Collections so far, and one; 0: unknown. */
	u32 (*collections)(void *reader);

	/*
	 * True for native code (its symbol) and stubs (their names) that only lead from where an object is allocated to
	 * its class: <view>-alloc hides them, and what in the runtime's file has no name.
	 */
	bool (*is_runtime_internal)(const char *symbol);
};

#endif
