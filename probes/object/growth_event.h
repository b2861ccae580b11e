/* SPDX-License-Identifier: Apache-2.0 */
/* The event of leak --growth, in user space (growth.h). */
#ifndef YRT_GROWTH_EVENT_H
#define YRT_GROWTH_EVENT_H

#include "growth_left.h"
#include "leak.h"

struct growth_summary { /* sampler_stats.of_event */
	struct growth_counters counters;
	struct growth_left left;
	struct leak_summary memory; /* its curve */
	u64 part;                   /* at the end one page in this many is taken */
	u64 no_room;                /* ranges */
	u32 grows;                  /* stacks that are said to grow */
	const char *report;         /* lines for people; NULL: it is not made yet */
};

extern const struct event_words growth_words; /* growth_words.c */

#endif
