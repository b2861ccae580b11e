/* SPDX-License-Identifier: Apache-2.0 */
/* The event of java-alloc: alloc.h as the sampler sees it. */
#ifndef YRT_ALLOC_EVENT_H
#define YRT_ALLOC_EVENT_H

#include "alloc.h"

struct alloc_event_options { /* sampler_options.of_event */
	u64 interval;        /* bytes between samples, at least and on average */
	double share;        /* of the targets' CPU time that samples may take; 0: no limit */
};

/* sampler_stats.of_event is a struct alloc_summary. */

#endif
