/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that are looked at again and again from outside, by what they hold: there are far more of them than debug
 * registers. One that holds what it held in its window, when free() was still probed, is likely to be the same block: a
 * free one has the allocator's links in it, and a new owner writes there. That is no proof, so it blames no stack: it
 * says which few blocks are worth a register. Blocks that hold what those of another stack do are left alone.
 */
#ifndef YRT_LEAK_AGAIN_H
#define YRT_LEAK_AGAIN_H

#include <stdbool.h>

#include "leak.h"
#include "unwind/error.h"

#define LEAK_AGAIN_WORDS 4 /* glibc's header, and the first 24 bytes: each block has room for them */

struct leak_again;

struct leak_again_block {
	struct leak_key key;
	struct leak_block block;
	u64 holds[LEAK_AGAIN_WORDS];
	u64 since_ns, due_ns;
	u32 words;  /* that are compared, the header among them */
	bool there; /* in the ledger */
	bool taken; /* it had a register */
};

enum leak_again_end {
	LEAK_AGAIN_FREED,   /* it holds nothing of what it held, or is not mapped any more */
	LEAK_AGAIN_CHANGED, /* the program may have done so */
	LEAK_AGAIN_OUT,     /* it gives way to another, or its process has ended */
};

struct leak_again_options {
	/* A block is not looked at any more. */
	void (*end)(void *ctx, const struct leak_again_block *b, enum leak_again_end how);
	void *ctx;
};

struct error *leak_again_create(const struct leak_again_options *options, struct leak_again **ret);
void leak_again_destroy(struct leak_again *a); /* NULL is fine */
/* A block, as it is now. False: others are worth more, another stack's hold the same, or it cannot be read. */
bool leak_again_add(struct leak_again *a, const struct leak_key *key, const struct leak_block *block, bool header);
/* Looks at those that are due. */
void leak_again_look(struct leak_again *a, u64 now);
/* Does it hold now what it held? */
bool leak_again_holds(const struct leak_again_block *b);
/* The next call of leak_again_in_ledger() is the first for all that the ledger has now. */
void leak_again_begin_ledger(struct leak_again *a);
/* NULL: a block of the ledger is none of these. */
struct leak_again_block *leak_again_in_ledger(struct leak_again *a, const struct leak_key *key);
/* Those that were not found there are forgotten, without a word: free() was seen. */
void leak_again_end_ledger(struct leak_again *a);
struct leak_again_block *leak_again_all(struct leak_again *a, u32 *n);
/* One of them, without a word. */
void leak_again_remove(struct leak_again *a, const struct leak_again_block *b);
/* Ends all, as LEAK_AGAIN_OUT. */
void leak_again_end_all(struct leak_again *a);

#endif
