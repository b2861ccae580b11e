/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_LUAJIT_TASKS_H
#define YRT_LUAJIT_TASKS_H

#include "luajit_image.h"
#include "runtime_tasks.h"

/*
 * runtime_tasks_ops.list: coroutines of all VMs that wait to be resumed. config: struct luajit_vm in the arena. They
 * are found as the collector finds them: global_State.gc.root leads to all objects but strings. Objects that the
 * collector has found dead are left out.
 */
struct error *luajit_tasks(const struct luajit_image *image, u64 bias, u32 config, const struct runtime_process *p,
        struct error *(*add)(void *ctx, const struct runtime_task *t), void *ctx);

/* Calls add() for each object of a type (~LJ_T* of lj_obj.h) of all VMs. Of a VM that runs some may be missing. */
struct error *luajit_objects(const struct luajit_image *image, u64 bias, const struct runtime_process *p, u8 type,
        struct error *(*add)(void *ctx, u64 object), void *ctx);

#endif
