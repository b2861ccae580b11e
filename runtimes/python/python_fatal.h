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

/* runtime_ops.last_words */
bool python_last_words(void *instance, const struct runtime_dying *t, char *ret, size_t size);

#endif
