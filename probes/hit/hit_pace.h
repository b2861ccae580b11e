/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls of a shift (hit_callees.h) stand for: the targets' progress. Hits slow a function that is called without
 * pause while it is watched, so a shift sees fewer calls of it than lie in as much of other time.
 *
 * Progress is CPU time without what hits cost. That cost is measured on yrt itself, and a little off. Two bounds mend
 * it: hits make no program faster, and none slower than by the time that they take. Where targets mostly wait, own CPU
 * time would be a small difference of large numbers. Progress is time there, in shifts so much less of it as threads
 * wait less often, within the same bounds.
 */
#ifndef YRT_HIT_PACE_H
#define YRT_HIT_PACE_H

#include <stdbool.h>
#include <sys/types.h>
#include <types.h>

#include "unwind/error.h"

struct pace_span {         /* ns */
	double cpu, hits;  /* CPU time of targets; of that, what hits cost */
	double wall;       /* time */
	double ran, ready; /* of some of the threads: CPU time, and waiting for a CPU; */
	double waits;      /* how often these waited for something else */
};

struct pace { /* all zero at first */
	struct pace_process {
		pid_t pid;
		u64 cpu, ran, ready, waits;
	} * processes;
	u32 nprocesses;
	u64 at;
	double hits;
	struct pace_span inside, outside;       /* of late: shifts, and what lies between */
	double kept;                            /* part of its progress that a program makes in a shift; 0: not known */
	double dearer;                          /* what a hit costs, in times of what was measured on yrt */
	bool by_time;                           /* progress is time; else CPU time */
	double changed;                         /* by the last step: the other's unit in that of now; 0: it has not */
	double done;                            /* progress so far, ns */
	double calls, squares, products, parts; /* sums over shifts, of weighted calls and progress */
	double stands_for;                      /* weighted progress */
};

/* A process in which functions are watched. One that was added before is no error. */
struct error *pace_add(struct pace *p, pid_t pid);
void pace_free(struct pace *p);
/* The progress since the last time; hits_ns: what hits have cost until now. shift: it was one. */
double pace_step(struct pace *p, u64 now, double hits_ns, bool shift);
/* Nothing is known of the time since. */
void pace_skip(struct pace *p, u64 now, double hits_ns);
/* The progress expected in ns of time, in a shift or between two. 0: it is not known. */
double pace_expect(const struct pace *p, double ns, bool shift);
/* Adds the calls and the progress of a shift, which stands for `weight` times as much. */
void pace_saw(struct pace *p, double calls, double progress, double weight);
/* By which part of it the sum of all weighted calls may be off, with 95 % certainty. */
double pace_error(const struct pace *p);
/* The part of it that a longer run makes smaller. */
double pace_error_by_chance(const struct pace *p);

#endif
