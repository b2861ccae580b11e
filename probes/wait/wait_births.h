/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads wait for a CPU before they first run. They have no stack then, and the waits of others, which stand for
 * short ones without a stack, would show something else: so they are shown as the run queue, below their process.
 */
#ifndef YRT_WAIT_BIRTHS_H
#define YRT_WAIT_BIRTHS_H

#include "unwind/error.h"
#include "unwind/table.h"

struct collector;
struct wait_record;
struct wait_walker;

struct wait_births {
	struct table ns, waits; /* by the hash of a stack that was handed over */
};

void wait_births_free(struct wait_births *b);
struct error *wait_births_add(struct wait_births *b, struct wait_walker *w, const struct wait_record *r);
/* All stacks that were handed over have been taken: counts them, and returns how many ns there were. */
u64 wait_births_drain(struct wait_births *b, struct collector *c, u32 epoch);

#endif
