/* SPDX-License-Identifier: Apache-2.0 */
/* What functions that stacks have in common are known for: `about` of the rules. */
#ifndef YRT_REPORT_ABOUT_H
#define YRT_REPORT_ABOUT_H

#include "match.h"

struct about_found {
	const struct about *about; /* NULL: nothing is known of what takes a good part of the stacks */
	u32 function;              /* of the profile, that it is about */
	double share;              /* of the first site's part */
	bool above;                /* the site is called through it */
};

/*
 * Of what at least a third of the stacks of the first site go through, the innermost that is known: first of what the
 * site calls, itself included; then of what it is called by. m is that of the rule in p.
 */
struct error *about_find(
        const struct libraries *l, const struct profile *p, const struct match *m, struct about_found *ret);
/*
 * The innermost function that half of the matching stacks go through becomes the only site: where no function of the
 * program takes part, that is what there is to name.
 */
struct error *about_deepest(const struct rule *r, const struct profile *p, struct match *m);

#endif
