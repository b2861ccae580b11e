/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks whose walks met code that yrt did not know yet: a program that has just been started, a library that has just
 * been loaded. BPF sends its registers there and a copy of the stack (struct deferred_record); they are walked again
 * once the code is known, some milliseconds later.
 *
 * The copy is of the moment of the sample, all other memory is of now. So a second walk goes through native code, whose
 * frames are on the stack alone, and runtimes that say the same of theirs (runtime_ops.deferred). Where it comes to a
 * frame that the first walk had guessed and gone on from, the guess is proved, and what the first walk saw from there
 * on is taken, VMs' frames too.
 */
#ifndef YRT_DEFERRED_H
#define YRT_DEFERRED_H

#include <types.h>

#include "error.h"
#include "process/process.h"
#include "shared/record.h"

struct deferred;

struct deferred_sink {
	struct process *(*find)(void *ctx, u32 number); /* NULL: unknown */
	/* A stack as it is now believed to be; record->stop says whether it is whole, was: why the first walk ended. */
	struct error *(*stack)(
	        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, u32 was);
	/* May stacks with these frames be handed out? NULL: all may. Not asked when no stack can wait any more. */
	bool (*ready)(void *ctx, const struct frame *frames, u32 n);
	void *ctx;
};

/* NULL: out of memory. */
struct deferred *deferred_create(const struct deferred_sink *sink);
void deferred_destroy(struct deferred *l);
/* One piece, checked: size is what arrived. What makes no sense, or is too much, is dropped. */
struct error *deferred_piece(struct deferred *l, const struct deferred_record *record, size_t size);
/* Is this stack one of them? Then it is kept. */
struct error *deferred_hold(
        struct deferred *l, const struct stack_record *record, const struct frame *frames, u32 n, bool *held);
/* Counts more of a stack that is kept. False: there is none of this hash. */
bool deferred_add(struct deferred *l, u64 hash, u64 value, u64 more);
/* Walks those again whose processes are known better by now; those that waited for too long, or all, are handed out as
 * they are. */
struct error *deferred_settle(struct deferred *l, u64 now_ns, bool all);

#endif
