/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks in C share. */
#ifndef YRT_BENCH_H
#define YRT_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "unwind/error.h"
#include "unwind/now.h"

static inline double now_ms(void)
{
	return (double)now_ns() / 1e6;
}

static inline int compare_doubles(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Of n values, which are in order then. */
static inline double median(double *values, u32 n)
{
	qsort(values, n, sizeof(*values), compare_doubles);
	return values[n / 2];
}

/* Ends the benchmark on an error. */
static inline void die(struct error *err)
{
	if (!err)
		return;
	fprintf(stderr, "%s\n", err->message);
	exit(1);
}

#endif
