/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_weigh.h"

#include <math.h>
#include <stdlib.h>

#include "alloc_waits.h"
#include "unwind/cleanup.h"

#define WHOLE      0.95 /* of hits follow another one: the rest of CPU time is not worth to be looked at */
#define SPARSE     0.3  /* the part of the time between hits that are exceptions: below it a slice speaks for itself, */
#define DENSE      0.7  /* and above it, all of its density do */
#define WARM_LEAST 0.3  /* of the time that code takes right behind a hit, it takes without */
#define OCTAVE     8    /* bins: slices of a like density are together */
#define BINS       (64 * OCTAVE)

struct bin { /* sums over its slices */
	double hits, own, own_own, own_hits, hits_hits;
};

/* own: ns, as they passed behind so many hits. What is slower is code that runs: little code is little slower. */
static double without_cold(const struct alloc_slice *s, double own, double hits, double cold_ns)
{
	double cold = s->hits > 0 ? cold_ns * hits * (1 - s->pairs / s->hits) : 0;

	if (cold > 0)
		cold *= 1 - exp(-(1 - WARM_LEAST) * fmax(own, 0) / cold);
	return fmax(own - cold, hits * ALLOC_OWN_LEAST);
}

static double exceptions_part(const struct alloc_slice *s)
{
	return s->gap_ns > 0 ? fmin(s->gaps * s->exception_ns / s->gap_ns, 1) : 0;
}

/* CPU time that lies in no gap: the thread waited between two hits. */
static double rest_of(const struct alloc_slice *s)
{
	return s->cpu_ns - s->gap_ns - s->bpf_ns - (s->hits - s->gaps) * s->exception_ns;
}

static bool has_rest(const struct alloc_slice *s)
{
	return s->gaps < WHOLE * s->hits;
}

double alloc_slice_own(const struct alloc_slice *s)
{
	return s->gap_ns - s->gaps * s->exception_ns + (has_rest(s) ? fmax(rest_of(s), 0) : 0);
}

/* Of each hit that ends no gap, in all slices together: in one, a tick may be more than all of it. */
static double rest_of_each(const struct alloc_slice *slices, u32 n)
{
	double rest = 0, hits = 0;

	for (u32 i = 0; i < n; i++)
		if (has_rest(&slices[i])) {
			rest += rest_of(&slices[i]);
			hits += slices[i].hits - slices[i].gaps;
		}
	return hits > 0 ? fmax(rest, 0) / hits : 0;
}

static double own_of(const struct alloc_slice *s, double rest_of_each)
{
	return s->gap_ns - s->gaps * s->exception_ns + (has_rest(s) ? (s->hits - s->gaps) * rest_of_each : 0);
}

double alloc_slice_stands_for(const struct alloc_slice *s, double cold_ns)
{
	return fmax(s->stands_for - s->behind * cold_ns, 0);
}

static int bin_of(const struct alloc_slice *s)
{
	double density = s->gaps > 0 && s->gap_ns > s->gaps ? log2(s->gap_ns / s->gaps) : 0;

	return (int)fmin(density * OCTAVE, BINS - 1);
}

/* 1 up to half an octave, 0 from a whole one on. */
static double nearness(int bins)
{
	return fmin(fmax(2 * (1 - fabs((double)bins / OCTAVE)), 0), 1);
}

static void fill(struct bin *bins, const struct alloc_slice *slices, u32 n, double rest)
{
	for (u32 i = 0; i < n; i++) {
		const struct alloc_slice *s = &slices[i];
		struct bin *b = &bins[bin_of(s)];
		double own = own_of(s, rest);

		b->hits += s->hits;
		b->own += own;
		b->own_own += own * own;
		b->own_hits += own * s->hits;
		b->hits_hits += s->hits * s->hits;
	}
}

/* ns of progress for a hit, as slices of a like density say together. *error: of that, by chance. */
static double pooled(const struct bin *bins, int at, double *error)
{
	int first = at > OCTAVE ? at - OCTAVE : 0, last = at + OCTAVE < BINS ? at + OCTAVE : BINS - 1;
	double hits = 0, own = 0, squares = 0, each;

	for (int i = first; i <= last; i++) {
		hits += nearness(i - at) * bins[i].hits;
		own += nearness(i - at) * bins[i].own;
	}
	each = hits > 0 ? own / hits : 0;
	for (int i = first; i <= last; i++)
		squares += pow(nearness(i - at), 2) *
		           (bins[i].own_own - 2 * each * bins[i].own_hits + each * each * bins[i].hits_hits);
	*error = hits > 0 ? sqrt(fmax(squares, 0)) / hits : 0;
	return each;
}

static double progress(const struct bin *bins, const struct alloc_slice *s, double rest, double cold_ns, double *error)
{
	double dense = fmin(fmax((exceptions_part(s) - SPARSE) / (DENSE - SPARSE), 0), 1), each;
	double own = without_cold(s, own_of(s, rest), s->hits, cold_ns);

	*error = 0;
	each = dense > 0 ? pooled(bins, bin_of(s), error) : 0;
	*error *= dense * s->hits;
	return dense * s->hits * without_cold(s, each, 1, cold_ns) + (1 - dense) * own;
}

/* errors: of weights, by chance, as parts of them; NULL: they do not matter. */
static void weights(const struct alloc_slice *slices, u32 n, double cold_ns, double *ret, double *errors)
{
	struct bin bins[BINS] = {0};
	double rest = rest_of_each(slices, n);

	fill(bins, slices, n, rest);
	for (u32 i = 0; i < n; i++) {
		double error, own = progress(bins, &slices[i], rest, cold_ns, &error);

		ret[i] = own > 0 ? alloc_slice_stands_for(&slices[i], cold_ns) / own : 0;
		if (errors)
			errors[i] = own > 0 ? error / own : 0;
	}
}

void alloc_weights(const struct alloc_slice *slices, u32 n, double cold_ns, double *ret)
{
	weights(slices, n, cold_ns, ret, NULL);
}

/*
 * As a ratio estimate: what differs is the rate of calls, not the size of what a slice stands for.
 * parts: what each stands for.
 */
static void add_chance(const struct alloc_slice *slices, u32 n, const double *parts, struct alloc_sums *calls,
        struct alloc_sums *bytes)
{
	double all = 0, of_calls = 0, of_bytes = 0, c = 0, b = 0;

	for (u32 i = 0; i < n; i++) {
		all += parts[i];
		of_calls += slices[i].weight * slices[i].calls;
		of_bytes += slices[i].weight * slices[i].bytes;
	}
	for (u32 i = 0; i < n && all > 0; i++) {
		const struct alloc_slice *s = &slices[i];
		double part = parts[i] / all;

		c += pow(s->weight * s->calls - part * of_calls, 2);
		b += pow(s->weight * s->bytes - part * of_bytes, 2);
	}
	calls->chance += n > 1 ? c * n / (n - 1) : of_calls * of_calls;
	bytes->chance += n > 1 ? b * n / (n - 1) : of_bytes * of_bytes;
}

struct found { /* sums with weights of another slowness */
	double calls, bytes;
};

static struct found sum_at(const struct alloc_slice *slices, u32 n, double cold_ns, double *weight)
{
	struct found ret = {0};

	alloc_weights(slices, n, cold_ns, weight);
	for (u32 i = 0; i < n; i++) {
		ret.calls += fmax(weight[i], 1) * slices[i].calls;
		ret.bytes += fmax(weight[i], 1) * slices[i].bytes;
	}
	return ret;
}

static void add(struct alloc_sums *sums, double sum, double low, double high, double off)
{
	sums->sum += sum;
	sums->less += fmax(sum - low, 0);
	sums->more += fmax(high - sum, 0);
	sums->chance += off * off;
}

/* weight, other: room for a number of each. */
static void weigh_by_waits(struct alloc_slice *slices, u32 n, double *weight, double *other, struct alloc_sums *calls,
        struct alloc_sums *bytes)
{
	struct found sum = {0}, low = {0}, high = {0};

	alloc_waits_weights(slices, n, weight, other);
	for (u32 i = 0; i < n; i++) {
		struct alloc_slice *s = &slices[i];
		double least = fmin(weight[i], other[i]), most = fmax(weight[i], other[i]);

		s->weight = weight[i];
		sum.calls += s->weight * s->calls;
		sum.bytes += s->weight * s->bytes;
		low.calls += least * s->calls;
		low.bytes += least * s->bytes;
		high.calls += most * s->calls;
		high.bytes += most * s->bytes;
		weight[i] *= s->waits;
	}
	add(calls, sum.calls, low.calls, high.calls, 0);
	add(bytes, sum.bytes, low.bytes, high.bytes, 0);
	add_chance(slices, n, weight, calls, bytes);
}

static void weigh_by_progress(struct alloc_slice *slices, u32 n, const struct alloc_cold *cold, double *weight,
        double *error, struct alloc_sums *calls, struct alloc_sums *bytes)
{
	double off_calls = 0, off_bytes = 0;
	struct found sum = {0}, low = sum_at(slices, n, cold->low, weight),
	             high = sum_at(slices, n, cold->high, weight);

	weights(slices, n, cold->ns, weight, error);
	for (u32 i = 0; i < n; i++) {
		struct alloc_slice *s = &slices[i];

		s->weight = fmax(weight[i], 1);
		sum.calls += s->weight * s->calls;
		sum.bytes += s->weight * s->bytes;
		off_calls += error[i] * s->weight * s->calls;
		off_bytes += error[i] * s->weight * s->bytes;
		weight[i] = alloc_slice_stands_for(s, cold->ns);
	}
	add(calls, sum.calls, low.calls, high.calls, off_calls);
	add(bytes, sum.bytes, low.bytes, high.bytes, off_bytes);
	add_chance(slices, n, weight, calls, bytes);
}

bool alloc_weigh(struct alloc_slice *slices, u32 n, const struct alloc_cold *cold, struct alloc_sums *calls,
        struct alloc_sums *bytes)
{
	cleanup(free) double *weight = calloc(n + 1, sizeof(*weight)), *other = calloc(n + 1, sizeof(*other));
	bool waits = alloc_waits_tell(slices, n, cold);

	for (u32 i = 0; i < n; i++)
		slices[i].weight = 1;
	if (!weight || !other)
		return false;
	if (waits)
		weigh_by_waits(slices, n, weight, other, calls, bytes);
	else
		weigh_by_progress(slices, n, cold, weight, other, calls, bytes);
	return waits;
}

double alloc_sums_low(const struct alloc_sums *s)
{
	return fmax(s->sum - sqrt(pow(1.96, 2) * s->chance + s->less * s->less), 0);
}

double alloc_sums_high(const struct alloc_sums *s)
{
	return s->sum + sqrt(pow(1.96, 2) * s->chance + s->more * s->more);
}
