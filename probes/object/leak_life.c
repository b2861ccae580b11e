/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_life.h"

#include <math.h>
#include <string.h>

#define CHANCE  1.96 /* standard errors */
#define OF_NONE 3.0  /* of n that did not happen: up to 3/n may, with 95 % certainty */

void leak_life(const u32 died[LEAK_AGES], const u32 cut[LEAK_AGES], u64 age_ns, struct leak_life *ret)
{
	u32 end = leak_age(age_ns), early = leak_age(age_ns / 8);
	double all = 0, left, variance = 0, error;

	memset(ret, 0, sizeof(*ret));
	ret->part = 1;
	for (u32 i = 0; i < LEAK_AGES; i++) {
		all += died[i] + cut[i];
		ret->outlived += i >= end ? died[i] + cut[i] : 0;
		ret->died += i >= early && i < end ? died[i] : 0;
	}
	left = all;
	for (u32 i = 0; i < end && left > 0 && ret->part > 0; i++) {
		double risk = left - cut[i] / 2.0;

		ret->part *= 1 - died[i] / risk;
		if (risk > died[i])
			variance += died[i] / (risk * (risk - died[i]));
		else
			ret->part = 0;
		left -= died[i] + cut[i];
		ret->reached = i;
	}
	ret->known = all > 0 && (left > 0 || ret->part <= 0);
	ret->reached = left > 0 ? end : ret->reached;
	if (ret->part <= 0 || all <= 0) {
		ret->part = all > 0 ? 0 : 1;
		ret->high = all > 0 ? fmin(OF_NONE / all, 1) : 1;
		return;
	}
	error = exp(CHANCE * sqrt(variance));
	ret->low = ret->part / error * fmax(0, 1 - OF_NONE / fmax(left, 1));
	ret->high = fmin(ret->part * error, 1);
}
