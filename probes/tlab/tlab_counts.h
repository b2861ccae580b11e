/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to the profile of java-alloc: what each sample stands for (tlab.h), by thread and node, finally scaled
 * to what threads really allocated; bytes without a stack, by the survey (tlab_survey.h).
 */
#ifndef YRT_TLAB_COUNTS_H
#define YRT_TLAB_COUNTS_H

#include <types.h>

#include "tlab.h"
#include "tlab_classes.h"
#include "tlab_threads.h"

struct tlab_counts;

struct tlab_counts_options {
	struct object *object;
	const struct targets *targets;
	struct tlab_threads *threads;
	struct collector *collector;
	bool threads_apart; /* each is shown by itself */
};

/* All that options name outlives it. */
struct error *tlab_counts_create(const struct tlab_counts_options *options, struct tlab_counts **ret);
void tlab_counts_destroy(struct tlab_counts *c);
/* Are there debug registers? If not, a refill stands for its whole buffer. */
void tlab_counts_set_watching(struct tlab_counts *c, bool watching);
/* A sample: struct tlab_join_options.both. */
struct error *tlab_counts_stack(
        void *counts, const struct tlab_class *class, const struct stack_record *record, struct frame *frames, u32 n);
/* Objects of a kind in a buffer that was given up: struct tlab_join_options.counted. */
struct error *tlab_counts_survey(void *counts, const struct tlab_class *class);
/* How many of the classes that a site gave are none. */
u64 tlab_counts_unknown(const struct tlab_counts *c);
/* When no sample comes any more: moves all into the collector's profile. */
struct error *tlab_counts_finish(struct tlab_counts *c);
/* Fills in samples, effective, unclassed, threads, bytes, unseen, survey, trust; the last five are known after
 * tlab_counts_finish(). */
void tlab_counts_summarize(const struct tlab_counts *c, struct tlab_summary *ret);

#endif
