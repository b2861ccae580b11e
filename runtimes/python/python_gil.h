/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GIL, for --gil. While it is locked, the thread state that took it last shows the thread that holds it (struct
 * _gil_runtime_state of Include/internal/pycore_gil.h, the same from 3.7 to 3.14). Up to 3.11 there is one for all
 * interpreters, from 3.12 on an interpreter may have its own.
 */
#ifndef YRT_PYTHON_GIL_H
#define YRT_PYTHON_GIL_H

#include "python_image.h"
#include "runtime.h"

/* NULL if the layout of image says where it is; free-threaded builds have none. */
struct error *python_gil_known(const struct python_image *image, pid_t pid);
/* Has the walker report who holds it. runtime: address of _PyRuntime. */
void python_gil_ask(const struct python_layout *l, u64 runtime, struct python_vm *vm);

#endif
