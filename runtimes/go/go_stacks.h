/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of goroutines that do not run, walked from a copy of their memory by the rows of the image (go_rows.h), as in
 * the walker. Equal ones are one chain of pcs. The meaning of each pc is looked up once: a million goroutines wait at
 * some hundred places.
 */
#ifndef YRT_GO_STACKS_H
#define YRT_GO_STACKS_H

#include "error.h"
#include "runtime.h"
#include "table.h"

#define GO_DEPTH_MAX 1024

struct go_chain {
	u32 n;
	u32 first; /* in go_stacks.pcs, leaf first; each as a return address: the place is one byte before it */
	bool cut;  /* deeper than GO_DEPTH_MAX */
};

struct go_stacks {
	const struct runtime_process *p;
	struct table steps; /* by pc: what a frame there is */
	struct table known; /* by hash: chain + 1 */
	struct go_chain *chains;
	u32 nchains;
	u64 *pcs;
	u32 npcs;
	u64 suspended; /* where systemstack_switch begins, or 0: up to 1.20 that, and no return address, is the pc of
	                * what called C, below a callback */
	bool logical;  /* the runtime has expanded inlined calls: each pc is one function, but for the outermost, which
	                 is as in the code */
};

/* How many of the n functions at pc i of a chain are meant, from the innermost on. */
static inline u32 go_stacks_functions(const struct go_stacks *s, const struct go_chain *c, u32 i, u32 n)
{
	return s->logical && i + 1 < c->n && n > 1 ? 1 : n;
}

/* Registers of a goroutine that stands, and as much of its stack as was copied, from sp on. */
struct go_standing {
	u64 pc, sp, end; /* end: of its stack */
	const u8 *copy;
	u32 size;
	bool exact; /* pc is not a return address */
	bool late;  /* set by go_stacks_walk(): more was read than was copied */
};

void go_stacks_init(struct go_stacks *s, const struct runtime_process *p);
void go_stacks_free(struct go_stacks *s);
/* Was the function at pc i of a chain, as it was walked, interrupted there, and called nothing? */
bool go_stacks_exact(const struct go_stacks *s, const struct go_chain *c, u32 i);
/* *found: the walk ended at a root (or is cut), and *ret is its chain. */
struct error *go_stacks_walk(struct go_stacks *s, struct go_standing *at, bool *found, u32 *ret);
/* The number of a chain of such pcs; made if new. */
struct error *go_stacks_chain(struct go_stacks *s, const u64 *pcs, u32 n, bool cut, u32 *ret);

#endif
