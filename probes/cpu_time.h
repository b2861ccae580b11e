/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time in nanoseconds, as the kernel counts it. */
#ifndef YRT_CPU_TIME_H
#define YRT_CPU_TIME_H

#include <sys/types.h>
#include <types.h>

/* Of all threads of a process since its start; 0: it is gone. */
u64 cpu_of_process(pid_t pid);
/*
 * CPU time of all processes since boot, in user code and in the kernel, without interrupts: the first line of
 * /proc/stat, proc(5).
 */
u64 cpu_of_machine(void);

#endif
