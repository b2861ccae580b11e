/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that runs a program on each CPU while that works: what runs at its ticks is what time is spent on. */
#ifndef YRT_CPU_TICKS_H
#define YRT_CPU_TICKS_H

#include <types.h>

#include "unwind/error.h"

struct cpu_ticks { /* all zero at first */
	int *fd;   /* an event for each CPU */
	u32 n;
};

/* program: the descriptor of one of the type perf_event. What was opened before an error is for cpu_ticks_close(). */
struct error *cpu_ticks_open(struct cpu_ticks *t, u32 hz, int program);
void cpu_ticks_close(struct cpu_ticks *t);

#endif
