/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples what a runtime's threads allocate, by bytes and from outside.
 *
 * A thread takes a buffer (a TLAB) from the heap and allocates by moving its top. At each refill a uprobe's program
 * draws the distance to the next sample, exponential with the mean `interval`. The draw has no memory, so it may begin
 * anew in each buffer: every byte has the same chance. If the distance ends in this buffer, a watchpoint is set there
 * for this thread (watchpoints.h) before the thread goes on. The thread traps when it allocates over that address, and
 * the program walks its stack. A write that is no allocation is recognised by the buffer's top. Objects that are
 * reported one by one (the one for which a buffer was taken, and those outside all buffers) are samples with the
 * probability 1 - exp(-size/interval), which is that of containing such a point.
 *
 * The rate also keeps within a share of the targets' CPU time (tlab_budget.h). If the uprobes alone would take half of
 * that, they are placed in shifts (uprobe_shifts.h).
 *
 * Some of the buffers that threads gave up are read: they give bytes by class and size, of thousands of objects each.
 * Samples are weighted so that their classes agree with that, as far as both are certain (tlab_reweight.h).
 *
 * Without debug registers there are only the stacks of refills. The contents of buffers are spread over the stacks of
 * objects of that class and size (tlab_survey.h). Where that is not possible, the stack of a refill stands for its
 * whole buffer; programs that allocate in a cycle may then resonate with the size of their buffers.
 *
 * A sample by watchpoint stands for `interval` bytes, one of a reported object for size/probability, each for as many
 * objects as that makes. `interval` grows with the rate of allocation, so that the number of samples a second is
 * bounded. The runtime knows exactly what each thread allocated, and its samples are scaled to that (threads with few
 * samples together). So totals are exact, and shares have the error of random sampling, sqrt(p (1 - p) / n) for n
 * samples. If the rate of allocation changes, weights differ, and n is the effective number of samples, which is
 * smaller: the square of the estimated total over its variance.
 */
#ifndef YRT_TLAB_H
#define YRT_TLAB_H

#include <types.h>

#include "tlab_object.h"
#include "probes/targets.h"
#include "unwind/profile/collect.h"
#include "unwind/error.h"

struct tlab;

struct tlab_options {
	u64 interval;     /* mean distance in bytes, at least */
	double frequency; /* samples a second at most */
	double share;     /* of the targets' CPU time that samples may take (tlab_budget.h); 0: no limit */
	bool threads;     /* what no sample was taken of is shown by thread */
	struct object *object;
	struct targets *targets;
	struct collector *collector;
	void (*warn)(void *ctx, struct error *err); /* owns err */
	void *ctx;
};

struct tlab_summary {
	struct alloc_stats probe;
	u64 samples;            /* that became stacks */
	double effective;       /* as many samples of the same weight have the same error */
	u64 unclassed;          /* of them without the class of their object */
	u64 set, late, refused; /* watchpoints: struct watchpoints_stats */
	u64 threads;            /* that allocated */
	double bytes;           /* exact: what they allocated */
	double unseen;          /* of them no stack was seen for */
	u64 interval;           /* at the end */
	double slowed;          /* share of the targets' CPU time that was taken, as estimated */
	double placed;          /* part of the time that sites were placed (uprobe_shifts.h) */
	bool realtime, watching;
	bool survey;  /* without watchpoints: bytes by class are from buffers that were looked into (tlab_survey.h) */
	double trust; /* with watchpoints: how far shares of classes follow such buffers (tlab_reweight.h), from 0 to 1
	               */
	const char *sites; /* how they were found (runtime_alloc.origin); NULL: none yet */
};

struct error *tlab_create(const struct tlab_options *options, struct tlab **ret);
void tlab_destroy(struct tlab *a);
/* Places probes in those targets whose runtime says where. required: an error if pid has none. */
struct error *tlab_attach(struct tlab *a, pid_t pid, bool required);
/* From here on samples are taken. */
struct error *tlab_start(struct tlab *a);
/* To be called every some ms. */
struct error *tlab_poll(struct tlab *a, u64 now_ns);
/* A stack (collector_options.stack); its hash is the id of its struct alloc_record, which comes another way
 * (tlab_classes.h). */
struct error *tlab_stack(void *alloc, const struct stack_record *record, const struct frame *frames, u32 n);
/* Counts to the end, and takes the probes away. */
struct error *tlab_stop(struct tlab *a);
/*
 * Call when no more records come: scales, and moves everything into the profile: counts are bytes, second ones objects.
 */
struct error *tlab_finish(struct tlab *a);
void tlab_summary(struct tlab *a, struct tlab_summary *ret);

#endif
