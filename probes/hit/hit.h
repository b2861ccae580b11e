/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hits of probed places: functions and USDT probes of files (uprobes), tracepoints of the kernel. Each hit by a
 * target's thread counts for its stack; beyond the budget a random part of them is taken, weighted.
 *
 * Places are looked for in the files that a process maps, and again when it maps others. Before a program is started
 * they are placed in its file and in the libraries that it is linked with.
 */
#ifndef YRT_HIT_H
#define YRT_HIT_H

#include <stdio.h>
#include <sys/types.h>

#include "hit_record.h"
#include "hit_spec.h"

#define HIT_SPECS_MAX LATENCY_SPECS

struct object;
struct process;
struct hit_conditions { /* the first member of what evaluates them (y/y_condition.h) */
	struct error *(*put)(struct hit_conditions *c, struct object *o); /* into the run */
	struct error *(*say)(
	        struct hit_conditions *c, struct object *o); /* at the end: NULL, or what calls did not count */
};

struct hit_fit { /* the first member of what knows for which processes conditions hold (ylang/run/conditions.h) */
	/*
	 * Do they hold in a process that has the functions? process: its number. False: its calls do not count; *why:
	 * the first time, if it has any.
	 */
	bool (*fits)(struct hit_fit *fit, u32 process, pid_t pid, struct error **why);
};

struct hit_options { /* sampler_options.of_event */
	struct hit_spec spec[HIT_SPECS_MAX];
	u32 n;
	bool returns;                             /* latency: how long calls take, of one function */
	u64 over_ns;                              /* stacks only of calls that take at least so long */
	bool arguments;                           /* count calls of a language's functions by their arguments */
	bool handled;                             /* by a Y program's handlers, of functions of a language alone: */
	u32 handler[HIT_SPECS_MAX][2];            /* as struct callee_watch has them */
	const char *const *wanted[HIT_SPECS_MAX]; /* the arguments that it reads, by name or number ("0"), */
	u32 nwanted[HIT_SPECS_MAX];               /* at most VALUES_MAX */
	const char *condition[HIT_SPECS_MAX]; /* in Y, of --if: calls that do not meet it do not count; NULL: none */
	struct hit_conditions *conditions;    /* NULL: no -e has one. Not owned */
	struct hit_fit *fit;                  /* with conditions. Not owned */
	u64 listed_ns; /* calls are requests (request_calls.c), over_ns is 1: those are shown that last so long */
	u64 looked_ns; /* where calls of so long are suspended is looked at; 0: over_ns */
	/* It is enough if a target has one of the functions; else this is the error. NULL: all are needed. */
	struct error *(*none)(void);
	/*
	 * Only these arguments are read: "1[REQUEST_METHOD],1[PATH_INFO]", of native functions as hit_native_key.h has
	 * it; NULL: all, of native functions none. Not owned.
	 */
	const char *key[HIT_SPECS_MAX];
	u8 rank[HIT_SPECS_MAX]; /* as of struct runtime_server */
};

/* Calls of a language's functions that may not have been seen (hit_callees.h). */
struct hit_unseen {
	u32 threads; /* that began while others were being watched (thread_watch_missed()) */
	u32 changes; /* functions that got other code, and */
	u64 ns;      /* how long it took until that was watched, or the run was over, together */
	u64 of_ns;   /* of so much time of such functions */
};

struct hit_call_count;
struct hit_inlined_all;
struct hit_latency;
struct latency_record;

struct hit_summary { /* sampler_stats.of_event of probe */
	struct hit_unseen unseen;
	struct hit_call_count *calls; /* by their arguments (hit_arguments.h); owned by the event */
	u32 ncalls;
	const struct hit_inlined_all *inlined; /* NULL: nothing is; owned by the event */
};

/* Adds what -e says. */
struct error *hit_add(struct hit_options *o, const char *text);

bool hit_wants_arguments(const struct hit_options *o); /* its Y handlers */
/* Does the condition of this -e hold in the process, if it has one? As hit_fit. */
bool hit_holds(const struct hit_options *o, u32 spec, const struct process *p, struct error **why);

/* Of latency_event's data, for an event that is made of it. */
struct hit_latency *hit_latency_of(const void *event);
/* With what the call was made, of a language's function; NULL: not known. */
const char *hit_text_of(const void *event, const struct latency_record *record);
bool hit_found_any(const void *event); /* a target has, or had, at least one of its functions */
double hit_watched(const void *event); /* sampler_stats.probed */

/* hit_command.c, latency_words.c: probes/event_command.h */
extern const struct event_command hit_command, latency_command;
extern const struct event_words hit_words, latency_words;

#endif
