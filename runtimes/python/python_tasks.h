/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asyncio's tasks of 3.8 to 3.15 with the coroutines that each awaits, read from outside. Up to 3.13 they are in the
 * WeakSet asyncio.tasks._all_tasks (from 3.12 on _scheduled_tasks). From 3.14 on there is a list for each thread, and
 * one for each interpreter with the tasks of threads that have ended. In a task's object, what it waits for, its
 * coroutine and its name are consecutive words (TaskObj in Modules/_asynciomodule.c of all these); they are found by
 * their types.
 */
#ifndef YRT_PYTHON_TASKS_H
#define YRT_PYTHON_TASKS_H

#include "python_image.h"
#include "python_names.h"
#include "python_objects.h"
#include "runtime_tasks.h"

#define PYTHON_TASK_READS (1u << 23) /* enough for some 100,000 tasks */

/* As runtime_tasks_ops.list. An error says which are missing after so many reads. */
struct error *python_tasks(const struct python_image *image, u64 bias, struct python_names *names, u32 reads,
        const struct runtime_process *p, struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx);

#define PYTHON_CALL_READS 4096

/* As runtime_calls_ops.suspended. */
u32 python_suspended(const struct python_reader *r, struct python_names *names, u64 frame, struct frame *ret, u32 max);

#endif
