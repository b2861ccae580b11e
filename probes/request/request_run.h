/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of `yrt requests` is asked, and what it knows at its end. */
#ifndef YRT_REQUEST_RUN_H
#define YRT_REQUEST_RUN_H

#include "probes/hit/hit_spec.h"
#include "request.h"
#include "request_table.h"

#define REQUEST_RUNS_MAX 8

struct request_options { /* sampler_options.of_event */
	struct hit_spec begin, end, run[REQUEST_RUNS_MAX], rest;
	u32 nruns;
	bool has_begin, has_end, has_rest; /* none: servers that are known (request.c) */
	u32 key;                           /* from 1, an argument of these functions; 0: the first */
	u64 over_ns;
};

struct request_summary { /* sampler_stats.of_event */
	struct request_counts counts;
	const struct request_table *table; /* valid as long as the sampler */
	u64 over_ns;
	double watched; /* the part of the time, where requests are followed in shifts; 0: all of it */
};

struct event_command;
struct event_words;
extern const struct event_command request_command;
extern const struct event_words request_words;

#endif
