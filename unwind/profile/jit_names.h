/* SPDX-License-Identifier: Apache-2.0 */
/* What processes say of code that they compiled themselves: in /tmp/perf-PID.map, or to debuggers (jit_symbols.h). */
#ifndef YRT_JIT_NAMES_H
#define YRT_JIT_NAMES_H

#include "process/process.h"
#include "table.h"

/* processes: what is known of each so far, empty at first. */
void jit_names_free(struct table *processes);
/* The name of the code at addr in p, valid until the next call; *ret is NULL if there is none. */
struct error *jit_names_find(struct table *processes, const struct process *p, u64 addr, const char **ret);

#endif
