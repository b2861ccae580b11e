/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks whose blocks are watched: where they are in the profile, and what is left of each at the end. */
#ifndef YRT_LEAK_STACKS_H
#define YRT_LEAK_STACKS_H

#include "leak.h"
#include "leak_verdict.h"
#include "leak_watch.h"
#include "unwind/profile/collect.h"
#include "unwind/profile/profile.h"
#include "unwind/table.h"

#define LEAK_SLOTS 48 /* of time, in which blocks were made; they become longer with the run */

struct leak_site { /* a stack */
	u64 hash;
	u32 node;                                                    /* in the profile */
	u64 seen[LEAK_SLOTS], blocks[LEAK_SLOTS], bytes[LEAK_SLOTS]; /* left, by when they were made */
	struct leak_stack all;
	double bytes_made, calls_made; /* in windows, with what they stand for */
	struct leak_seen watch;        /* what windows left of them */
};

struct leak_stacks {
	struct leak_site *of;
	u32 n;
	struct table by_hash; /* places in of, + 1 */
	u64 began_ns, slot_ns;
	u64 seen, bytes; /* left */
};

void leak_stacks_begin(struct leak_stacks *s, u64 now);
void leak_stacks_free(struct leak_stacks *s);
/* A stack has come, and has its place. */
struct error *leak_stacks_add(struct leak_stacks *s, u64 hash, u32 node);
/* The same of one that gets its place now, unless filters hide it. */
struct error *leak_stacks_place(struct leak_stacks *s, struct collector *c, const struct stack_record *record,
        const struct frame *frames, u32 n);
/* A block of one is left; of an unknown one: nothing happens. */
void leak_stacks_left(struct leak_stacks *s, const struct leak_block *block);
struct leak_site *leak_stacks_find(const struct leak_stacks *s, u64 hash);
/* By thirds of the run that ends now. */
void leak_stacks_thirds(const struct leak_stacks *s, const struct leak_site *site, u64 now, struct leak_left *ret);

#endif
