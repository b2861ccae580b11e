/* SPDX-License-Identifier: Apache-2.0 */
/* How long calls took without the probes: what was measured, less the price of a hit (hit_price.h). */
#ifndef YRT_LATENCY_TIMES_H
#define YRT_LATENCY_TIMES_H

#include "hit_price.h"
#include "latency.h"

#define LATENCY_ROWS_EACH 16 /* buckets of a row: four rows for each power of two */
#define LATENCY_ROWS      (LATENCY_BUCKETS / LATENCY_ROWS_EACH)

struct latency_times { /* ns */
	u64 known; /* shorter times are only known to be shorter; 0: the price is not known, nothing was subtracted */
	u64 mean, median, part_99, most;
	u64 median_low, median_high; /* of 95 %, by the number of calls and the prices' spread */
	struct latency_row {
		u64 from, to, calls;
	} row[LATENCY_ROWS]; /* that have calls, shortest first */
	u32 nrows;
};

/* seen: the part of the calls that were measured, and did not only have others stand for them. */
void latency_times(
        const struct latency_stats *s, const struct latency_price *price, double seen, struct latency_times *ret);

#endif
