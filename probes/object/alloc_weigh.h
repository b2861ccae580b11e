/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of a window stand for, and how sure the totals are.
 *
 * A window stands for the program's progress since the window before: weight = that progress / its own. Progress is CPU
 * time without what hits cost. Within a window it is the time from the end of one hit's program to the begin of the
 * next one's, in a thread that was not switched away meanwhile, less an exception (a process's CPU time as others may
 * read it is only good to a tick). What lies between hits that were far apart is CPU time of the window less all that.
 *
 * Where hits are dense, progress is a small difference of large times. There it is taken from all windows of a like
 * density, by their hits.
 *
 * Totals have two errors: by chance, since rates differ between windows and progress is not measured exactly; and by
 * what an exception costs, of which a part is not known.
 */
#ifndef YRT_ALLOC_WEIGH_H
#define YRT_ALLOC_WEIGH_H

#include <types.h>

/*
 * Of what an exception costs is not known: code behind one runs slower, and its caches and predictions are cold. A C++
 * program whose count was known had 10 % of its windows for itself where 25 to 43 % were measured, on a loaded machine.
 */
#define ALLOC_UNSURE_MORE 0.75 /* so much may be no progress, */
#define ALLOC_UNSURE_LESS 0.05 /* or is */

struct alloc_slice { /* a window, or a part of one */
	double hits;
	double gaps, gap_ns; /* between two hits of a thread that stayed on its CPU */
	double exception_ns; /* of each hit */
	double cpu_ns;       /* of the window, to a tick */
	double bpf_ns;       /* of that, in programs */
	double stands_for;   /* ns of progress */
	double calls, bytes; /* seen */
	double weight;       /* set by alloc_weigh() */
};

struct alloc_sums {
	double sum;
	double chance;     /* the square of an error */
	double less, more; /* that it may be, by what an exception costs */
};

/* Sets the weight of each, 1 at least, and adds to the sums of what they stand for. */
void alloc_weigh(struct alloc_slice *slices, u32 n, struct alloc_sums *calls, struct alloc_sums *bytes);
/* Where the sum is with 95 % certainty. */
double alloc_sums_low(const struct alloc_sums *s);
double alloc_sums_high(const struct alloc_sums *s);
/* ns of a slice that were the program's own, as that slice alone says. */
double alloc_slice_own(const struct alloc_slice *s);

#endif
