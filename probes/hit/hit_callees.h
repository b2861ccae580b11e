/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a language that are probed: found in the targets by their runtimes (unwind/runtime_calls.h), looked for
 * again now and then, as programs define them anew, and watched by debug registers (thread_watch.h).
 *
 * A thread has four registers. If there are more functions, or if hits take more than a tenth of --max-cpu, functions
 * are watched in shifts: some of them, those that were not for longest, for a while. Calls of that while stand for the
 * others, weighted by the targets' progress (hit_pace.h).
 */
#ifndef YRT_HIT_CALLEES_H
#define YRT_HIT_CALLEES_H

#include "hit.h"
#include "hit_callee.h"
#include "probes/event.h"

struct hit_callees;
struct hit_arguments;
struct hit_inlined_all;
struct hit_latency;

void hit_callees_prepare(struct object *o, const struct hit_options *options);
/* latency: where calls are measured, else NULL; arguments: where they are read, else NULL. Both outlive it. */
struct error *hit_callees_create(const struct event_host *host, const struct hit_options *options,
        struct hit_latency *latency, struct hit_arguments *arguments, struct hit_callees **ret);
void hit_callees_destroy(struct hit_callees *c); /* NULL is fine */
/*
 * Looks for functions where that is due, and steers. An error says what a spec may not mean, or why nothing is watched.
 */
struct error *hit_callees_poll(struct hit_callees *c, u64 now);
/* When it wants to be polled next. */
u64 hit_callees_due(const struct hit_callees *c);
/* How often the function of this spec exists. */
u32 hit_callees_found(const struct hit_callees *c, u32 spec);
/* In how many turns they are watched, as registers are few; 1: all at once. */
u32 hit_callees_turns(const struct hit_callees *c);
/* That there is none, with names like that. */
struct error *hit_callees_missing(struct hit_callees *c, u32 spec);
void hit_callees_end(struct hit_callees *c);
/* As hit_shifts_hits(), hit_shifts_part(). */
double hit_callees_hits(const struct hit_callees *c);
double hit_callees_part(const struct hit_callees *c);
struct hit_unseen hit_callees_unseen(const struct hit_callees *c);
/* After the end. */
const struct hit_inlined_all *hit_callees_inlined(const struct hit_callees *c);
/* A function gets other code. */
void hit_callees_record(struct hit_callees *c, const struct callee_change *change);

#endif
