/* SPDX-License-Identifier: Apache-2.0 */
/* Thread numbers as a process in its own pid namespace sees them. */
#ifndef YRT_OWN_TID_H
#define YRT_OWN_TID_H

#include <sys/types.h>

/*
 * What gettid() returns in a thread that is tid in /proc/pid/task here: the last of NSpid in its status (Linux 4.1).
 * tid itself if it can not be read.
 */
pid_t own_tid(pid_t pid, pid_t tid);

#endif
