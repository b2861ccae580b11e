/* SPDX-License-Identifier: Apache-2.0 */
/* The GIL, locks of threading, and other reasons for which CPython waits in futex(2). */
#ifndef PYTHON_LOCKS_H
#define PYTHON_LOCKS_H

#include "runtime.h"

extern const struct lock_rule python_locks[];

#endif
