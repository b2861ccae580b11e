/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of asyncio's event loop as one frame: what lies between the program that started a loop and the tasks and
 * callbacks that the loop runs, which is the same wall of frames in every stack (Lib/asyncio/runners.py, base_events.py,
 * selector_events.py, events.py of 3.6 to 3.14). Coroutines of asyncio that tasks await (streams, locks, gather) stay.
 */
#ifndef YRT_PYTHON_ASYNC_H
#define YRT_PYTHON_ASYNC_H

#include "python_names.h"

/* The frame of a loop: FRAME_SCRIPT at no object's address. */
#define PYTHON_ASYNC_FRAME frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, 8)
#define PYTHON_ASYNC_NAME  "asyncio (event loop)"

/*
 * Is frames[i] of a stack, leaf first, or the next Python frame outside it, the innermost of such a wall? Then ret (room
 * for 2) has frames[i], unless it is part of it, and the frame of the loop; *eaten is how many frames they stand for. Returns how
 * many are in ret; 0: no.
 */
u32 python_async_fold(struct python_names *names, struct memory *mem, const struct frame *frames, u32 i, u32 n,
        struct frame *ret, u32 *eaten);

#endif
