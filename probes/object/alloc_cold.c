/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_cold.h"

#include <math.h>

#define GUESS   0.35 /* of an exception, */
#define UNSURE  0.2  /* and a standard deviation: what C and C++ programs had */
#define UNKNOWN 1.5  /* of it, at most, where no landmark says less: SQLite beside other programs */
#define LEAST   0.5  /* below 0 of it, that is looked for: an exception's cost is a measurement, too */
#define MOST    3.0
#define STEPS   130
#define FINER   40
#define MARKS   10   /* hits of landmarks, in either kind of windows, */
#define WINDOWS 5    /* and windows with such: fewer say nothing */
#define MODEL   0.03 /* standard error, whatever the number of hits */
#define SPARSE  0.3  /* rare hits cost so much more or less than dense ones */
#define CERTAIN 3.84 /* of chi squared: 95 % */

struct passing {         /* of landmarks, in windows of a kind and a choice */
	double rate;     /* in a ns of the program's own time; 0: not known */
	double variance; /* of its logarithm */
	double cost;     /* part of that time, that hits took */
};

static double own_of(const struct alloc_slice *s, double cold, bool by_gaps)
{
	double hit = s->exception_ns + cold, least = s->hits * ALLOC_OWN_LEAST;

	if (by_gaps)
		return fmax((s->gap_ns - s->gaps * hit) * s->hits / fmax(s->gaps, 1), least);
	return fmax(s->cpu_ns - s->bpf_ns - s->hits * hit, least);
}

/* Of slices of a choice, each of which stands for so much, with these weights. */
static void sum_up(
        const struct alloc_slice *s, u32 n, u32 choice, const double *weight, double cold, struct passing *ret)
{
	double all = 0, passed = 0, marks = 0, squares = 0, used = 0, hit = 0;

	for (u32 i = 0; i < n; i++)
		if (s[i].choice == choice) {
			all += alloc_slice_stands_for(&s[i], cold);
			passed += weight[i] * s[i].marks;
			marks += s[i].marks;
			used++;
			hit += s[i].marks > 0;
		}
	for (u32 i = 0; i < n && all > 0; i++)
		if (s[i].choice == choice)
			squares += pow(weight[i] * s[i].marks - alloc_slice_stands_for(&s[i], cold) * passed / all, 2);
	*ret = (struct passing){0};
	if (marks < MARKS || hit < WINDOWS || all <= 0)
		return;
	ret->rate = passed / all;
	ret->variance = fmax(squares / (passed * passed), 1 / marks) * used / (used - 2);
}

static void passing_alone(const struct alloc_slice *s, u32 n, u32 choice, double cold, struct passing *ret)
{
	double weight[ALLOC_COLD_SLICES], hits = 0, gaps = 0, own = 0, cost = 0;

	for (u32 i = 0; i < n; i++)
		if (s[i].choice == choice) {
			hits += s[i].hits;
			gaps += s[i].gaps;
		}
	for (u32 i = 0; i < n; i++) {
		double o = own_of(&s[i], cold, gaps > hits / 2);

		weight[i] = o > 0 ? alloc_slice_stands_for(&s[i], cold) / o : 0;
		if (s[i].choice == choice) {
			own += o;
			cost += s[i].hits * (s[i].exception_ns + cold);
		}
	}
	sum_up(s, n, choice, weight, cold, ret);
	ret->cost = own > 0 ? cost / own : 0;
}

struct fit {
	const struct alloc_slice *with, *alone;
	u32 nwith, nalone;
	double exception_ns;
	u32 marks; /* of with, that say something */
};

/* How far from what is seen, in squared standard errors, that much is. */
static double misfit(struct fit *f, double cold)
{
	double sum = pow((cold / f->exception_ns - GUESS) / UNSURE, 2), weight[ALLOC_COLD_SLICES];
	u32 most = 0;

	f->marks = 0;
	if (!f->nwith || !f->nalone)
		return sum;
	alloc_weights(f->with, f->nwith, cold, weight);
	for (u32 i = 0; i < f->nwith; i++)
		most = f->with[i].choice > most ? f->with[i].choice : most;
	for (u32 choice = 1; choice <= most; choice++) {
		struct passing with, alone;
		double error;

		sum_up(f->with, f->nwith, choice, weight, cold, &with);
		passing_alone(f->alone, f->nalone, choice, cold, &alone);
		if (with.rate <= 0 || alone.rate <= 0)
			continue;
		error = with.variance + alone.variance + pow(MODEL, 2) + pow(SPARSE * alone.cost, 2);
		sum += pow(log(with.rate / alone.rate), 2) / error;
		f->marks++;
	}
	return sum;
}

static double look_around(struct fit *f, double from, double step, u32 n, double *least)
{
	double best = from;

	*least = INFINITY;
	for (u32 i = 0; i < n; i++) {
		double m = misfit(f, from + step * i);

		if (m >= *least)
			continue;
		*least = m;
		best = from + step * i;
	}
	return best;
}

/* From the best one on, in this direction, as far as it may be. */
static double border(struct fit *f, double best, double step, double least)
{
	double at = best;

	for (u32 i = 0; i < STEPS && misfit(f, at) < least + CERTAIN; i++)
		at += step;
	return at;
}

void alloc_cold_fit(const struct alloc_slice *with, u32 nwith, const struct alloc_slice *alone, u32 nalone,
        double exception_ns, struct alloc_cold *ret)
{
	struct fit f = {.with = with, .nwith = nwith, .alone = alone, .nalone = nalone, .exception_ns = exception_ns};
	double step = exception_ns * (LEAST + MOST) / STEPS, least;

	if (nwith > ALLOC_COLD_SLICES)
		f.with += nwith - ALLOC_COLD_SLICES, f.nwith = ALLOC_COLD_SLICES;
	if (nalone > ALLOC_COLD_SLICES)
		f.alone += nalone - ALLOC_COLD_SLICES, f.nalone = ALLOC_COLD_SLICES;
	ret->ns = look_around(&f, -exception_ns * LEAST, step, STEPS, &least);
	ret->ns = look_around(&f, ret->ns - step, 2 * step / FINER, FINER + 1, &least);
	ret->low = border(&f, ret->ns, -step / 4, least);
	ret->high = border(&f, ret->ns, step / 4, least);
	misfit(&f, ret->ns);
	ret->measured = f.marks > 0;
	if (!ret->measured)
		ret->high = UNKNOWN * exception_ns;
}
