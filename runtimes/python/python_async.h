/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What asyncio publishes for debuggers about its tasks, from 3.14 on: _Py_AsyncioModuleDebugOffsets in the section
 * .AsyncioDebug of _asyncio's extension module, or of the file that it is linked into (Modules/_asynciomodule.c of 3.14
 * and 3.15).
 */
#ifndef YRT_PYTHON_ASYNC_H
#define YRT_PYTHON_ASYNC_H

#include "python_image.h"

/* Fills vm->awaits once a file with that section is mapped; leaves it as it is if it is filled, or if something is
 * missing. */
void python_async_find(
        const struct python_image *image, u64 bias, const struct runtime_process *p, struct python_vm *vm);

/* The lists of tasks, from 3.14 on; offsets in bytes. */
struct python_task_list {
	u32 interp_head, ts_head; /* of PyInterpreterState and _PyThreadStateImpl: next and previous */
	u32 task_node, task_awaited_by, task_awaited_by_is_set; /* of a task */
};

/* False: no file with that section is mapped, or it makes no sense. */
bool python_async_list(const struct python_image *image, const struct runtime_process *p, struct python_task_list *ret);

#endif
