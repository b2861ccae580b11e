/* SPDX-License-Identifier: Apache-2.0 */
/* Two reports' evidence: which findings are new, heavier or gone, and which functions changed beyond chance. */
#ifndef YRT_REPORT_COMPARE_H
#define YRT_REPORT_COMPARE_H

#include "findings.h"

#define CHANGES_MAX 10

struct change {
	char *view, *function;
	double before, after, error, p; /* shares; half of the change's 95 % interval; adjusted */
};

struct comparison {                        /* zeroed at first */
	struct change change[CHANGES_MAX]; /* of all views, the greatest first */
	u32 n;
	char **gone; /* titles of findings that were there before */
	u32 ngone;
};

/* after gets finding.was; its verdict says what grew. Views that only one of them has are not compared. */
struct error *compare(const struct evidence *before, const struct findings *found_before, const struct evidence *after,
        struct findings *found_after, struct comparison *ret);
void comparison_free(struct comparison *c);

#endif
