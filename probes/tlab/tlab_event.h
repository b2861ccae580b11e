/* SPDX-License-Identifier: Apache-2.0 */
/* The event of java-alloc: tlab.h as the sampler sees it. */
#ifndef YRT_TLAB_EVENT_H
#define YRT_TLAB_EVENT_H

#include "tlab.h"

struct tlab_event_options { /* sampler_options.of_event */
	u64 interval;       /* bytes between samples, at least and on average */
	double share;       /* of the targets' CPU time that samples may take; 0: no limit */
};

/* sampler_stats.of_event is a struct tlab_summary. */

extern const struct event_words tlab_words; /* tlab_words.c */

#endif
