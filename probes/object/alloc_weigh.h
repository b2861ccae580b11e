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
 * Where the allocator counts bytes itself (alloc_counter.h), that is the scale: weights of windows that follow each
 * other are made so much larger or smaller that their bytes are those of the counter.
 *
 * Totals have two errors: by chance, since rates differ between windows and progress is not measured exactly; and by
 * how much slower code is behind a hit, of which a part is not known (alloc_cold.h).
 */
#ifndef YRT_ALLOC_WEIGH_H
#define YRT_ALLOC_WEIGH_H

#include <stdbool.h>
#include <types.h>

#include "alloc.h"

#define ALLOC_COLD_SLICES 512  /* the last ones of each kind tell how slow code is behind a hit */
#define ALLOC_OWN_LEAST   20.0 /* ns of progress between two hits, whatever was measured: no program allocates faster */

struct alloc_cold {           /* ns, that the program's own code is slower by behind a hit */
	double ns, low, high; /* with 95 % certainty */
	bool measured;        /* by landmarks */
};

struct alloc_slice { /* a window, or a part of one */
	double hits;
	double pairs;        /* of them, at second places: no code lies before those */
	double gaps, gap_ns; /* between two hits of a thread that stayed on its CPU */
	double exception_ns; /* of each hit */
	double cpu_ns;       /* of the window, to a tick */
	double bpf_ns;       /* of that, in programs */
	double stands_for;   /* ns of progress, if code behind hits were not slower, */
	double behind;       /* and so many hits are behind that */
	double calls, bytes; /* seen */
	double marks;        /* hits of landmarks, */
	u32 choice;          /* which are these (alloc_marks_choice()); 0: none */
	double waits, ns;    /* how often threads waited, and its time: of a program that waits (alloc_waits.h); */
	double waits_behind, ns_behind; /* since the window before; */
	double ousted_behind;           /* how often another program got its CPU meanwhile, */
	double ready_behind;            /* and ns that its threads ran, or waited for a CPU */
	bool is_counted;
	double counted;     /* bytes, as the allocator's counter says, since the window before, */
	double own_counted; /* of that, in the window, */
	double rounded;     /* and bytes of calls that were seen, as it counts them */
	double squares;     /* of their sizes */
	double largest;     /* of all blocks that such calls asked for until then */
	double weight;      /* set by alloc_weigh() */
};

struct alloc_sums {
	double sum;
	double chance;     /* the square of an error */
	double less, more; /* that it may be, by what is not known of code behind hits */
};

/* Sets the weight of each, and adds to the sums of what they stand for. */
enum alloc_clock alloc_weigh(struct alloc_slice *slices, u32 n, const struct alloc_cold *cold, struct alloc_sums *calls,
        struct alloc_sums *bytes);
/* The weights alone, not to be less than 1 or not. */
void alloc_weights(const struct alloc_slice *slices, u32 n, double cold_ns, double *ret);
/* Where the sum is with 95 % certainty. */
double alloc_sums_low(const struct alloc_sums *s);
double alloc_sums_high(const struct alloc_sums *s);
/* ns of a slice that were the program's own, as that slice alone says, if code behind hits were not slower. */
double alloc_slice_own(const struct alloc_slice *s);
/* ns of progress that it stands for. */
double alloc_slice_stands_for(const struct alloc_slice *s, double cold_ns);

#endif
