/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread of the targets allocates, exactly, as its runtime counts it; and the factors that scale what samples
 * stand for to these amounts. A thread with few samples says little about itself, so such threads are scaled together.
 */
#ifndef YRT_TLAB_THREADS_H
#define YRT_TLAB_THREADS_H

#include <types.h>

#include "probes/targets.h"
#include "unwind/error.h"

struct tlab_threads;

struct tlab_totals {
	double bytes;  /* exact */
	double unseen; /* of them those of threads that no sample stands for */
	u64 threads;   /* that allocated */
};

/* The runtime of a process that reports its allocation; NULL: none. */
const struct instance *tlab_runtime(const struct process *p);

/* targets must outlive it. apart: threads are shown separately, so no other thread stands for one without a sample. */
struct error *tlab_threads_create(const struct targets *targets, bool apart, struct tlab_threads **ret);
void tlab_threads_destroy(struct tlab_threads *t);
/* The index of a thread, by the number of its process and by ALLOC_THREAD. */
struct error *tlab_threads_find(struct tlab_threads *t, u32 process, u64 thread, u32 *ret);
/* Reads what each has allocated so far. first: earlier amounts do not count. Later threads began at 0. */
struct error *tlab_threads_count(struct tlab_threads *t, bool first);
/* So many samples of a thread stand for so many bytes. */
void tlab_threads_add(struct tlab_threads *t, u32 index, u32 samples, double bytes);
/* When all is counted. */
void tlab_threads_scale(struct tlab_threads *t, struct tlab_totals *ret);
/* What the bytes of a thread's samples are to be multiplied by then. */
double tlab_threads_factor(const struct tlab_threads *t, u32 index);

#endif
