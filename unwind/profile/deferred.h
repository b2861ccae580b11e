/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred walks: of stacks that reached code which yrt did not know yet, of a program that has just started or a
 * library that has just been loaded. BPF sends the registers at that point and a copy of the stack (struct
 * deferred_record). The stack is walked again once the code is known, some milliseconds later.
 *
 * The copy is of the moment of the sample; all other memory is read now. So a deferred walk goes only through native
 * code, whose frames are entirely on the stack, and through runtimes that declare the same of theirs
 * (runtime_ops.deferrable). If it reaches a frame that the first walk had guessed and continued from, the guess is
 * proved. Then the frames that the first walk found from there on are used, also those of VMs. The same holds for a
 * frame that a runtime said is its innermost (runtime_ops.resume, exact).
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
	/* A stack as it is known now. record->stop says whether it is complete; was: why the first walk ended. */
	struct error *(*stack)(
	        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, u32 was);
	/* May stacks with these frames be handed out? NULL: all may. Not asked when no stack may wait any more. */
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
/* Do stacks of this process wait? */
bool deferred_waits(const struct deferred *l, u32 number);
/*
 * Walks the stacks again whose processes are known better now. Those that have waited too long, or all, are handed out
 * as they are.
 */
struct error *deferred_settle(struct deferred *l, u64 now_ns, bool all);

#endif
