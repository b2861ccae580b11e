/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_HOTSPOT_TASKS_H
#define YRT_HOTSPOT_TASKS_H

#include "runtime_tasks.h"

/* Virtual threads, as far as they can be found. */
extern const struct runtime_tasks_ops hotspot_tasks;

#endif
