/* SPDX-License-Identifier: Apache-2.0 */
/* What BPF and user space share for measuring calls (latency.h). */
#ifndef YRT_HIT_LATENCY_H
#define YRT_HIT_LATENCY_H

#include "hit_arguments.h"
#include "hit_calls.h"
#include "hit_slow.h"
#include "latency.h"
#include "probes/event.h"
#include "probes/object.h"
#include "unwind/process/process.h"

void hit_latency_prepare(struct object *o, const struct hit_options *options);
/* Only what calls of languages need. */
void hit_latency_prepare_counts(struct object *o, const struct hit_options *options);
/* Tells BPF how stacks of the process are described if they move. */
void hit_latency_tell(struct object *o, const struct process *p);
void hit_latency_prepare_jumps(struct object *o);
struct hit_jumps { /* that BPF knows; all zero at first */
	struct latency_jump *of;
	u32 n;
};
/* Tells BPF of a jump. *ret: its number, from 1. */
struct error *hit_latency_jump(struct object *o, struct hit_jumps *jumps, const struct latency_jump *jump, u64 *ret);

struct hit_latency; /* of a run */
/* calls: are told of jumps, and outlive it. */
struct error *hit_latency_create(const struct event_host *host, const struct hit_options *options,
        struct hit_calls *calls, struct hit_latency **ret);
void hit_latency_destroy(struct hit_latency *l); /* NULL is fine */
/* The function at addr of the image, as process p maps it, is measured for that -e. *number: for cookies. */
struct error *hit_latency_add(
        struct hit_latency *l, u32 spec, const struct process *p, struct image *img, u64 addr, u32 *number);
/* The same of a function of a language. */
struct error *hit_latency_add_callee(struct hit_latency *l, u32 spec, const struct runtime_callee *callee, u32 *number);
/* What a record is of; NULL: of nothing that is known. */
struct hit_function *hit_latency_function(const struct hit_latency *l, const struct latency_record *record);
/* Where the call was suspended, longest first, in SLOW_AWAITS places; texts are malloc'd. */
struct error *hit_latency_awaits(
        const struct hit_latency *l, const struct latency_record *record, struct slow_stack *ret);
/* Watches switches, if --over wants to know what calls wait for. */
struct error *hit_latency_watch(struct hit_latency *l);
/* A struct latency_record or latency_target. arguments: has those of calls of languages; or NULL. */
struct error *hit_latency_record(
        struct hit_latency *l, const void *data, size_t size, const struct hit_arguments *arguments);
/* Before stacks of the run are forgotten. */
void hit_latency_name(struct hit_latency *l);
/* Looks at calls that are suspended. */
struct error *hit_latency_poll(struct hit_latency *l, u64 now);
u64 hit_latency_due(const struct hit_latency *l); /* when it wants to be polled (now_ns()); 0: at any time */
/* So far; valid until it is asked again. */
struct latency_summary *hit_latency_summary(struct hit_latency *l);

#endif
