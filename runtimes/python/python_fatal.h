/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Py_FatalError() said when it ended the process. CPython writes the text to stderr and keeps it nowhere, but its
 * pointer is found again: Py_FatalError() and _Py_FatalErrorFunc() pass it to fatal_error() from a register that this
 * one saves on the stack (3.10 to 3.15 of GCC and Clang), and callers pass a constant. Code is read as it was compiled;
 * where a jump leads between the load of a register and the call, nothing is believed.
 */
#ifndef YRT_PYTHON_FATAL_H
#define YRT_PYTHON_FATAL_H

#include "runtime.h"

/* As runtime_ops.last_words; sp: the thread's stack pointer. */
bool python_last_words(
        const struct runtime_process *p, const struct frame *frames, u32 n, u64 sp, char *ret, size_t size);

#endif
