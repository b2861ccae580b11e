/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The uprobes where calls of measured functions end (hit_tails.h), in each process. Jumps of which only the process
 * knows where they lead are followed as they are seen: a call that makes one before that has no time.
 */
#ifndef YRT_HIT_CALLS_H
#define YRT_HIT_CALLS_H

#include "hit_shifts.h"
#include "latency.h"
#include "probes/event.h"
#include "unwind/process/process.h"

struct hit_calls; /* of a run */

/* shifts outlive it. */
struct error *hit_calls_create(const struct event_host *host, struct hit_shifts *shifts, struct hit_calls **ret);
void hit_calls_destroy(struct hit_calls *c); /* NULL is fine */
/*
 * Of the function at addr. what: as the user calls it, lives as long as the run; path: of the image, for the kernel;
 * number: hit_latency_add()'s. Warns of jumps whose end is not known.
 */
struct error *hit_calls_place(struct hit_calls *c, const char *what, const struct process *p, struct image *img,
        const char *path, u64 addr, u32 number);
/* A jump was seen for the first time; it is followed by the next hit_calls_poll(). */
struct error *hit_calls_ask(struct hit_calls *c, const struct latency_target *target);
struct error *hit_calls_poll(struct hit_calls *c);

#endif
