/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expands stacks as walkers send them: one piece of machine code may stand for several functions, which the runtime
 * knows.
 */
#ifndef YRT_EXPAND_H
#define YRT_EXPAND_H

#include <types.h>

#include "process/process.h"

/*
 * Copies a stack of n frames, leaf first, to ret and expands it on the way. Never more than max frames: what does not
 * fit is left out at the root. flags: enum expand_flag of runtime.h. p NULL: nothing is expanded. Returns the number of
 * frames.
 */
u32 expand_stack(const struct process *p, const struct frame *frames, u32 n, u32 flags, struct frame *ret, u32 max);

#endif
