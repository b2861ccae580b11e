/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes of a machine a report looks at, where nobody has named them. */
#ifndef YRT_REPORT_TARGETS_H
#define YRT_REPORT_TARGETS_H

#include "counters.h"
#include "probes/run.h"

#define TARGETS_MOST 12 /* of a machine */

/*
 * Every process of the machine but the kernel's threads and this program's; ret is malloc'd. More than
 * COUNTERS_PROCESSES are cut.
 */
struct error *targets_everyone(pid_t **ret, u32 *n);
/* Those that ran, wanted a CPU, or woke up often between two readings become targets, the busiest first. */
struct error *targets_busy(struct run_request *r, const struct counters *before, const struct counters *after);
/* The one that used most CPU between two readings; 0: none. */
pid_t targets_busiest(const struct counters *before, const struct counters *after);

#endif
