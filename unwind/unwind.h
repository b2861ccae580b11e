/* SPDX-License-Identifier: Apache-2.0 */
/* A walk in user space, through the same walkers as in the kernel: of a stopped thread, a core file, a test's memory.
 */
#ifndef YRT_UNWIND_H
#define YRT_UNWIND_H

#include <arch.h>
#include <types.h>

#include "process/process.h"
#include "shared/frame.h"
#include "shared/record.h"

struct unwind_registers {
	u64 reg[ARCH_NREGS]; /* DWARF numbers */
	u64 thread_pointer;
	const struct return_probes *probes; /* NULL: none */
	bool called;                        /* reg[REG_PC] is a return address, that of what was called */
};

/*
 * Walks from these registers; at most max frames, leaf first. *n is their number; the result says why the walk ended.
 * The thread must not run meanwhile. If malloc fails, the result is STOP_ARENA without frames.
 */
enum stop_reason unwind_stack(
        const struct process *p, const struct unwind_registers *regs, struct frame *frames, u32 max, u32 *n);

/*
 * Walks a stack in memory that no thread runs on; mem is the target's memory. start() sets registers and cursors as if
 * a walk had come there; only registers that it marks in w->valid are used.
 */
enum stop_reason unwind_task(const struct runtime_process *p, struct memory *mem,
        void (*start)(const void *ctx, struct walk *w), const void *ctx, struct frame *frames, u32 max, u32 *n);

/*
 * A deferred walk: continues where a walk was cut, through native code and runtimes with runtime_ops.deferrable. mem is
 * the target's memory; the stack is a copy of size bytes from from->addr on. If it reaches the frame that `from`
 * guessed, or resumed at, it ends before it: the result is then STOP_NONE, or why a runtime's frames are missing on the
 * way.
 */
enum guess_found {
	GUESS_MISSED,
	GUESS_REPEATED, /* by a guess of this walk */
	GUESS_PROVED,
};
struct unwind_end {
	u32 nframes;
	enum guess_found found;
	u64 pc; /* of the frame that it ended before */
};
struct deferred_record;
enum stop_reason unwind_again(const struct process *p, const struct deferred_record *from, u32 size, struct memory *mem,
        struct frame *frames, u32 max, struct unwind_end *end);

#endif
