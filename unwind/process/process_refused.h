/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a process can not be looked into. One that ends meanwhile is refused for all kinds of reasons: to the kernel a
 * link below /proc/PID is one that may not be followed once PID is reaped (EACCES, or ESRCH). What counts is whether it
 * is still there afterwards.
 */
#ifndef YRT_PROCESS_REFUSED_H
#define YRT_PROCESS_REFUSED_H

#include <sys/types.h>
#include <types.h>

#include "error.h"

/* Is it a process, of 64 bits, that yrt may look into? */
struct error *process_check(pid_t pid);
/* Why it has no mappings. Not NULL. */
struct error *process_explain_empty(pid_t pid);
/* err, or in its place that the process has ended. Takes over err; NULL stays NULL. */
struct error *process_explain(pid_t pid, struct error *err);

#endif
