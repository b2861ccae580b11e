/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_weigh.h"

#include <math.h>

#define WHOLE  0.95 /* of hits follow another one: the rest of CPU time is not worth to be looked at */
#define LEAST  5.0  /* ns of progress between two hits, whatever was measured */
#define SPARSE 0.3  /* the part of the time between hits that are exceptions: below it a slice speaks for itself, */
#define DENSE  0.7  /* and above it, all of its density do */
#define MOST   5.0  /* times as many calls at most, by what is not known of exceptions */

static double exceptions_part(const struct alloc_slice *s)
{
	return s->gap_ns > 0 ? fmin(s->gaps * s->exception_ns / s->gap_ns, 1) : 0;
}

double alloc_slice_own(const struct alloc_slice *s)
{
	double own = s->gap_ns - s->gaps * s->exception_ns, rest;

	rest = s->cpu_ns - s->gap_ns - s->bpf_ns - (s->hits - s->gaps) * s->exception_ns;
	return s->gaps < WHOLE * s->hits ? own + fmax(rest, 0) : own;
}

static double density(const struct alloc_slice *s)
{
	return s->gaps > 0 && s->gap_ns > 0 ? log2(s->gap_ns / s->gaps) : 0;
}

/* 1 up to half an octave, 0 from a whole one on. */
static double nearness(double a, double b)
{
	return fmin(fmax(2 * (1 - fabs(a - b)), 0), 1);
}

/* ns of progress for a hit, as slices of a like density say together. *error: of that, by chance. */
static double pooled(const struct alloc_slice *slices, u32 n, double at, double *error)
{
	double hits = 0, own = 0, squares = 0;

	for (u32 i = 0; i < n; i++) {
		double near = nearness(density(&slices[i]), at);

		hits += near * slices[i].hits;
		own += near * alloc_slice_own(&slices[i]);
	}
	for (u32 i = 0; i < n && hits > 0; i++) {
		double near = nearness(density(&slices[i]), at);

		squares += pow(near * (alloc_slice_own(&slices[i]) - slices[i].hits * own / hits), 2);
	}
	*error = hits > 0 ? sqrt(squares) / hits : 0;
	return hits > 0 ? fmax(own / hits, LEAST) : LEAST;
}

static double progress(const struct alloc_slice *slices, u32 n, const struct alloc_slice *s, double *error)
{
	double dense = fmin(fmax((exceptions_part(s) - SPARSE) / (DENSE - SPARSE), 0), 1), each;
	double own = fmax(alloc_slice_own(s), s->hits * LEAST);

	each = dense > 0 ? pooled(slices, n, density(s), error) : 0;
	*error *= dense * s->hits;
	return dense * s->hits * each + (1 - dense) * own;
}

/* As a ratio estimate: what differs is the rate of calls, not the size of what a slice stands for. */
static void add_chance(const struct alloc_slice *slices, u32 n, struct alloc_sums *calls, struct alloc_sums *bytes)
{
	double all = 0, of_calls = 0, of_bytes = 0, c = 0, b = 0;

	for (u32 i = 0; i < n; i++) {
		all += slices[i].stands_for;
		of_calls += slices[i].weight * slices[i].calls;
		of_bytes += slices[i].weight * slices[i].bytes;
	}
	for (u32 i = 0; i < n && all > 0; i++) {
		const struct alloc_slice *s = &slices[i];

		c += pow(s->weight * s->calls - s->stands_for * of_calls / all, 2);
		b += pow(s->weight * s->bytes - s->stands_for * of_bytes / all, 2);
	}
	calls->chance += n > 1 ? c * n / (n - 1) : of_calls * of_calls;
	bytes->chance += n > 1 ? b * n / (n - 1) : of_bytes * of_bytes;
}

/* x: what a slice stands for; own: its progress; error: of that, by chance. Returns x's error by chance. */
static double add(struct alloc_sums *sums, double x, double own, double error, const struct alloc_slice *s)
{
	double part = own > 0 ? s->hits * s->exception_ns / own : 0;

	sums->sum += x;
	sums->less += x * (1 - 1 / (1 + ALLOC_UNSURE_LESS * part));
	sums->more += x * (1 / fmax(1 - ALLOC_UNSURE_MORE * part, 1 / MOST) - 1);
	return own > 0 ? x * error / own : 0;
}

void alloc_weigh(struct alloc_slice *slices, u32 n, struct alloc_sums *calls, struct alloc_sums *bytes)
{
	double off_calls = 0, off_bytes = 0;

	for (u32 i = 0; i < n; i++) {
		struct alloc_slice *s = &slices[i];
		double error = 0, own = progress(slices, n, s, &error);

		s->weight = own > 0 ? fmax(s->stands_for / own, 1) : 1;
		off_calls += add(calls, s->weight * s->calls, own, error, s);
		off_bytes += add(bytes, s->weight * s->bytes, own, error, s);
	}
	calls->chance += off_calls * off_calls;
	bytes->chance += off_bytes * off_bytes;
	add_chance(slices, n, calls, bytes);
}

double alloc_sums_low(const struct alloc_sums *s)
{
	return fmax(s->sum - sqrt(pow(1.96, 2) * s->chance + s->less * s->less), 0);
}

double alloc_sums_high(const struct alloc_sums *s)
{
	return s->sum + sqrt(pow(1.96, 2) * s->chance + s->more * s->more);
}
