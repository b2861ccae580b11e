/* SPDX-License-Identifier: Apache-2.0 */
/* Who else has the CPUs: processes that are no targets, and which of them the targets talk to. */
#ifndef YRT_REPORT_OTHERS_H
#define YRT_REPORT_OTHERS_H

#include <sys/types.h>

#include "facts.h"

struct others; /* CPU time of each process, of one moment */

/* NULL: no memory. /proc/PID/stat of all processes, but OTHERS_MAX at most, is read. */
#define OTHERS_MAX 16384
struct others *others_look(void);
/*
 * Fact "others": " Of the others used most: wrk (pid 12, 0.91 CPUs, connected with it), sh (pid 40, 0.22 CPUs).": up to
 * three since then, each a twentieth of a CPU or more; "": none. Connections are those of TCP that the first target's
 * network namespace has (/proc/PID/net/tcp, tcp6 of Linux: fields 2, 3 and 10 are both addresses and the inode). Frees
 * then.
 */
void others_facts(struct others *then, const pid_t *pids, u32 n, struct facts *ret);

#endif
