/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From samples to the profile of java-alloc: what each sample stands for (alloc.h), by thread and node, finally scaled
 * to what threads really allocated; bytes without a stack, by the survey (alloc_survey.h).
 */
#ifndef YRT_ALLOC_COUNTS_H
#define YRT_ALLOC_COUNTS_H

#include <types.h>

#include "alloc.h"
#include "alloc_classes.h"
#include "alloc_threads.h"

struct alloc_counts;

struct alloc_counts_options {
	struct object *object;
	const struct targets *targets;
	struct alloc_threads *threads;
	struct collector *collector;
	bool threads_apart; /* each is shown by itself */
};

/* All that options name outlives it. */
struct error *alloc_counts_create(const struct alloc_counts_options *options, struct alloc_counts **ret);
void alloc_counts_destroy(struct alloc_counts *c);
/* Are there debug registers? If not, a refill stands for its whole buffer. */
void alloc_counts_set_watching(struct alloc_counts *c, bool watching);
/* A sample: struct alloc_join_options.both. */
struct error *alloc_counts_stack(
        void *counts, const struct alloc_class *class, const struct stack_record *record, struct frame *frames, u32 n);
/* Objects of a kind in a buffer that was given up: struct alloc_join_options.counted. */
struct error *alloc_counts_survey(void *counts, const struct alloc_class *class);
/* How many of the classes that a site gave are none. */
u64 alloc_counts_unknown(const struct alloc_counts *c);
/* When no sample comes any more: moves all into the collector's profile. */
struct error *alloc_counts_finish(struct alloc_counts *c);
/* Fills in samples, effective, unclassed, threads, bytes, unseen, survey, trust; the last five are known after
 * alloc_counts_finish(). */
void alloc_counts_summarize(const struct alloc_counts *c, struct alloc_summary *ret);

#endif
