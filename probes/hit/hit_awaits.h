/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls that can be suspended (coroutines) wait: in no thread, so that nothing tells when such a wait begins or
 * ends. BPF has the calls that are under way (callee_own); what each awaits is read from the target every now and then,
 * and stands for the time since the last look (runtime_calls_ops.suspended).
 */
#ifndef YRT_HIT_AWAITS_H
#define YRT_HIT_AWAITS_H

#include "hit.h"
#include "hit_record.h"
#include "hit_slow.h"
#include "probes/event.h"
#include "unwind/error.h"

struct hit_awaits; /* of a run */

void hit_awaits_prepare(struct object *o);
/* Calls of at least over_ns are slow. */
struct error *hit_awaits_create(const struct event_host *host, u64 over_ns, struct hit_awaits **ret);
void hit_awaits_destroy(struct hit_awaits *a); /* NULL is fine; as in all of these */
/* Looks, if it is time to. */
struct error *hit_awaits_poll(struct hit_awaits *a, u64 now);
/* When it will be (now_ns()); 0: nothing is wanted. */
u64 hit_awaits_due(const struct hit_awaits *a);
/* A slow call is over: where it was suspended, longest first. */
struct error *hit_awaits_of(const struct hit_awaits *a, const struct latency_record *record, struct slow_stack *ret);

#endif
