/* SPDX-License-Identifier: Apache-2.0 */
#include "diff_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chance.h"
#include "diff.h"
#include "unwind/cleanup.h"

#define LEAST_SAMPLES 20 /* of both sides together, to be tested */
#define SOME_SAMPLES  40 /* to say something about noise */
#define SOME_TESTS    8  /* as many must, or noise is not known */
#define CHI2_MEDIAN   0.454936
#define MEDIAN_TELLS                                                                                                   \
	0.37 /* of a variance, as much as so many degrees of freedom for each value: the efficiency of the MAD */

enum { SELF, TOTAL };

struct tests {
	const struct profile *p; /* the difference */
	const struct diff_side *sides;
	bool raw;
	u32 nruns;
	double *x;       /* of function, SELF or TOTAL, run: samples */
	double *weight;  /* of a run: its samples; raw: 1 */
	double *e[2];    /* into weight: of each side */
	double all[2];   /* weights of a side */
	double *p_value; /* of each test that is made */
	u32 *which;      /* function * 2 + SELF or TOTAL */
	u32 n;
	double noise, df;
};

static void cleanup_tests(struct tests *t)
{
	free(t->x);
	free(t->weight);
	free(t->p_value);
	free(t->which);
}

/* Counts the samples of a run below each function, of recursion once. */
static void count(struct tests *t, const struct profile *run, const u32 *map, u32 *active, u32 r)
{
	const struct profile_node *nodes = run->nodes;
	double *x = t->x + r;
	u32 i = 0;

	for (;;) {
		u32 f = map[nodes[i].function];

		if (i && nodes[i].total) {
			x[(f * 2 + SELF) * (size_t)t->nruns] += (double)nodes[i].self;
			if (!active[f])
				x[(f * 2 + TOTAL) * (size_t)t->nruns] += (double)nodes[i].total;
		}
		active[f]++;
		if (nodes[i].child) {
			i = nodes[i].child;
			continue;
		}
		for (;; i = nodes[i].parent) {
			active[map[nodes[i].function]]--;
			if (!i)
				return;
			if (nodes[i].sibling)
				break;
		}
		i = nodes[i].sibling;
	}
}

static struct error *count_run(struct tests *t, struct profile *difference, const struct profile *run, u32 r)
{
	cleanup(free) u32 *map = NULL;
	cleanup(free) u32 *active = NULL;
	u32 known = difference->nfunctions;
	struct error *err = diff_map_functions(run, difference, &map);

	if (err)
		return err;
	active = calloc(difference->nfunctions, sizeof(*active));
	if (!active)
		return &error_no_memory;
	if (difference->nfunctions != known)
		return error_new(ERROR_INTERNAL, "a recording has functions that the difference lacks");
	count(t, run, map, active, r);
	t->weight[r] = t->raw ? 1 : (double)run->nodes[0].total;
	return NULL;
}

static const double *samples(const struct tests *t, u32 which, u32 side)
{
	return t->x + which * (size_t)t->nruns + (side ? t->sides[0].n : 0);
}

static double sum(const double *x, u32 n)
{
	double s = 0;

	for (u32 i = 0; i < n; i++)
		s += x[i];
	return s;
}

static double of_side(const struct tests *t, u32 which, u32 side)
{
	return sum(samples(t, which, side), t->sides[side].n);
}

/* What one unit of weight varies by if both sides are alike and samples are independent. */
static double variance(const struct tests *t, u32 which)
{
	double rate = (of_side(t, which, 0) + of_side(t, which, 1)) / (t->all[0] + t->all[1]);

	return rate * (t->raw ? 1 : 1 - rate);
}

/* How recordings of one side differ among themselves: Pearson's chi-squared with nruns - 2 degrees of freedom. */
static double spread(const struct tests *t, u32 which)
{
	double v = variance(t, which), chi2 = 0;

	for (u32 side = 0; side < 2; side++) {
		const double *x = samples(t, which, side);
		double rate = of_side(t, which, side) / t->all[side];

		for (u32 i = 0; i < t->sides[side].n; i++)
			chi2 += (x[i] - t->e[side][i] * rate) * (x[i] - t->e[side][i] * rate) / (t->e[side][i] * v);
	}
	return chi2;
}

/* How a function differs from what the common factor of most makes of it. */
static double deviation(const struct tests *t, u32 which, double factor)
{
	double a = of_side(t, which, 0), b = of_side(t, which, 1), x = factor * t->all[1] / t->all[0];

	return (b - x * a) * (b - x * a) / (b + x * x * a);
}

static double ratio(const struct tests *t, u32 which, double unused)
{
	return of_side(t, which, 1) / t->all[1] / (of_side(t, which, 0) / t->all[0] + 1e-12);
}

static double spread_of(const struct tests *t, u32 which, double unused)
{
	return spread(t, which);
}

/* The median of something of all tests that have enough samples for it; *n: how many have. */
static double median_of(const struct tests *t, double (*of)(const struct tests *t, u32 which, double arg), double arg,
        double *scratch, u32 *n)
{
	*n = 0;
	for (u32 i = 0; i < t->n; i++)
		if ((t->which[i] & 1) == SELF &&
		        of_side(t, t->which[i], 0) + of_side(t, t->which[i], 1) >= SOME_SAMPLES)
			scratch[(*n)++] = of(t, t->which[i], arg);
	return chance_median(scratch, *n);
}

static void measure_noise(struct tests *t, double *scratch)
{
	u32 free_runs = t->nruns - 2, n;
	double noise, factor;

	if (free_runs) {
		noise = median_of(t, spread_of, 0, scratch, &n) / (free_runs * pow(1 - 2.0 / (9 * free_runs), 3));
	} else {
		factor = median_of(t, ratio, 0, scratch, &n);
		noise = median_of(t, deviation, factor, scratch, &n) / CHI2_MEDIAN;
	}
	t->noise = n >= SOME_TESTS && noise > 1 ? noise : 1;
	t->df = free_runs ? DIFF_PRIOR + free_runs : fmax(DIFF_PRIOR, MEDIAN_TELLS * n);
}

/* The standard error of a change. */
static double error_of(const struct tests *t, u32 which)
{
	double noise = t->nruns > 2 ? fmax(1, (DIFF_PRIOR * t->noise + spread(t, which)) / t->df) : t->noise;

	return sqrt(noise * variance(t, which) * (1 / t->all[0] + 1 / t->all[1]));
}

static double change_of(const struct tests *t, u32 which)
{
	return of_side(t, which, 1) / t->all[1] - of_side(t, which, 0) / t->all[0];
}

/* Counts are whole numbers: half of one is no change. */
static double p_of(const struct tests *t, u32 which)
{
	double half = 0.5 * (1 / t->all[0] + 1 / t->all[1]), change = fabs(change_of(t, which)) - half;

	return change > 0 ? fmax(chance_of_t(change / error_of(t, which), t->df), 1e-300) : 1;
}

/* Chooses by what does not reveal which side is greater. A leaf's total is its self. */
static void choose_tests(struct tests *t, u32 *functions)
{
	for (u32 f = PROFILE_FULL + 1; f < t->p->nfunctions; f++) {
		u32 self = f * 2 + SELF, total = f * 2 + TOTAL, known = t->n;
		double s = of_side(t, self, 0) + of_side(t, self, 1), all = of_side(t, total, 0) + of_side(t, total, 1);

		if (s >= LEAST_SAMPLES && variance(t, self) > 0)
			t->which[t->n++] = self;
		if (all >= LEAST_SAMPLES && all > s && variance(t, total) > 0)
			t->which[t->n++] = total;
		*functions += t->n > known;
	}
}

static struct error *prepare(struct tests *t, struct profile *difference)
{
	struct error *err = NULL;
	u32 r = 0;

	t->x = calloc((size_t)difference->nfunctions * 2 * t->nruns, sizeof(*t->x));
	t->weight = calloc(t->nruns, sizeof(*t->weight));
	t->which = calloc(difference->nfunctions, 2 * sizeof(*t->which));
	t->p_value = calloc(difference->nfunctions, 2 * sizeof(*t->p_value));
	if (!t->x || !t->weight || !t->which || !t->p_value)
		return &error_no_memory;
	t->e[0] = t->weight;
	t->e[1] = t->weight + t->sides[0].n;
	for (u32 side = 0; side < 2; side++)
		for (u32 i = 0; !err && i < t->sides[side].n; i++)
			err = count_run(t, difference, t->sides[side].runs[i], r++);
	for (u32 side = 0; side < 2; side++)
		t->all[side] = sum(t->e[side], t->sides[side].n);
	return err;
}

static int compare_findings(const void *a, const void *b)
{
	const struct diff_finding *f = a, *g = b;
	double x = fabs(f->after - f->before), y = fabs(g->after - g->before);

	return x != y                       ? (x < y) - (x > y)
	       : f->function != g->function ? (f->function > g->function) - (f->function < g->function)
	                                    : g->self - f->self;
}

static struct error *summarize(struct profile *difference, const struct diff_tested *t)
{
	char text[160];

	snprintf(text, sizeof(text), "%u changes beyond chance (p < %g together, %u functions tested, noise %.1f)",
	        t->nfindings, DIFF_LEVEL, t->functions, t->noise);
	return profile_string(difference, text, &difference->meta.chance);
}

static struct error *gather(const struct tests *t, struct profile *difference, struct diff_tested *ret)
{
	double quantile = chance_quantile(0.05, t->df);
	struct error *err;

	ret->findings = calloc(t->n + 1, sizeof(*ret->findings));
	if (!ret->findings)
		return &error_no_memory;
	for (u32 i = 0; i < t->n; i++) {
		u32 which = t->which[i], f = which / 2;
		bool self = (which & 1) == SELF;
		double total = of_side(t, f * 2 + TOTAL, 0) + of_side(t, f * 2 + TOTAL, 1);

		if (self)
			difference->functions[f].chance_self = t->p_value[i];
		if (!self || total <= of_side(t, which, 0) + of_side(t, which, 1))
			difference->functions[f].chance_total = t->p_value[i];
		if (t->p_value[i] < DIFF_LEVEL)
			ret->findings[ret->nfindings++] =
			        (struct diff_finding){f, self, of_side(t, which, 0) / t->all[0],
			                of_side(t, which, 1) / t->all[1], quantile * error_of(t, which), t->p_value[i]};
	}
	err = summarize(difference, ret);
	qsort(ret->findings, ret->nfindings, sizeof(*ret->findings), compare_findings);
	return err;
}

struct error *diff_test(struct profile *difference, const struct diff_side sides[2], bool raw, struct diff_tested *ret)
{
	cleanup(tests) struct tests t = {.p = difference, .sides = sides, .raw = raw, .nruns = sides[0].n + sides[1].n};
	cleanup(free) double *scratch = calloc(difference->nfunctions, 2 * sizeof(*scratch));
	cleanup(free) u32 *order = calloc(difference->nfunctions, 2 * sizeof(*order));
	struct error *err = scratch && order ? prepare(&t, difference) : &error_no_memory;

	*ret = (struct diff_tested){.noise = 1};
	if (err)
		return err;
	if (!(t.all[0] > 0) || !(t.all[1] > 0))
		return NULL;
	choose_tests(&t, &ret->functions);
	measure_noise(&t, scratch);
	for (u32 i = 0; i < t.n; i++)
		t.p_value[i] = p_of(&t, t.which[i]);
	chance_holm(t.p_value, order, t.n);
	ret->noise = t.noise;
	if (!raw && t.n)
		ret->least =
		        chance_quantile(DIFF_LEVEL / t.n, t.df) * sqrt(t.noise * 0.09 * (1 / t.all[0] + 1 / t.all[1]));
	return gather(&t, difference, ret);
}

void diff_tested_free(struct diff_tested *t)
{
	free(t->findings);
	*t = (struct diff_tested){0};
}

const struct diff_finding *diff_grew(const struct diff_tested *t, double limit, bool raw)
{
	const struct diff_finding *most = NULL;

	for (u32 i = 0; i < t->nfindings; i++) {
		const struct diff_finding *f = &t->findings[i];
		double by = (f->after - f->before) / (raw && f->before > 0 ? f->before : 1) * 100;

		if (by > limit && (!most || f->after - f->before > most->after - most->before))
			most = f;
	}
	return most;
}
