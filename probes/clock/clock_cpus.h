/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock ticks where targets are. A CPU's timer is stopped if no tick has hit a target there for two seconds, and
 * each thread of the targets is at another CPU, running or asleep. It is started again when a target's thread comes to
 * the CPU: the kernel moves it there, or it is new. A tracepoint sees that and wakes yrt.
 *
 * So nothing is lost while targets stay on CPUs that they used lately: what is not sampled is the time that yrt needs
 * to start the timer, once for a CPU and at most each two seconds. Time without ticks counts as lost (clock.bpf.h). A
 * timer that goes on keeps the rest of its period, so its first tick is at a random moment.
 *
 * Children of a target that are followed (-s) are known to BPF before they run, and what is selected (--select) is
 * looked at as soon as it is known. Only with -a all CPUs tick, as any that is not idle runs a target.
 */
#ifndef YRT_CLOCK_CPUS_H
#define YRT_CLOCK_CPUS_H

#include "probes/event.h"

struct clock_cpus; /* of a run */

struct error *clock_cpus_create(const struct event_host *host, struct clock_cpus **ret);
void clock_cpus_destroy(struct clock_cpus *c); /* NULL is fine */
/* Opened timers tick from now on: fds[n], for each CPU, -1 for one that has none. They outlive it, or the next call. */
void clock_cpus_set(struct clock_cpus *c, const int *fds, u32 n, u64 now);
/* Is the timer of this CPU stopped? */
bool clock_cpus_is_stopped(const struct clock_cpus *c, u32 cpu);
/* Starts timers that are wanted, and now and then stops those that are not. */
void clock_cpus_poll(struct clock_cpus *c, u64 now);

#endif
