/* SPDX-License-Identifier: Apache-2.0 */
/* Waits by design of Python's library and of servers written in it. */
#ifndef PYTHON_IDLE_H
#define PYTHON_IDLE_H

#include "runtime.h"

extern const struct idle_rule python_idle[];

#endif
