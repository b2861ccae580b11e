/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug registers on blocks, so that their end is seen without a uprobe on free().
 *
 * What is left of a window's blocks when it ends is looked at again and again, by what it holds (leak_again.h). Of
 * those that seem to be there still after a while a debug register of all threads is set on the first word, which
 * free() writes: glibc's link of caches, fast bins and the unsorted list (from 2.26 on; malloc/malloc.c), mimalloc's
 * and gperftools' link. A write counts if the allocator's code made it. What is there still after some time more has
 * outlived: stacks are blamed for such blocks alone. Of a stack whose blocks change, registers are set at the end of
 * the window, while free() is still probed, on the oldest, since most blocks live for a moment only.
 *
 * A block of glibc's that lies behind a free one may be joined with that, and next to the top with the top: then not
 * its first word is written, but its header, or none at all. So a second register watches the header. Blocks whose
 * header says that what lies before them is free (PREV_INUSE is 0) are not watched, or not any more.
 *
 * jemalloc and musl write nothing into a block that is freed: there any write to the word, which a new owner makes,
 * ends the watch as if the block had been freed. One that nobody writes to or that nobody gets again looks as if it
 * were there: whether memory of that size grows tells the rest.
 * Each trap costs the target 1 us or, in some virtual machines, 20: a block whose word the program writes often is let
 * go at once.
 */
#ifndef YRT_LEAK_WATCH_H
#define YRT_LEAK_WATCH_H

#include "alloc_functions.h"
#include "leak.h"
#include "unwind/allocators/size_class.h"
#include "unwind/error.h"
#include "unwind/process/process.h"

struct leak_watch;
struct object;

#define LEAK_CLASS_WORDS ((SIZE_CLASSES + 63) / 64)

struct leak_seen { /* of a stack, in user space */
	u64 hash;
	double left;                   /* bytes of blocks that were there when windows ended */
	u64 least, most;               /* sizes of blocks, */
	u64 classes[LEAK_CLASS_WORDS]; /* and a bit for each class of what they take (size_class.h) */
	enum leak_books books;
	u32 watched;           /* by debug registers, */
	u32 outlived;          /* of them still there when they were let go; and */
	u32 in_window;         /* more of those, that a window saw for as long */
	double outlived_bytes; /* sum of the sizes that the outlived ones were asked for with */
	u32 late;              /* of those with registers freed, though they were chosen when they were old */
	u32 busy;              /* of them let go, since the program writes there */
	u32 again;             /* that are looked at again, and are old enough for a register */
	u32 cut[LEAK_AGES];    /* blocks that were not seen any more from some age on */
	u32 died[LEAK_AGES];   /* that were freed between two looks */
};

/* watch_ns: for so long a block is watched at most; 0: an eighth of the run so far. */
struct error *leak_watch_create(struct object *o, u64 watch_ns, struct leak_watch **ret);
void leak_watch_destroy(struct leak_watch *w); /* NULL is fine */
/* Debug registers are needed from now on. Returns what a trap costs, in ns; 0: there are none. */
u64 leak_watch_start(struct leak_watch *w);
/* An allocator in a process. */
void leak_watch_allocator(
        struct leak_watch *w, const struct process *p, struct image *img, u64 bias, const struct alloc_functions *f);
/* Its number (LEAK_COOKIE_CODE). 0: its blocks cannot be watched. */
u32 leak_watch_code(const struct leak_watch *w, const struct process *p, const struct image *img);
/* At the end of a window, while free() is probed still. The ledger has only blocks that are watched afterwards. */
void leak_watch_take(struct leak_watch *w);
/* No block is watched after this. */
void leak_watch_end(struct leak_watch *w);
/* After that: of a stack; NULL: no window left a block of it. */
const struct leak_seen *leak_watch_seen(const struct leak_watch *w, u64 hash);
/* Sets cut, registers, watch_s, no_registers. */
void leak_watch_summary(const struct leak_watch *w, struct leak_summary *s);

#endif
