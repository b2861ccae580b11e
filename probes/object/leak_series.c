/* SPDX-License-Identifier: Apache-2.0 */
#include "leak_series.h"

#include <math.h>
#include <stdlib.h>

#define POINTS_LEAST 4
#define ENOUGH       0.6     /* of the run, that lies between the first point and the last */
#define GROWN_LEAST  16384.0 /* bytes; less is no growth, */
#define GROWN_PART   50      /* nor is less than such a part (1/GROWN_PART) of what is in use, */
#define SLOWER       4       /* nor what has become so much slower in the second half */

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

/* The first whole point, the last one, and that nearest to the middle of the time. False: they say nothing. */
static bool find_points(
        const struct leak_series *s, double run_s, enum leak_books of, const struct leak_series_point *ret[3])
{
	const struct leak_series_point *whole[LEAK_HEAP_POINTS];
	u32 n = 0, i = 1;
	u64 middle;

	for (u32 k = 0; k < s->n; k++)
		if (s->points[k].of[of].whole)
			whole[n++] = &s->points[k];
	if (n < POINTS_LEAST)
		return false;
	middle = (whole[0]->ns + whole[n - 1]->ns) / 2;
	while (i + 2 < n && whole[i]->ns < middle)
		i++;
	ret[0] = whole[0];
	ret[1] = whole[i];
	ret[2] = whole[n - 1];
	return ret[2]->ns > ret[1]->ns && ret[1]->ns > ret[0]->ns &&
	       (double)(ret[2]->ns - ret[0]->ns) > ENOUGH * run_s * 1e9;
}

static double a_minute(double bytes, const struct leak_series_point *from, const struct leak_series_point *to)
{
	return bytes / ((double)(to->ns - from->ns) / 60e9);
}

static struct leak_growing growth_of(const struct leak_series_point *const at[3], const double bytes[3])
{
	return (struct leak_growing){.early = bytes[1] - bytes[0],
	        .late = bytes[2] - bytes[1],
	        .in_use = bytes[2],
	        .a_minute = a_minute(bytes[2] - bytes[0], at[0], at[2]),
	        .late_a_minute = a_minute(bytes[2] - bytes[1], at[1], at[2])};
}

static double bytes_of(const struct leak_books_point *p, u32 from, u32 to)
{
	u64 sum = 0;

	for (u32 i = from; i <= to && i < SIZE_CLASSES; i++)
		sum += p->in_use_of[i];
	return (double)sum;
}

bool leak_series_grew(const struct leak_series *s, double run_s, enum leak_books books, u32 from, u32 to, double part,
        struct leak_growing *ret)
{
	const struct leak_series_point *at[3];
	double bytes[3];

	if (!find_points(s, run_s, books, at))
		return false;
	for (u32 i = 0; i < 3; i++)
		bytes[i] = bytes_of(&at[i]->of[books], from, to) * part;
	*ret = growth_of(at, bytes);
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
	const struct leak_series_point *at[3];
	double bytes[3], all = all_in_use(s);
	u32 n = 0;

	for (u32 of = LEAK_BOOKS_NONE + 1; of < LEAK_BOOKS; of++) {
		if (!find_points(s, run_s, of, at))
			continue;
		for (u32 i = 0; i < SIZE_CLASSES; i++) {
			for (u32 k = 0; k < 3; k++)
				bytes[k] = (double)at[k]->of[of].in_use_of[i];
			ret[n] = (struct leak_class){of, i, growth_of(at, bytes)};
			n += goes_on(&ret[n].growth, all);
		}
	}
	qsort(ret, n, sizeof(*ret), by_growth);
	return n;
}
