/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector, as the files that make it up see it: collect.c takes records, collect_place.c finds a stack's place in
 * the tree.
 */
#ifndef YRT_COLLECT_INTERNAL_H
#define YRT_COLLECT_INTERNAL_H

#include "collect.h"
#include "pattern.h"
#include "prove.h"
#include "table.h"
#include "timeline.h"
#include "wakers.h"

#define PARTIALS     8 /* stacks whose chunks are on their way at once: CPUs interleave */
#define FRAMES_MAX   (33 * CHUNK_FRAMES)
#define EXPANDED_MAX (2 * FRAMES_MAX)

struct partial {
	u64 hash;
	u32 nframes;
	struct frame *frames;
};

/* What a hash stands for, in one word of a table. */
#define NODE_FILTERED     COLLECTOR_FILTERED
#define NODE_IDLE         (NODE_FILTERED - 1)
#define PACKED_FRAMES     0x7fffu
#define PACKED_UNRESOLVED 0x3ffu
static inline u64 pack(u32 node, u32 frames, u32 unresolved, u32 leaf_flags, u32 all_flags)
{
	u64 guessed = !!(all_flags & FRAME_GUESS), below_approx = !!(all_flags & FRAME_APPROX),
	    approx = !!(leaf_flags & FRAME_APPROX);

	unresolved = unresolved < PACKED_UNRESOLVED ? unresolved : PACKED_UNRESOLVED;
	return node | (u64)(frames & PACKED_FRAMES) << 32 | guessed << 47 | (u64)unresolved << 48 | below_approx << 62 |
	       approx << 63;
}
_Static_assert(EXPANDED_MAX <= PACKED_FRAMES, "fifteen bits");

/* What its threads wait for (collect_options.locks), in the four bits between. */
static inline u64 pack_lock(enum lock_kind kind)
{
	return (u64)kind << 58;
}

static inline enum lock_kind packed_lock(u64 packed)
{
	return (enum lock_kind)(packed >> 58 & 15);
}
_Static_assert(LOCK_KINDS <= 16, "four bits");

/* By which rule the stack of a NODE_IDLE is idle, where others have the number of their frames. */
static inline u32 packed_idle(u64 packed)
{
	return packed >> 32 & PACKED_FRAMES;
}

struct collector {
	struct collect_options options;
	struct process *(*find)(void *ctx, u32 number);
	void *ctx;
	struct profile *profile;
	struct names *names;
	struct proofs proofs;
	struct table nodes[2];   /* by epoch */
	struct table processes;  /* of process_function() */
	struct table containers; /* by the text of a process: functions of container_functions(), two in a word */
	struct table threads;    /* of thread_function() */
	struct partial partial[PARTIALS];
	u32 next_partial;
	struct pattern include, exclude;
	struct frame *expanded; /* EXPANDED_MAX */
	const char *task;       /* in collector_place_task(): its name; else NULL */
	u32 task_number;
	u32 reason; /* the function that stands for the reason of the stack at hand; NODE_FILTERED: the reason itself */
	bool queued; /* that stack is placed for its time on the run queue (collect_options.queued) */
	struct deferred *deferred;
	struct gone *gone;
	struct wakers wakers;
	struct table repaired; /* why stacks that were walked again ended before: waits count when they are over */
	struct table held;     /* joined stacks that are still held (deferred.h), by the hash of both */
	struct table late;     /* what was counted of stack_queued() of such a stack, by that */
	struct timeline timeline;
	struct collect_stats stats;
};

/* The node of a stack, packed; inside (NULL: none) is one more frame at its leaf. */
struct error *collect_place(struct collector *c, const struct stack_record *record, const struct frame *frames, u32 n,
        const struct frame *inside, u64 *packed);

/*
 * Adds a waker's stack inside *node, from its leaf to its root, as far as it led to the wake-up (not the code that an
 * interrupt hit). *node becomes the last one.
 */
struct error *collect_waker(struct collector *c, const struct waker *waker, u32 *node);

#endif
