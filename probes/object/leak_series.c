/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_series.h"

#include <math.h>
#include <stdlib.h>

#define POINTS_LEAST 4
#define ENOUGH       0.6     /* of the run, that lies between the first point and the last */
#define GROWN_LEAST  16384.0 /* bytes; less is no growth, */
#define GROWN_PART   50      /* nor is less than such a part (1/GROWN_PART) of what is in use, */
#define SLOWER       4       /* nor what has become so much slower in the second half */
#define STEADY       0.75    /* of the rate over all, that a leak still has in the second half */
#define UNSURE       0.1     /* of what became more: a heap is read while it changes, at other moments than yrt's; */
#define UNEVEN       0.05    /* and where growth is even, at any point */

struct error *leak_series_create(struct leak_series *s)
{
	s->points = calloc(LEAK_HEAP_POINTS, sizeof(*s->points));
	return s->points ? NULL : &error_no_memory;
}

void leak_series_free(struct leak_series *s)
{
	free(s->points);
	s->points = NULL;
}

/* NULL: none */
static const struct leak_series_point *last_whole(const struct leak_series *s, enum leak_books of)
{
	for (u32 i = s->n; i-- > 0;)
		if (s->points[i].of[of].whole)
			return &s->points[i];
	return NULL;
}

/* Books that can be read for the first time make points before unusable, not memory larger. */
static bool take_books(struct leak_series *s, struct leak_series_point *p, enum leak_books of)
{
	const struct leak_series_point *before = last_whole(s, of);
	bool same = before && before->processes == p->processes;

	p->of[of].whole = p->of[of].in_use && !(same && p->of[of].failed > before->of[of].failed);
	if (p->of[of].whole && same && p->of[of].failed < before->of[of].failed)
		for (u32 i = 0; i < s->n; i++)
			s->points[i].of[of].whole = false;
	return p->of[of].whole;
}

bool leak_series_add(struct leak_series *s, const struct leak_series_point *p)
{
	struct leak_series_point one = *p;
	bool full = s->n == LEAK_HEAP_POINTS, any = false;

	for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++)
		any |= take_books(s, &one, of);
	if (!any)
		return false;
	for (u32 i = 0; full && i < LEAK_HEAP_POINTS / 2; i++)
		s->points[i] = s->points[2 * i];
	s->n = full ? LEAK_HEAP_POINTS / 2 : s->n;
	s->points[s->n++] = one;
	return full;
}

static bool is_whole(const struct leak_series *s, const struct leak_series_point *p)
{
	for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++)
		if (!p->of[of].whole && last_whole(s, of))
			return false;
	return true;
}

const struct leak_series_point *leak_series_last(const struct leak_series *s)
{
	const struct leak_series_point *last = s->n ? &s->points[s->n - 1] : NULL;

	return last && is_whole(s, last) ? last : NULL;
}

void leak_series_curve(const struct leak_series *s, struct leak_summary *ret)
{
	ret->nheap = 0;
	for (u32 i = 0; i < s->n; i++) {
		const struct leak_series_point *p = &s->points[i];
		struct leak_heap_point sum = {.ns = p->ns};

		if (!is_whole(s, p))
			continue;
		for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++) {
			sum.in_use += p->of[of].whole ? p->of[of].in_use : 0;
			sum.free += p->of[of].whole ? p->of[of].free : 0;
		}
		ret->heap[ret->nheap++] = sum;
	}
}

struct whole {
	const struct leak_series_point *at[LEAK_HEAP_POINTS];
	u32 n, middle; /* the point that is nearest to the middle of the time */
};

/* False: they say nothing of the run. */
static bool find_points(const struct leak_series *s, double run_s, enum leak_books of, struct whole *ret)
{
	const struct leak_series_point **at = ret->at;
	u64 middle;

	ret->n = 0;
	ret->middle = 1;
	for (u32 i = 0; i < s->n; i++)
		if (s->points[i].of[of].whole)
			at[ret->n++] = &s->points[i];
	if (ret->n < POINTS_LEAST)
		return false;
	middle = (at[0]->ns + at[ret->n - 1]->ns) / 2;
	while (ret->middle + 2 < ret->n && at[ret->middle]->ns < middle)
		ret->middle++;
	return at[ret->n - 1]->ns > at[ret->middle]->ns && at[ret->middle]->ns > at[0]->ns &&
	       (double)(at[ret->n - 1]->ns - at[0]->ns) > ENOUGH * run_s * 1e9;
}

static double minutes(const struct whole *w, u32 from, u32 to)
{
	return (double)(w->at[to]->ns - w->at[from]->ns) / 60e9;
}

static struct leak_growing growth_of(const struct whole *w, const double *bytes)
{
	double end = bytes[w->n - 1];

	return (struct leak_growing){.early = bytes[w->middle] - bytes[0],
	        .late = end - bytes[w->middle],
	        .in_use = end,
	        .a_minute = (end - bytes[0]) / minutes(w, 0, w->n - 1)};
}

/* If a point may have so much more than there was: can all from the first one on have grown at one rate? */
static bool is_even(const struct whole *w, const double *bytes, u32 first, double unsure)
{
	double low = -INFINITY, high = INFINITY;

	for (u32 i = first; i < w->n; i++)
		for (u32 k = i + 1; k < w->n; k++) {
			double more = bytes[k] - bytes[i], took = minutes(w, i, k);

			low = took > 0 ? fmax(low, (more - unsure) / took) : low;
			high = took > 0 ? fmin(high, (more + unsure) / took) : high;
		}
	return low <= high;
}

static void find_rate(const struct whole *w, const double *bytes, double unsure, struct leak_growing *ret)
{
	double all = ret->a_minute, time = minutes(w, w->middle, w->n - 1), late = ret->late / time;
	double more = ret->late, least = fmin(late, all), most = fmax(late, all);

	ret->a_minute = late < STEADY * all ? late : all;
	for (u32 first = 0; first <= w->middle && first + 2 < w->n; first++) {
		double grown = bytes[w->n - 1] - bytes[first];

		if (!is_even(w, bytes, first, unsure + UNEVEN * fabs(grown)))
			continue;
		more = grown;
		time = minutes(w, first, w->n - 1);
		least = most = ret->a_minute = more / time;
		break;
	}
	unsure += UNSURE * fabs(more);
	ret->low = fmax(least - unsure / time, 0);
	ret->high = most + unsure / time;
}

static double bytes_of(const struct leak_books_point *p, u32 from, u32 to)
{
	u64 sum = 0;

	for (u32 i = from; i <= to && i < SIZE_CLASSES; i++)
		sum += p->in_use_of[i];
	return (double)sum;
}

bool leak_series_grew(
        const struct leak_series *s, double run_s, const struct leak_series_of *of, struct leak_growing *ret)
{
	double bytes[LEAK_HEAP_POINTS] = {0};
	struct whole w;

	if (!find_points(s, run_s, of->books, &w))
		return false;
	for (u32 i = 0; i < w.n; i++)
		bytes[i] = bytes_of(&w.at[i]->of[of->books], of->from, of->to) * of->part;
	*ret = growth_of(&w, bytes);
	find_rate(&w, bytes, of->unsure, ret);
	return true;
}

/* Is it no chance, and does it go on? */
static bool goes_on(const struct leak_growing *g, double all)
{
	return g->early > GROWN_LEAST && g->late > GROWN_LEAST && g->late * SLOWER > g->early &&
	       g->early + g->late > fmax(g->in_use, all) / GROWN_PART;
}

static double all_in_use(const struct leak_series *s)
{
	double sum = 0;

	for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++) {
		const struct leak_series_point *p = last_whole(s, of);

		sum += p ? (double)p->of[of].in_use : 0;
	}
	return sum;
}

static int by_growth(const void *a, const void *b)
{
	const struct leak_class *x = a, *y = b;

	return (x->growth.a_minute < y->growth.a_minute) - (x->growth.a_minute > y->growth.a_minute);
}

u32 leak_series_growing(const struct leak_series *s, double run_s, struct leak_class ret[LEAK_CLASSES])
{
	double bytes[LEAK_HEAP_POINTS] = {0}, all = all_in_use(s);
	struct whole w;
	u32 n = 0;

	for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++) {
		if (!find_points(s, run_s, of, &w))
			continue;
		for (u32 i = 0; i < SIZE_CLASSES; i++) {
			for (u32 k = 0; k < w.n; k++)
				bytes[k] = (double)w.at[k]->of[of].in_use_of[i];
			ret[n] = (struct leak_class){of, i, growth_of(&w, bytes)};
			n += goes_on(&ret[n].growth, all);
		}
	}
	qsort(ret, n, sizeof(*ret), by_growth);
	return n;
}
