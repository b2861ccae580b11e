/* SPDX-License-Identifier: Apache-2.0 */
/* What of the memory that a run has mapped and touched is still there at its end. */
#ifndef YRT_GROWTH_LEFT_H
#define YRT_GROWTH_LEFT_H

#include <stdbool.h>

#include "growth_ledger.h"
#include "leak_stacks.h"
#include "probes/event.h"

struct growth_left {
	bool at_exec;             /* set before: yrt starts the command */
	u64 mapped, mapped_bytes; /* ranges, as parts of them remain */
	u64 touched_bytes;        /* in memory, or swapped out */
	u64 touched;              /* pages that were taken */
	u64 ended;                /* processes that are gone: what they had is, too, unless */
	bool at_their_end;        /* all are: then it is what each had when it ended */
	u64 unseen_bytes;         /* of ranges that are not mapped any more, though nobody was seen to unmap them */
};

/*
 * Adds each range and page to its stack as a block that is left (leak_stacks_left()). Of programs that have all ended
 * that is what the records say of them.
 */
struct error *growth_left(
        const struct event_host *host, struct growth_ledgers *of, struct leak_stacks *stacks, struct growth_left *ret);

#endif
