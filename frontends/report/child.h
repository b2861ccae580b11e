/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that a report measures with. None runs for longer than it may: a report ends when -d says. */
#ifndef YRT_REPORT_CHILD_H
#define YRT_REPORT_CHILD_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

#define CHILD_GRACE_S 4.0 /* between being asked to end and being killed */

/*
 * Waits for a child. From until on (now_ns(); 0: no limit) it is asked to end by SIGINT, and later killed. *late:
 * it was killed. status as of waitpid().
 */
struct error *child_wait(pid_t child, u64 until, int *status, bool *late);
/*
 * This program itself, by its command line. output: a file for what it prints, without its messages; NULL: as it is.
 * An error says that it was too slow, that it could not be started, or how it ended.
 */
struct error *child_yrt(const char *const *arguments, const char *output, u64 until);

#endif
