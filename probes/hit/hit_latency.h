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
void hit_latency_prepare_jumps(struct object *o);
struct hit_jumps { /* that BPF knows; all zero at first */
	struct latency_jump *of;
	u32 n;
};
/* Tells BPF of a jump. *ret: its number, from 1. */
struct error *hit_latency_jump(struct object *o, struct hit_jumps *jumps, const struct latency_jump *jump, u64 *ret);
/* Of all CPUs. */
void hit_latency_sum(struct object *o, struct latency_stats *ret);

#endif
