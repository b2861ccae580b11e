/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime, or an allocator, tells of a heap: runtime_ops.heap, for <view>-heap and <view>-refs. It names the
 * roots, and says of the object at an address what type it has, how many bytes, and what it refers to by which name.
 * The rest is generic (unwind/heap/): reading memory in order of address, the graph, who keeps what alive, pictures. It
 * is read from outside while the process runs, so everything here may be torn, and all of it is untrusted.
 *
 * The order of calls: open(), roots(), object() for each address that a root or an object referred to, in ascending
 * order of a wave of them, close(). A runtime whose heap can be parsed in order of address may have blocks(), too, and
 * an allocator only that.
 */
#ifndef YRT_RUNTIME_HEAP_H
#define YRT_RUNTIME_HEAP_H

#include <stdio.h>
#include <types.h>

#include "error.h"

struct memory;
struct runtime_process;
struct heap; /* heap/heap.h: what was collected so far. The functions below, with its name, are the runtime's to call */

/*
 * Labels: how something is referred to: a field ".points", an entry "cache", "[]" of a list, "{}" of a map whose keys
 * are data. Equal texts have equal numbers. What does not fit any more (2^20 labels) is HEAP_ANY.
 */
enum heap_label {
	HEAP_ANY,   /* "": no name */
	HEAP_ITEM,  /* "[]": an element of a list */
	HEAP_ENTRY, /* "{}": a value of a map, by a key that is data */
	HEAP_KEY,   /* "{key}": a key of a map */
	HEAP_LABELS,
};
/* Flags, to be added to a label. */
#define HEAP_PART                                                                                                      \
	(1u << 31) /* to people it belongs to what refers to it (the __dict__ of an instance): drawn as one box */
#define HEAP_MAYBE (1u << 30) /* a word that may be a reference, found conservatively: shown with "?" */
#define HEAP_FLAGS (HEAP_PART | HEAP_MAYBE)

u32 heap_label(struct heap *h, const char *text);
const char *heap_label_text(const struct heap *h, u32 label); /* flags do not matter; valid until the next label */

/*
 * Types. key: what identifies it to the runtime (its address, or a number of its own), not 0. name: NULL if only the
 * number is asked for. Returns its number, from 1 on; 0: not known and name is NULL, or no room (2^20 types).
 */
u32 heap_type(struct heap *h, u64 key, const char *name);
const char *heap_type_name(const struct heap *h, u32 type); /* hostile; stays valid */

/*
 * Roots, in a tree of their own: parent 0 is the top. "threads" → "MainThread" → "main (app.py:12)" → local "x". Equal
 * names below one parent are one root. Ranks are walked to the end one after the other: what an earlier one keeps
 * alive is not counted against a later one, so that a local variable does not blur which module holds a cache. A root's
 * rank is at least its parent's.
 */
enum heap_rank {
	HEAP_LASTING, /* modules, globals, a registry, statics */
	HEAP_STACKS,  /* threads, coroutines and their frames */
	HEAP_RUNTIME, /* what the runtime keeps for itself: interned strings, caches, types of its own */
	HEAP_RANKS,
};
u32 heap_root(struct heap *h, u32 parent, enum heap_rank rank, const char *name);
/* A root refers to an object. */
void heap_root_ref(struct heap *h, u32 root, u32 label, u64 addr);

/* In dump(): what roots() gave. top: the name of the outermost root above. Objects may be looked at in each(). */
void heap_each_root_ref(struct heap *h, void (*each)(void *ctx, const char *top, u32 label, u64 addr), void *ctx);

/* In object(): it refers to the object at addr. 0 is ignored. Weak references are not told. */
void heap_ref(struct heap *h, u32 label, u64 addr);

/*
 * In blocks(): an object that was found by its place. root: where it lies ("arena 2" below "glibc"); it counts there
 * unless the walk reaches its address from another root. addr 0: nothing refers to it, it is only counted.
 */
void heap_block(struct heap *h, u32 root, u64 addr, u32 type, u64 size);

/*
 * In blocks(), in place of heap_block(): so many objects of a type, of whom nothing but their number and their bytes is
 * of interest. They take no room of --memory.
 */
void heap_count(struct heap *h, u32 root, u32 type, u64 count, u64 bytes);
/* In blocks(): something that was no object, or could not be read, where there should be objects. Counted. */
void heap_torn(struct heap *h);

/*
 * In all(): an object that may be there whether a root reaches it or not. count: how many references to it the runtime
 * counts; 0: it counts none.
 */
void heap_candidate(struct heap *h, u64 addr, u64 count);

/*
 * In all(): candidates of a collector's list, whose objects begin with the address of the next, in size bytes.
 * It starts at one of the words from begin up to end: the first from which objects follow one another to member,
 * which is known to be in the list. False: none does.
 */
bool heap_candidate_list(
        struct heap *h, u64 begin, u64 end, u32 size, u64 member, bool (*is_object)(void *ctx, u64 addr), void *ctx);

/* In open(): blocks() would not do for this instance. Its objects are those that the roots reach. */
void heap_live_only(struct heap *h);

/* For the notes below the result: "312 strings are not compact". Counted by text. */
void heap_note(struct heap *h, const char *text);

/*
 * The bytes at addr, without a copy; NULL: unreadable. Valid until the next heap_bytes() or read of the process's
 * memory. size <= HEAP_BYTES_MAX. Faster than memory_read(), which sees the same bytes.
 */
#define HEAP_BYTES_MAX (1u << 20)
const void *heap_bytes(struct heap *h, u64 addr, u32 size);

/* The process's memory as it is now: for what says whether objects have moved since. It is not read for objects. */
struct memory *heap_memory_now(const struct heap *h);
/* What was read so far is read again when it is needed, but for copies. */
void heap_forget(struct heap *h);
/* The same of the memory around an address. */
void heap_forget_at(struct heap *h, u64 addr);

/*
 * A clock for what moves: objects are numbered as they are found. Up to where so far; and in object() the number of the
 * one that is asked for, or of the first that may be it (with little --memory).
 */
u32 heap_found(const struct heap *h);
u32 heap_number(const struct heap *h);

/*
 * In roots(): all that lies in these stretches, which are in order of address, is copied now, and read from the copy
 * from now on: so it is of one moment, more or less. False: there is no room in --memory, and nothing is copied. Copies
 * are given up when objects need the room, and by heap_uncopy(), with the roots that were given.
 */
struct heap_stretch {
	u64 start, end;
	bool mapped; /* all of it holds data, though the process may not have looked at it by this address */
};
u64 heap_copy_room(const struct heap *h); /* bytes that may be copied at most */
bool heap_copy(struct heap *h, const struct heap_stretch *stretches, u32 n);
void heap_uncopy(struct heap *h);
/* Behind the last copy: which part of the pages has changed since it was copied. 0: the copies are of one moment. */
double heap_copy_changed(const struct heap *h);

struct heap_object {
	u32 type;     /* of heap_type() */
	u64 size;     /* bytes, with what it owns elsewhere and nobody else can own: a list's array */
	u64 moved_to; /* HEAP_MOVED: its address now */
};

enum heap_seen {
	HEAP_OBJECT,
	HEAP_NOTHING, /* no object is there, nor was: a tagged word, memory that another reader counts. Not counted */
	HEAP_MOVED,   /* it is elsewhere by now: what referred to it here is taken to refer to it there */
	HEAP_TORN,    /* there should be one, but what was read does not fit together: read once more, then counted */
};

struct runtime_heap_ops {
	const char *objects; /* "objects" or "blocks", in text */
	const char *text;    /* for --help: what is read, what is not, which versions; NULL: nothing to add */
	const char *walk;    /* the same of <view>-refs, with blocks_are_all; else NULL */

	/*
	 * p->memory is a cache of 1 MiB blocks over the process's memory: whatever of the runtime takes a struct memory
	 * can be used with it. p is valid until close(). *ret NULL: the instance has no heap (yet). An error says what
	 * is not supported; nothing of the instance is shown then.
	 */
	struct error *(*open)(void *instance, const struct runtime_process *p, struct heap *h, void **ret);
	void (*close)(void *reader);
	struct error *(*roots)(void *reader);
	/* Calls heap_ref() for each reference; those of an object that is torn are forgotten. label: that it was found
	 * by first, with its flags. May be NULL if blocks() is not: then there is no <view>-refs. */
	enum heap_seen (*object)(void *reader, u64 addr, u32 label, struct heap_object *ret);
	/* Is what lies there likely to move or to be gone soon? It is read at once, not in order of address. May be
	 * NULL. */
	bool (*soon)(void *reader, u64 addr);
	/* Calls heap_block() for each object, in order of address. May be NULL. */
	struct error *(*blocks)(void *reader);
	/* Calls heap_candidate() for the objects that it can list without roots, for --unreachable. May be NULL. */
	struct error *(*all)(void *reader);
	/* Behind the roots' walk: is there so much that they do not reach, and that nothing will free, that it belongs
	 * into every result? all() follows. May be NULL. */
	bool (*leaks)(void *reader);
	/*
	 * Writes all objects in a format of the language's own tools, in place of the above. contents: also what arrays
	 * of numbers and characters hold. *moved: objects moved meanwhile, so that what was written is incomplete. May
	 * be NULL.
	 */
	struct error *(*dump)(void *reader, FILE *out, bool contents, bool *moved);
	/* blocks() counts everything, also what nothing refers to: <view>-heap calls only that, but roots() and
	 * object() with --live; <view>-refs calls only these. */
	bool blocks_are_all;
	/* Objects do not move: before roots() all that the process has written is copied, if it fits into --memory, so
	 * that what is read is of one moment, more or less. */
	bool copied;
	bool refs_only; /* <view>-heap is another command's: one of runtime_snapshot.h */
};

#endif
