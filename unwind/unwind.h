/* SPDX-License-Identifier: Apache-2.0 */
/* A walk in user space, through the same walkers as in the kernel: of a stopped thread, a core file, a test's memory.
 */
#ifndef YRT_UNWIND_H
#define YRT_UNWIND_H

#include <arch.h>
#include <types.h>

#include "process/process.h"
#include "shared/frame.h"

struct unwind_registers {
	u64 reg[ARCH_NREGS]; /* DWARF numbers */
	u64 thread_pointer;
};

/*
 * Walks from these registers; at most max frames, leaf first. *n is their number and the result says why it ended; the
 * thread must not run meanwhile. NULL from malloc counts as STOP_ARENA with no frames.
 */
enum stop_reason unwind_stack(
        const struct process *p, const struct unwind_registers *regs, struct frame *frames, u32 max, u32 *n);

/*
 * Walks what stands in memory without a thread, with mem for the target's memory: start() sets registers and cursors as
 * if a walk had come there. No registers hold but those that it marks in w->valid.
 */
enum stop_reason unwind_task(const struct runtime_process *p, struct memory *mem,
        void (*start)(const void *ctx, struct walk *w), const void *ctx, struct frame *frames, u32 max, u32 *n);

/*
 * Walks on from where a walk was cut, with mem for the target's memory, through native code and what runtimes can walk
 * late, on the size bytes of stack from from->addr on. Ends before the frame that `from` guessed if it comes there: the
 * result is STOP_NONE then, or why a runtime's frames are missing on the way.
 */
enum guess_found {
	GUESS_MISSED,
	GUESS_REPEATED, /* by a guess of this walk */
	GUESS_PROVED,
};
struct deferred_record;
enum stop_reason unwind_again(const struct process *p, const struct deferred_record *from, u32 size, struct memory *mem,
        struct frame *frames, u32 max, u32 *n, enum guess_found *found);

#endif
