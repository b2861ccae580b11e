/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a language's functions with their arguments, as text: what BPF has read of them (hit_values.h), in the
 * language's words.
 */
#ifndef YRT_HIT_ARGUMENTS_H
#define YRT_HIT_ARGUMENTS_H

#include "hit.h"
#include "hit_values.h"
#include "probes/event.h"
#include "unwind/process/process.h"
#include "unwind/runtime_calls.h"

struct hit_call_count {
	const char *text; /* "orders.views.checkout(id = 3)", hostile */
	u64 calls;
};

struct hit_arguments; /* of a run */

/* counted: for counts of calls by argument. slow: for the list of slow calls. */
void hit_arguments_prepare(struct object *o, bool counted, bool slow);
struct error *hit_arguments_create(const struct event_host *host, struct hit_arguments **ret);
void hit_arguments_destroy(struct hit_arguments *a); /* NULL is fine */
/*
 * numbers: for BPF, of its arguments and, for slow calls, of what it returns; 0: these cannot be told, or there is no
 * room for more functions. options outlive `a`.
 */
struct error *hit_arguments_add(struct hit_arguments *a, const struct process *p, const struct hit_options *options,
        u32 spec, const struct runtime_callee *callee, u32 numbers[2]);
/* The same of a native function by its key (hit_native_key.h). regs: of its arguments, as there. */
struct error *hit_arguments_add_native(
        struct hit_arguments *a, const struct hit_options *options, u32 spec, const u8 *regs, u32 nregs, u32 *number);
/* ERROR_USAGE: it has no argument that the spec's handler wants. */
struct error *hit_arguments_check(
        const struct process *p, const struct hit_options *options, u32 spec, const struct runtime_callee *callee);
/* A struct values_record. */
struct error *hit_arguments_record(struct hit_arguments *a, const struct values_record *record);
/* The call of this key; NULL: it is not known, or there was no room for it. */
const char *hit_arguments_text(const struct hit_arguments *a, u64 key);
/* What a slow call returned, whose record has just come; NULL: it is not known, or nothing. */
const char *hit_arguments_result(const struct hit_arguments *a, const struct latency_record *record);
/* All calls by their texts, the most frequent first; *n of them. malloc'd, texts live as long as `a`. */
struct error *hit_arguments_counts(struct hit_arguments *a, struct hit_call_count **ret, u32 *n);

#endif
