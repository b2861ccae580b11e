/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime's tasks that wait without a thread, at one moment, for `yrt dump --logical`: runtime_ops.tasks. They are
 * read from outside while the process runs.
 */
#ifndef YRT_RUNTIME_TASKS_H
#define YRT_RUNTIME_TASKS_H

#include <stdbool.h>
#include <types.h>

#include "error.h"
#include "shared/frame.h"

struct runtime_process;

#define RUNTIME_TASK_TEXT     256
#define RUNTIME_TASK_AWAITERS 16

/* One of them, valid during the call of add() only. Text may be hostile. */
struct runtime_task {
	u64 id;                        /* distinguishes it from others of the same runtime instance */
	char name[RUNTIME_TASK_TEXT];  /* "" if it has none */
	char state[RUNTIME_TASK_TEXT]; /* "waits for a future" */
	bool on_thread; /* it runs, or its thread waits in a system call: it has its stack there, and waits there */
	u64 awaits;     /* id of the task that it waits for; 0: none, or not known */
	u64 awaited_by[RUNTIME_TASK_AWAITERS]; /* ids of tasks that are known to wait for it */
	u32 nawaited_by;
	const struct frame *frames; /* leaf first. Only what was there at one moment: of a task that runs, or moved
	                               whenever it was read, there are none */
	u32 nframes;
	u32 stop; /* enum stop_reason */
};

struct runtime_tasks_ops {
	const char *kind, *kinds; /* "asyncio task", "asyncio tasks" */
	bool all;                 /* the language knows no other way to wait: its threads show little */
	/*
	 * Calls add for each task of the instance (runtime.h: attach) that has not ended. A task that moves meanwhile
	 * may be missing or not, but all that is reported of one task is of one moment. An error of add() ends the
	 * listing.
	 */
	struct error *(*list)(void *instance, const struct runtime_process *p,
	        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx);
};

#endif
