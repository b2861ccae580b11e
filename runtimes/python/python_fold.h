/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of frames that are the same in every stack, as one frame each, in all versions from 3.6 to 3.15:
 *
 * - The inside of asyncio's event loop: the frames between the program that started a loop and the tasks and callbacks
 *   that the loop runs (Lib/asyncio/runners.py, base_events.py, selector_events.py, events.py). Coroutines of asyncio
 *   that tasks await (streams, locks, gather) stay. uvloop's loop is its module in C with libuv in it or beside it:
 *   frames of these count if they run in uv_run(), or in the function that started asyncio's loop.
 * - The import machinery between an import statement and the module (Lib/importlib/_bootstrap.py,
 *   _bootstrap_external.py), as Python's own tracebacks leave it out.
 */
#ifndef YRT_PYTHON_FOLD_H
#define YRT_PYTHON_FOLD_H

#include "python_names.h"
#include "runtime.h"

/* The code of uv_run() in the modules that a process's loop may consist of, found once. Starts as zero. */
#define PYTHON_UVLOOP_MODULES 2
struct python_uvloop {
	const struct image *image;
	u64 start, end; /* file addresses */
};

/* Operations of the runtime: the fold group that a function is part of by its name and file, in C by that of its
 * module; its name. */
u32 python_fold_group(const char *name, const char *file, u32 flags, bool *running);
const char *python_fold_group_name(u32 number);

/* The name of a frame that stands for a fold group; NULL: it is an ordinary one. */
const char *python_fold_name(const struct frame *f);

/*
 * Is frames[i] of a stack, leaf first, or, if it is Python's, the next one outside it, the innermost frame of a fold
 * group? Then ret (room for 2) gets frames[i], unless that is part of the group, and the frame that stands for the
 * group; *eaten is how many frames they replace. Returns how many are in ret; 0: no. flags: enum expand_flag.
 */
u32 python_fold(struct python_names *names, struct python_uvloop uvloop[PYTHON_UVLOOP_MODULES],
        const struct runtime_process *p, const struct frame *frames, u32 i, u32 n, u32 flags, struct frame *ret,
        u32 *eaten);

#endif
