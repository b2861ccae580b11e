/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the blocks of a stack that are left say, by when they were made.
 *
 * A run is cut into thirds. Blocks of the last one may still be in use by what made them. A stack that leaks has left
 * about as many of the first as of the middle one, since what leaks stays whatever its age. A cache that fills up has
 * made most of them early: then its growth ends. Where ages are such that few are left of the first two, blocks are in
 * use, and freed later. With n blocks left of those two the growth has the standard error 1/sqrt(n).
 *
 * Where calls were seen in windows only, a stack leaks if blocks of it were still there when debug registers had
 * watched them for long, next to none was freed late, be it seen by these or when it was looked at again, and memory in
 * use of their size has grown in the second half of the run, too, by as much as that explains. The last tells a leak
 * from what is as long-lived but does not grow: a cache that is full.
 */
#ifndef YRT_LEAK_VERDICT_H
#define YRT_LEAK_VERDICT_H

#include <types.h>

#include "leak_life.h"

enum leak_verdict {
	LEAK_FEW,    /* too few blocks to tell */
	LEAK_IN_USE, /* most are young */
	LEAK_ENDED,  /* it grew, and does so no more */
	LEAK_GROWS,
	LEAK_LONG,  /* in windows: blocks live for longer than they were watched, and then some are freed */
	LEAK_SHORT, /* in windows: no block could be watched for as long as says something */
};

struct leak_left {       /* blocks that are left, of each third of the run by when they were made */
	u64 seen[3];     /* that were chosen */
	double bytes[3]; /* that they stand for */
};

struct leak_growth {
	enum leak_verdict verdict;
	double low, high; /* bytes a minute, with 95 % of certainty; if it grows */
};

struct leak_growth leak_judge(const struct leak_left *left, double run_s);

struct leak_windows {                 /* of a stack, as windows and debug registers say */
	const struct leak_life *life; /* up to the age that blocks were watched */
	u32 watched;                  /* blocks that had registers; */
	u32 stayed, gone;             /* of them: there still; freed though they had seemed to be there for long */
	double bytes;                 /* that it made in the run, as windows say; */
	double below, above;          /* 95 % confidence interval of bytes, as factors of it */
	bool has_heap;                /* it is known how memory in use of its size has grown: */
	double early, late;           /* by so many bytes, in each half of the run; */
	double least;                 /* so many are no chance */
};

/*
 * bytes a minute: where the heap says how much there is more, as it does; else those that outlive that age. The first
 * is exact, if no other stack of this size leaks.
 */
struct leak_growth leak_judge_windows(const struct leak_windows *w, double run_s);

#endif
