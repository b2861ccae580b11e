/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A difference: one tree of all stacks of two profiles. Its nodes count the second one (after); base has the counts of
 * the first one (before), and base_scale makes their totals equal. Stacks that vanished have nodes of total 0.
 *
 * Functions are the same if their names are, whatever their module and file: a build moves those, and folded stacks do
 * not have them. The line in "name (file.lua:42)" and the id in "name (tid 42)" do not count either.
 */
#ifndef YRT_FORMAT_DIFF_H
#define YRT_FORMAT_DIFF_H

#include "unwind/profile/profile.h"

struct diff_options {
	bool raw;           /* compare counts, not shares of the totals */
	const char *before; /* the name of the first, for people */
};

/* The functions of from, by their number, in to, where those that are not there yet are made. Free with free(). */
struct error *diff_map_functions(const struct profile *from, struct profile *to, u32 **ret);

/* One profile of several finished ones, as if they were one run; its meta is the first one's, but durations and loss
 * lines. */
struct error *diff_join(const struct profile *const *runs, u32 n, struct profile **ret);

/* Both are finished; the result is too, and has after's meta, whose strings must outlive it. */
struct error *diff_create(const struct profile *before, const struct profile *after, const struct diff_options *options,
        struct profile **ret);

/* The totals of base, times base_scale; of an ordinary profile NULL. */
struct error *diff_totals(const struct profile *p, double **ret);

/* How a count changed, from -1 (gone) over 0 to 1 (new). */
static inline double diff_change(double before, double after)
{
	return before + after > 0 ? (after - before) / (before > after ? before : after) : 0;
}

#endif
