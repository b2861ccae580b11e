/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks whose walks met code that yrt did not know yet: a program that has just been started, a library that has just
 * been loaded. BPF sends its registers there and a copy of the stack (struct late_record); they are walked again once
 * the code is known, some milliseconds later.
 *
 * The copy is of the moment of the sample, all other memory is of now. So a second walk goes through native code, whose
 * frames are on the stack alone, and runtimes that say the same of theirs (runtime_ops.late). Where it comes to a frame
 * that the first walk had guessed and gone on from, the guess is proved, and what the first walk saw from there on is
 * taken, VMs' frames too.
 */
#ifndef YRT_LATE_H
#define YRT_LATE_H

#include <types.h>

#include "error.h"
#include "process/process.h"
#include "shared/record.h"

struct late;

struct late_sink {
	struct process *(*find)(void *ctx, u32 number); /* NULL: unknown */
	/* A stack as it is now believed to be; record->stop says whether it is whole, was: why the first walk ended. */
	struct error *(*stack)(
	        void *ctx, const struct stack_record *record, const struct frame *frames, u32 n, u32 was);
	/* May stacks with these frames be handed out? NULL: all may. Not asked when no stack can wait any more. */
	bool (*ready)(void *ctx, const struct frame *frames, u32 n);
	void *ctx;
};

/* NULL: out of memory. */
struct late *late_create(const struct late_sink *sink);
void late_destroy(struct late *l);
/* One piece, checked: size is what arrived. What makes no sense, or is too much, is dropped. */
struct error *late_piece(struct late *l, const struct late_record *record, size_t size);
/* Is this stack one of them? Then it is kept. */
struct error *late_hold(
        struct late *l, const struct stack_record *record, const struct frame *frames, u32 n, bool *held);
/* Counts more of a stack that is kept. False: there is none of this hash. */
bool late_add(struct late *l, u64 hash, u64 value, u64 more);
/* Walks those again whose processes are known better by now; those that waited for too long, or all, are handed out as
 * they are. */
struct error *late_settle(struct late *l, u64 now_ns, bool all);

#endif
