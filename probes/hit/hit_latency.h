/* SPDX-License-Identifier: Apache-2.0 */
/* What BPF and user space share for measuring calls (latency.h). */
#ifndef YRT_HIT_LATENCY_H
#define YRT_HIT_LATENCY_H

#include "latency.h"
#include "probes/object.h"
#include "unwind/process/process.h"

void hit_latency_prepare(struct object *o, u64 over_ns);
/* Tells BPF how stacks of the process are described if they move. */
void hit_latency_tell(struct object *o, const struct process *p);
/* Of all CPUs. */
void hit_latency_sum(struct object *o, struct latency_stats *ret);

#endif
