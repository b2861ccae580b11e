/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that wait without a thread (runtime_tasks.h), over a run. They are listed at random moments, and each that
 * waits then counts with the time since the previous moment. Listing takes at most half of sampler_options.cpu_percent.
 */
#ifndef YRT_WAIT_TASKS_H
#define YRT_WAIT_TASKS_H

#include "probes/event.h"
#include "unwind/shared/frame.h"

struct wait_tasks;

struct wait_tasks_summary {
	u64 looks, ns;
	u64 stop[STOP_MAX]; /* ns, by why walks ended */
	u64 unseen_ns;      /* of tasks that could not be read: they moved */
};

struct error *wait_tasks_create(const struct event_host *host, struct wait_tasks **ret);
void wait_tasks_destroy(struct wait_tasks *t); /* NULL is fine */
/* From here on time counts. */
void wait_tasks_start(struct wait_tasks *t);
/* Looks, if it is time to. last: in any case. */
struct error *wait_tasks_poll(struct wait_tasks *t, u64 now, bool last);
u64 wait_tasks_due(const struct wait_tasks *t);
/* All stacks that were put have been taken: counts them. */
void wait_tasks_drain(struct wait_tasks *t, u32 epoch);
const struct wait_tasks_summary *wait_tasks_summary(const struct wait_tasks *t);

#endif
