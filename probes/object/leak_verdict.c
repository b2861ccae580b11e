/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_verdict.h"

#include <math.h>

#define LEAST    4    /* blocks that say something */
#define EVEN     3    /* times as many in one third as in another are another rate */
#define CHANCE   1.96 /* standard errors */
#define OUTLIVED 3    /* blocks that do so are no chance */
#define LATE     3    /* times as many outlive as are freed late, of a leak */
#define EXPLAINS 3    /* times as much as the heap has more is more than blocks that are all left */
#define SLOWER   4    /* times as slow as before is no growth any more */

/* Are there so many more of a than of b that it is no chance? */
static bool is_more(double a, double b)
{
	return a > EVEN * b && a - b > CHANCE * sqrt(a + b);
}

/* Blocks that were chosen with other weights than before are not as many as the others of what they stand for. */
static double seen_of(const struct leak_left *left, u32 third)
{
	double seen = (double)(left->seen[0] + left->seen[1] + left->seen[2]);
	double bytes = left->bytes[0] + left->bytes[1] + left->bytes[2];

	return bytes > 0 ? left->bytes[third] / bytes * seen : (double)left->seen[third];
}

struct leak_growth leak_judge(const struct leak_left *left, double run_s)
{
	double first = seen_of(left, 0), middle = seen_of(left, 1), last = seen_of(left, 2);
	double old = first + middle, rate;

	if (old + last < LEAST)
		return (struct leak_growth){LEAK_FEW, 0, 0};
	if (old < LEAST || is_more(middle, first))
		return (struct leak_growth){LEAK_IN_USE, 0, 0};
	if (is_more(first, middle))
		return (struct leak_growth){LEAK_ENDED, 0, 0};
	rate = (left->bytes[0] + left->bytes[1]) / (run_s * 2 / 3) * 60;
	return (struct leak_growth){
	        LEAK_GROWS, rate * fmax(0, 1 - CHANCE / sqrt(old)), rate * (1 + CHANCE / sqrt(old))};
}

/*
 * Does memory of its size grow in the second half, too, by what it explains? Where that is far less than in the first,
 * a cache has filled up, unless it is just what this stack leaves.
 */
static bool is_growth(const struct leak_windows *w)
{
	double half = w->bytes * w->below / 2;

	if (w->late < w->least || w->late * EXPLAINS < half * w->life->low)
		return false;
	return w->late * SLOWER >= w->early || w->late * 2 >= half * w->life->part;
}

struct leak_growth leak_judge_windows(const struct leak_windows *w, double run_s)
{
	double a_minute = run_s > 0 ? w->bytes / run_s * 60 : 0;
	struct leak_growth ret = {LEAK_GROWS, w->life->low * w->below * a_minute, w->life->high * w->above * a_minute};

	if (!w->life->known)
		ret.verdict = w->watched >= OUTLIVED && !w->stayed ? LEAK_IN_USE : LEAK_SHORT;
	else if (!w->life->outlived)
		ret.verdict = LEAK_IN_USE;
	else if (w->life->outlived < LATE * w->life->died || w->stayed < LATE * w->gone)
		ret.verdict = LEAK_LONG;
	else if (w->stayed < OUTLIVED)
		ret.verdict = LEAK_FEW;
	else if (w->has_heap && !is_growth(w))
		ret.verdict = LEAK_ENDED;
	return ret;
}
