/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When samples were taken. BPF reports the hash of a stack and the time, before or after the stack itself. A sample
 * takes 8 bytes, a stack 16 and its entry in a table, until all are added to the profile.
 */
#ifndef YRT_TIMELINE_H
#define YRT_TIMELINE_H

#include <types.h>

#include "profile.h"
#include "shared/record.h"
#include "table.h"

#define TIMELINE_UNKNOWN 0xffffffffu /* no stack of this hash has arrived yet */
#define TIMELINE_NOWHERE 0xfffffffeu /* it was left out */

struct timeline_stack {
	u64 hash;
	u32 node;
};

struct timeline_sample {
	u32 stack, when;
};

struct timeline { /* starts as zeroes */
	u64 start_ns;
	struct table index; /* of stacks, by hash */
	struct timeline_stack *stacks;
	struct timeline_sample *samples;
	u32 nstacks, nsamples;
};

struct error *timeline_add(struct timeline *t, const struct time_record *record);
/* Asks where each stack is now: names may have moved it, and the answer is not available later. */
void timeline_place(struct timeline *t, u32 (*find)(void *ctx, u64 hash), void *ctx);
/* Into p->times, in order; those whose stacks never arrived are left out. t is empty then. */
struct error *timeline_finish(struct timeline *t, struct profile *p);
void timeline_free(struct timeline *t);

#endif
