/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions changed by more than chance explains. A function's samples, those that end in it (self) and those
 * that contain it (total), are compared between two sides of one or more recordings each.
 *
 * Samples of a program are not independent: runs differ by more than counting explains. How much more ("noise", a
 * factor of the variance, at least 1) is estimated from the recordings. If a side has several, it comes from how they
 * differ among themselves, for each function and for all (a function's own estimate counts as NRUNS - 2, that of all as
 * DIFF_PRIOR degrees of freedom; t test). If each side has one, it comes from how most functions differ between the
 * sides apart from a common factor. That assumes that most did not change, and cannot show what differs from run to run
 * for one function alone (t test; the fewer functions are counted, the fewer degrees of freedom). p is adjusted by
 * Holm's method.
 */
#ifndef YRT_FORMAT_DIFF_TEST_H
#define YRT_FORMAT_DIFF_TEST_H

#include <stdio.h>

#include "unwind/profile/profile.h"

#define DIFF_LEVEL 0.05 /* what is less likely than this is no chance */
#define DIFF_PRIOR 6

struct diff_side {
	const struct profile *const *runs; /* finished */
	u32 n;
};

struct diff_finding {
	u32 function; /* of the difference */
	bool self;
	double before, after; /* shares of the side's samples; raw: counts a recording */
	double error;         /* half of the change's confidence interval of 95 % */
	double p;             /* adjusted */
};

struct diff_tested {
	struct diff_finding *findings; /* the greatest change first */
	u32 nfindings;
	u32 functions; /* with enough samples to be tested */
	double noise;
	double least; /* of a function with a tenth of all samples the least change that would have been found; raw: 0
	               */
};

/* Tests what diff_create() made of these sides (joined), and sets its functions' chance_self and chance_total. */
struct error *diff_test(struct profile *difference, const struct diff_side sides[2], bool raw, struct diff_tested *ret);
void diff_tested_free(struct diff_tested *t);

/* Says it in words, for terminals. names: of the files of each side, NULL-terminated. */
void diff_summary(FILE *out, const struct profile *difference, const struct diff_tested *t,
        const struct diff_side sides[2], const char *const *names[2], bool raw);
/* The finding that grew most, if by more than limit percent: of all samples; raw: of what it was. NULL: none. */
const struct diff_finding *diff_grew(const struct diff_tested *t, double limit, bool raw);

#endif
