/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of unwind/heap/ share of a heap that is being read. */
#ifndef YRT_HEAP_INTERNAL_H
#define YRT_HEAP_INTERNAL_H

#include "heap.h"
#include "heap_coarse.h"
#include "profile/string_pool.h"
#include "runtime.h"
#include "table.h"

#define HEAP_FOUND_KEPT (1u << 20) /* more room for the references of one object is given back */

struct root_ref {
	u32 node, label;
	u64 addr;
};

struct note {
	char *text;
	u64 n;
};

struct candidate {
	u64 addr, count; /* count 0: unknown */
	u32 incoming;    /* references from candidates */
	bool part;       /* of one that refers to it */
};

struct heap_reading {
	u64 room; /* bytes for all that heap_has_room() counts */
	struct string_pool names;
	struct table labels, types, roots; /* from a name's address in names, a key, (parent, name) to a number */
	const char **label_texts;
	u32 nlabels;
	u8 *ranks; /* of roots, by number of their node while they are the only ones */
	u32 *root_nodes;
	u32 nroots;
	struct root_ref *refs; /* of roots */
	u32 nrefs;
	struct root_ref *found; /* of the object being read; node is not set */
	u32 nfound, found_room;
	/* in a coarse heap: of the object's references so many are passed over, were given, and are kept at once */
	u64 skip, seen;
	u32 slice;
	bool more;                 /* than fit into the slice */
	struct heap_pending *soon; /* to be read at once; from: in a heap that is not coarse the object's own node */
	u32 nsoon;
	u32 number;        /* of the object that is asked for */
	u32 first_of_rank; /* nodes before it belong to an earlier rank, or are roots */
	struct note *notes;
	u32 nnotes;
	struct candidate *candidates;
	u32 ncandidates;
	bool references, ways, live, unreachable;
	int nice;
	struct error *err; /* the first one, of calls that return none */
};

static inline struct heap_reading *heap_reading(const struct heap *h)
{
	return h->private;
}

/* Of a table: mixed, and not 0. */
static inline u64 heap_key(u64 of)
{
	of = (of ^ of >> 32) * 0x9e3779b97f4a7c15ull;
	return (of ^ of >> 29) | 1ull << 63;
}

/* Keeps the first error of a reading. err: NULL is fine. */
static inline void heap_fail(struct heap *h, struct error *err)
{
	if (heap_reading(h)->err)
		error_free(err);
	else
		heap_reading(h)->err = err;
}

/* Makes the node of an address if it is new. 0: no room. *fresh: it was new. */
u32 heap_discover(struct heap *h, u64 addr, u32 parent, u32 label, bool *fresh);
/* Is there room for one more object and reference, or is the heap coarse, or becomes so? node: one that the caller goes
 * on with. False: it failed. */
bool heap_fits_on(struct heap *h, u32 *node);
/* Does so much more still fit into --memory, beside the nodes and references that there are? */
bool heap_has_room(const struct heap *h, u64 bytes);
/* Copies what the process has written by now, all of it, if there is room. */
struct error *heap_copy_written(struct heap *h, pid_t pid);
/* The node that stands for another, as its object has moved; itself: none. */
u32 heap_now(const struct heap *h, u32 node);
/* Has an address a node? */
bool heap_has(const struct heap *h, u64 addr);
/* What the object of a node is; false: no room. */
bool heap_describe(struct heap *h, u32 node, u32 type, u64 size);

#endif
