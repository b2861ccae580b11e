/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who of a process is there. Its threads share its memory and its files, and /proc shows these at each of them, but not
 * at one that has ended: the first thread of a process may end before others (pthread_exit() in main()).
 */
#ifndef YRT_PROC_PATH_H
#define YRT_PROC_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <types.h>

/*
 * By which number /proc shows what the process has: pid, or another thread's once the first one has ended. 0: all of
 * its threads have ended or are ending, which takes a while where CPUs are busy. One that /proc hides (hidepid) counts
 * as there.
 */
pid_t living_thread(pid_t pid);
/* The same in another place than /proc. */
pid_t living_thread_in(const char *proc, pid_t pid);
/* All of its threads have ended. Half the cost of living_thread(), for who asks it of many processes all the time. */
bool process_is_gone(pid_t pid);
/* "/proc/PID/name" of a thread that lives; of the first one, if none does. */
void proc_path(char *ret, size_t size, pid_t pid, const char *name);
#define PROC_MAP_PATH 96
/* What thread tid has mapped from start to end: the kernel finds the file, whatever became of its name. */
void proc_map_path(char ret[PROC_MAP_PATH], pid_t tid, u64 start, u64 end);

#endif
