/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of `yrt requests` is asked, and what it knows at its end. */
#ifndef YRT_REQUEST_RUN_H
#define YRT_REQUEST_RUN_H

#include "probes/hit/hit.h"
#include "request.h"
#include "request_table.h"

#define REQUEST_RUNS_MAX 8

struct request_options {          /* sampler_options.of_event */
	struct hit_options calls; /* of functions of languages. The first member: request_calls_event has these alone */
	bool both;                /* besides servers that are known by their files (request.c) */
	struct hit_spec begin, end, run[REQUEST_RUNS_MAX], rest;
	u32 nruns;
	bool has_begin, has_end, has_rest; /* none, and no call: servers that are known (request.c) */
	u32 key;                           /* from 1, an argument of these functions; 0: the first */
	u64 over_ns;
	const char *call[HIT_SPECS_MAX]; /* begin, of servers in languages: text as of hit_parse(), */
	u32 ncalls;
	const char *begin_text; /* of begin; without an end its calls are requests, too. Not owned */
	const char *
	        call_key; /* and what tells their requests apart (hit_options.key); NULL: not said. As call not owned */
};

struct request_summary { /* sampler_stats.of_event */
	struct request_counts counts;
	const struct request_table *table; /* valid as long as the sampler */
	u64 over_ns;
	u64 raised;     /* of those that ended, of a server in a language: by an exception */
	double watched; /* the part of the time, where requests are followed in shifts; 0: all of it */
};

/* As event_ops has them. */
void request_reason(u32 reason, char *text);
enum profile_kind request_kind(u32 reason);
bool request_leads_to_program(const char *symbol);

struct event_command;
struct event_words;
extern const struct event_command request_command;
extern const struct event_words request_words;

/* Requests of servers by their files, and as calls, in one table; its data is of request_event's options. */
extern const struct event_ops request_both_event;
/* Of request_event's data. */
struct request_table *request_table_of(void *event);
bool request_serves(const void *event); /* a target is, or was, a server that is known */

#endif
