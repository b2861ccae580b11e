/* SPDX-License-Identifier: Apache-2.0 */
/* Is a process there, as far as BPF will see its end? */
#ifndef YRT_PROCESS_END_H
#define YRT_PROCESS_END_H

#include <stdbool.h>
#include <sys/types.h>

/* Or it only waits to be reaped: nobody says so of one that ended before its records were taken. */
bool process_is_gone(pid_t pid);
/*
 * Or all of its threads are ending, which takes a while where CPUs are busy: BPF may have been at their ends before it
 * knew the process.
 */
bool process_is_ending(pid_t pid);

#endif
