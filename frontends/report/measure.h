/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measurements of a report: counters, then the views that what was seen so far asks for. Each run is a process of
 * its own that leaves a recording, so that one that fails leaves the others.
 */
#ifndef YRT_REPORT_MEASURE_H
#define YRT_REPORT_MEASURE_H

#include "cost.h"
#include "counters.h"
#include "evidence.h"
#include "kept.h"
#include "probes/run.h"
#include "rule.h"
#include "unwind/process/comm.h"

struct measure {
	struct run_request *run;                  /* its targets; .sampler is copied for each run */
	double seconds;                           /* for all of it */
	const char *folder;                       /* where recordings go */
	void (*say)(void *ctx, const char *step); /* each step as it goes; may be NULL */
	void *ctx;
	volatile sig_atomic_t *stop;
	const struct rules *rules; /* what they find decides what is looked at again */
	/* Set by measure(): */
	double memory, collected, nthreads, fds; /* of the last step */
	u64 memory_at;
	pid_t busiest;   /* of the processes; 0: none ran */
	u64 end_ns;      /* then -d is over */
	double overhead; /* seconds that a view took beyond its own: attaching, reading names */
	struct counters *first;
	struct kept kept;
	char comm[COMM_TEXT]; /* of the first target, read before it can end */
	bool ended;           /* all targets have */
	struct cost cost;
};

struct error *measure(struct measure *m, struct evidence *ret);
/* `yrt dump` and `yrt heap` of a core file, into the folder and the evidence. */
struct error *measure_core(const char *folder, const char *core, struct evidence *ret);

#endif
