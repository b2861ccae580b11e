/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_ops.tasks: goroutines, except those of Go's runtime itself. */
#ifndef YRT_GO_TASKS_H
#define YRT_GO_TASKS_H

#include "runtime_tasks.h"

extern const struct runtime_tasks_ops go_tasks;

#endif
