/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What memory is used for, as a tree: the process, kinds of mappings and allocators, arenas, in use or free, sizes of
 * blocks. Each byte is counted in one node; a node's total is its own amount and those of its children.
 */
#ifndef YRT_USAGE_H
#define YRT_USAGE_H

#include <types.h>

#include "error.h"
#include "size_class.h"

struct amount {
	u64 blocks;   /* 0: of memory that has none */
	u64 size;     /* bytes of addresses */
	u64 resident; /* bytes of them in memory; of a core: that it has */
	u64 swapped;
};

enum usage_kind {
	USAGE_GROUP,    /* is divided further */
	USAGE_MAPPING,  /* of a file, a stack, shared memory: nothing more is known */
	USAGE_IN_USE,   /* blocks that the program has */
	USAGE_CACHED,   /* freed, but kept for a thread */
	USAGE_FREE,     /* freed */
	USAGE_TOP,      /* never used so far, or given back to where new blocks come from */
	USAGE_METADATA, /* the allocator's own */
	USAGE_UNREAD,   /* not read; the name says why */
	USAGE_KINDS,
};

struct usage_node {
	char *name;
	enum usage_kind kind;
	u32 parent, child, last, sibling; /* 0: none; the root has number 0 */
	struct amount own, total;         /* total: after usage_finish() */
};

/* What a person wants to know first, over all allocators; resident bytes. */
struct usage_facts {
	u64 in_use, cached, free; /* free: with the top of each arena */
	u64 returnable;           /* of free: whole pages, which the program could give back by one call */
	u64 top;                  /* of free: whole pages at the end of arenas that this call does not give back */
	u64 held;                 /* of free: in pages that live blocks share */
	u64 held_blocks;          /* live blocks in pages that are at least half free */
	u64 torn;                 /* blocks that changed while they were read, so that memory had to be read again */
	u32 arenas;               /* that have memory */
};

enum usage_remark { USAGE_NOTE, USAGE_ADVICE, USAGE_CORRUPT };

struct usage {
	struct usage_node *nodes;
	u32 nnodes;
	struct usage_facts facts;    /* while an allocator is read: its own */
	u64 resident;                /* bytes of all of the process in memory */
	u64 in_use_of[SIZE_CLASSES]; /* bytes of addresses in use, by class of size */
	struct usage_line {
		enum usage_remark kind;
		char *text;
	} * lines;
	u32 nlines;
};

struct error *usage_create(struct usage **ret);
void usage_destroy(struct usage *u);
/* The child of this name; made if new. name is copied. */
struct error *usage_child(struct usage *u, u32 parent, enum usage_kind kind, u32 *ret, const char *name, ...)
        __attribute__((format(printf, 5, 6)));
void usage_add(struct usage *u, u32 node, const struct amount *amount);
/* A child that has this much; nothing if it has no bytes. name is copied. */
struct error *usage_part(
        struct usage *u, u32 parent, enum usage_kind kind, const char *name, const struct amount *amount);
/*
 * A child with one of its own for each size of blocks that has any: of[i] are blocks of sizes[i] bytes. Those in use
 * are added to in_use_of, too. Nothing if there are none.
 */
struct error *usage_sizes(struct usage *u, u32 parent, enum usage_kind kind, const char *name, const struct amount *of,
        const u64 *sizes, u32 n);
/* A line for people: what was not read and why, what helps, what is corrupt. */
struct error *usage_say(struct usage *u, enum usage_remark kind, const char *text, ...)
        __attribute__((format(printf, 3, 4)));
void usage_add_facts(struct usage_facts *to, const struct usage_facts *from);
/* Are so many bytes of an allocator worth a word about what would help? */
bool usage_matters(const struct usage *u, u64 bytes);
/* Says what is free in parts of memory ("slabs") that live blocks hold, if it matters. */
struct error *usage_say_held(struct usage *u, const char *parts);
/* Computes totals. */
void usage_finish(struct usage *u);

static inline void amount_add(struct amount *to, const struct amount *from)
{
	to->blocks += from->blocks;
	to->size += from->size;
	to->resident += from->resident;
	to->swapped += from->swapped;
}

/* The size of a number of bytes as people read it ("1.5 MB"); ret has room for USAGE_BYTES. */
#define USAGE_BYTES 24
const char *usage_bytes(char ret[USAGE_BYTES], u64 bytes);

#endif
