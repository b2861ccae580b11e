/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YRT_CHILDREN_H
#define YRT_CHILDREN_H

#include <sys/types.h>
#include <types.h>

#include "error.h"

/* The processes that a process has made: the kernel lists them by the thread that did. *ret is malloc'd. */
struct error *children_list(pid_t pid, pid_t **ret, u32 *n);
/* How many there are, as far as they can be listed. */
u32 children_count(pid_t pid);

#endif
