/* SPDX-License-Identifier: Apache-2.0 */
/* Why nothing was seen of a process, so that an empty picture is not taken for a result. */
#ifndef YRT_IDLE_H
#define YRT_IDLE_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Writes a line on what each process does at this moment: it is stopped, its threads sleep (and where in the kernel),
 * or its children use CPU and were not followed. Of many the first few. seconds: how long they were sampled.
 */
void idle_explain(FILE *out, const pid_t *pids, int n, double seconds, int follows);
/* The same where what is counted is no CPU time: only of processes that are stopped. */
void idle_explain_stopped(FILE *out, const pid_t *pids, int n);

#endif
