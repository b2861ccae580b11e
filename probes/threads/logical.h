/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that wait without a thread, as runtimes list them (runtime_tasks.h): a part of a dump. */
#ifndef YRT_LOGICAL_H
#define YRT_LOGICAL_H

#include "dump.h"
#include "unwind/runtime_tasks.h"

struct dump_task {
	struct process *process;
	const struct runtime_tasks_ops *ops;
	u64 id;             /* the same in awaits and awaited_by of others of its process */
	char *name, *state; /* hostile */
	u64 awaits;         /* 0: none */
	u64 awaited_by[RUNTIME_TASK_AWAITERS];
	u32 nawaited_by;
	struct frame *frames;
	u32 nframes, stop;
};

/*
 * Adds the tasks of a process to the list. For each runtime that cannot list its tasks, warn() is called, which owns
 * err, and list->partial is set.
 */
struct error *logical_take(
        struct process *p, void (*warn)(void *ctx, struct error *err), void *ctx, struct dump_list *list);
void logical_free(struct dump_list *list);
/* Names their stacks: number i of the list is below the root of the profile as task i + 1 (task_of_function()). */
struct error *logical_name(struct collector *c, const struct dump_list *list);

#endif
