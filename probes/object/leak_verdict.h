/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the blocks of a stack that are left say, by when they were made.
 *
 * A run is cut into thirds. Blocks of the last one may still be in use by what made them. A stack that leaks has left
 * about as many of the first as of the middle one, since what leaks stays whatever its age. A cache that fills up has
 * made most of them early: then its growth ends. Where ages are such that few are left of the first two, blocks are in
 * use, and freed later. With n blocks left of those two the growth has the standard error 1/sqrt(n).
 */
#ifndef YRT_LEAK_VERDICT_H
#define YRT_LEAK_VERDICT_H

#include <types.h>

enum leak_verdict {
	LEAK_FEW,    /* too few blocks to tell */
	LEAK_IN_USE, /* most are young */
	LEAK_ENDED,  /* it grew, and does so no more */
	LEAK_GROWS,
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

#endif
