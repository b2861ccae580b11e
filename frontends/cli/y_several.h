/* SPDX-License-Identifier: Apache-2.0 */
/* A Y program on several processes at once: each has its own run, as its types and addresses are its own. */
#ifndef YRT_Y_SEVERAL_H
#define YRT_Y_SEVERAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#define Y_SEVERAL_MOST 64u

/*
 * Calls run() once for each process, all at the same time, each in a child of this process; prints what each wrote to
 * stdout, behind its name (json: an object of kind "process"): in the order of pids, but what has waited for a second
 * at once, in whole lines. Returns the first exit code that is not 0. SIGINT and SIGTERM end all runs.
 */
int y_several(const pid_t *pids, u32 n, bool json, int (*run)(void *ctx, pid_t pid), void *ctx);

#endif
