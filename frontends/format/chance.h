/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be explained by chance: tails of Student's t, and p of many tests, adjusted so that together they err no
 * more often than one.
 */
#ifndef YRT_FORMAT_CHANCE_H
#define YRT_FORMAT_CHANCE_H

#include <types.h>

/* The probability that |t| is at least this, of Student's t with df degrees of freedom; df 0: of the normal
 * distribution. */
double chance_of_t(double t, double df);
/* The t that chance reaches with probability p: the reverse of chance_of_t(). */
double chance_quantile(double p, double df);
/* Adjusts n values of p by Holm's method (Scand. J. Statist. 6, 1979): whatever depends on what. In place; order is
 * scratch of n. */
void chance_holm(double *p, u32 *order, u32 n);
/* The median of n values, which are sorted then. 0 if there is none. */
double chance_median(double *values, u32 n);

#endif
