/* SPDX-License-Identifier: Apache-2.0 */
#include "chance.h"

#include <math.h>
#include <stdlib.h>

/* The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
	h = d;
	for (int m = 1; m < 300; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		for (int k = 0; k < 2; k++) {
			double by = k ? odd : even;

			d = 1 + by * d;
			c = 1 + by / c;
			d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
			c = fabs(c) < 1e-300 ? 1e-300 : c;
			h *= c * d;
		}
		if (fabs(c * d - 1) < 1e-14)
			break;
	}
	return h;
}

/* The regularized incomplete beta function. */
static double beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x >= 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
	                                 : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double chance_of_t(double t, double df)
{
	return df > 0 ? beta(df / 2, 0.5, df / (df + t * t)) : erfc(fabs(t) / M_SQRT2);
}

double chance_quantile(double p, double df)
{
	double low = 0, high = 1e6;

	for (int i = 0; i < 200; i++) {
		double middle = (low + high) / 2;

		*(chance_of_t(middle, df) > p ? &low : &high) = middle;
	}
	return high;
}

static int compare_p(const void *a, const void *b, void *values)
{
	const double *p = values;
	u32 i = *(const u32 *)a, j = *(const u32 *)b;

	return p[i] != p[j] ? (p[i] > p[j]) - (p[i] < p[j]) : (i > j) - (i < j);
}

void chance_holm(double *p, u32 *order, u32 n)
{
	double most = 0;

	for (u32 i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare_p, p);
	for (u32 i = 0; i < n; i++) {
		double adjusted = fmin(1, p[order[i]] * (n - i));

		most = fmax(most, adjusted);
		p[order[i]] = most;
	}
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double chance_median(double *values, u32 n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), compare_values);
	return n & 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}
