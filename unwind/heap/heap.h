/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A heap as it was read: its objects, who refers to whom, and what each keeps alive. runtime_heap.h is the other side,
 * of those who know the objects.
 *
 * A node is an object or a root; node 0 is above all roots. Each but node 0 has a parent, by which it was found first:
 * its label says how. As the walk is breadth-first, a parent's number is below its child's, and the way by parents is a
 * shortest one. All other references are edges. If that does not fit, the heap is coarse (heap_coarse.h): then a node
 * is many objects.
 */
#ifndef YRT_HEAP_H
#define YRT_HEAP_H

#include <types.h>

#include "binary/memory.h"
#include "error.h"
#include "heap_edges.h"
#include "heap_nodes.h"
#include "runtime_heap.h"
#include "table.h"

/* A reference with its label, whoever it counts for. */
struct heap_way {
	u32 from, to, label;
};

/* heap_count(): objects without nodes. */
struct heap_tally {
	u32 root, type; /* root: a node */
	u64 count, bytes;
};

struct heap_type {
	const char *name; /* hostile */
};

struct heap_counts {
	u64 references;
	u64 torn, mended; /* objects that did not fit together: each time; but did when read once more */
	u64 torn_bytes;   /* of those whose size was known */
	u64 refused;      /* references that did not fit into heap_options.memory, or whose object did not */
};

struct heap_sum {
	u64 count, bytes;
};

struct heap_cache;
struct heap_coarse;

struct heap {
	struct heap_nodes nodes;
	u32 first; /* that is shown: with heap_options.unreachable those before it are what the roots reach */
	struct heap_edges edges; /* references other than by parents, until heap_settle() */
	struct heap_way *ways;   /* with heap_options.ways: all references but those by parents */
	u64 nways;
	struct table moved; /* from a node that is no object to the one that is where its object has moved */
	struct heap_tally *tallies;
	u32 ntallies;
	struct heap_coarse *coarse; /* NULL: a node is one object */
	struct heap_sum *sums;      /* of each node, if it is coarse */
	u32 *dominators;            /* heap_settle(): of each node but 0; NULL before */
	u8 *incoming;               /* heap_settle(): edges to each node, at most UINT8_MAX */
	u32 *others;                /* heap_settle(): heap_dominance.others; NULL if it is coarse */
	struct heap_type *types;
	u32 ntypes; /* type 0 is none */
	struct heap_counts counts;
	struct heap_cache *cache;
	void *private; /* of heap_read.c */
};

struct heap_options {
	u64 memory;       /* bytes that reading and the graph may take */
	bool references;  /* who keeps what alive is wanted: edges are kept */
	bool ways;        /* and all ways to some objects */
	bool live;        /* only what the roots reach */
	bool unreachable; /* only what they do not reach */
	int nice; /* the thread's priority is lowered to this once what must be of one moment was read; 0: not */
};

/* memory: of the process, which stays the caller's. pid: 0 for a core. */
struct error *heap_create(struct memory *memory, pid_t pid, const struct heap_options *o, struct heap **ret);
void heap_destroy(struct heap *h); /* NULL is fine */
/* Reads one instance of a runtime. *found: it has a heap. Calls for several add to one heap. */
struct error *heap_read(struct heap *h, const struct runtime_heap_ops *ops, void *instance,
        const struct runtime_process *p, bool *found);
/* Writes one instance's heap in its language's format; see runtime_heap_ops.dump. */
struct error *heap_dump(struct heap *h, const struct runtime_heap_ops *ops, void *instance,
        const struct runtime_process *p, FILE *out, bool contents, bool *found, bool *moved);
/* Gives back what only reading takes: nothing may be read any more. */
void heap_end(struct heap *h);
/* The same, and computes what dominates each node. */
struct error *heap_settle(struct heap *h);
/* Bytes of each node with all that it alone keeps alive, malloc'd; needs heap_settle(). */
struct error *heap_retained(const struct heap *h, u64 **ret);

/* Calls put() with each note and how often it was given. */
void heap_each_note(const struct heap *h, void (*put)(void *ctx, const char *text, u64 n), void *ctx);

static inline const struct heap_kind *heap_kind(const struct heap *h, u32 node)
{
	return &h->nodes.kinds[h->nodes.kind_of[node]];
}

static inline u64 heap_addr(const struct heap *h, u32 node)
{
	return heap_nodes_addr(&h->nodes, node);
}

static inline bool heap_is_root(const struct heap *h, u32 node)
{
	return heap_kind(h, node)->type == HEAP_ROOT_TYPE;
}

static inline bool heap_is_object(const struct heap *h, u32 node)
{
	u32 type = heap_kind(h, node)->type;

	return type && type != HEAP_ROOT_TYPE;
}

/* So many objects are a node, and have so many bytes. */
static inline u64 heap_count_of(const struct heap *h, u32 node)
{
	return !heap_is_object(h, node) ? 0 : h->sums ? h->sums[node].count : 1;
}

static inline u64 heap_size_of(const struct heap *h, u32 node)
{
	return !heap_is_object(h, node) ? 0 : h->sums ? h->sums[node].bytes : heap_kind(h, node)->size;
}

/* Count and bytes by type. */
struct heap_total {
	const char *type;
	u64 count, bytes;
};
/* Of nodes and tallies, by bytes, largest first; types of one name are one. malloc'd; names are the heap's. */
struct error *heap_totals(const struct heap *h, struct heap_total **ret, u32 *n);

/* The n objects that are largest by themselves, largest first, or as many as there are (of a coarse heap: as have nodes
 * of their own). malloc'd. */
struct error *heap_largest(const struct heap *h, u32 n, u32 **ret, u32 *found);

#endif
