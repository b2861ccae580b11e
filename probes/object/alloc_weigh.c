/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_weigh.h"

#include <math.h>
#include <stdlib.h>

#include "alloc_waits.h"
#include "unwind/cleanup.h"

#define WHOLE      0.95 /* of hits end a gap: the rest of CPU time may be nothing but ticks */
#define SPARSE     0.3  /* the part of the time between hits that are exceptions: below it a slice speaks for itself, */
#define DENSE      0.7  /* and above it, all of its density do */
#define HARDLY     0.8  /* of it: no slice says much */
#define WARM_LEAST 0.3  /* of the time that code takes right behind a hit, it takes without */
#define OCTAVE     8    /* bins: slices of a like density are together */
#define BINS       (64 * OCTAVE)
#define PACES      40
#define PACES_NEAR 2 /* octaves */

#define GROUP_BIAS    0.02 /* of what a scale is made from, at most */
#define EXCEPTION_OFF 0.12 /* of an exception: it takes longer beside other programs, at some times */
#define WINDOWS_OFF   0.20 /* of all, at least: other programs take other parts of a CPU in windows than else */
#define CHANCE        1.96 /* standard errors: 95 % */
#define EDGES_OFF     0.01 /* calls at both ends of a window, of its bytes */
#define LOG_MOST      5.0  /* of how many times as much it may be: nothing is known beyond */
#define STUDENT       1.6  /* t / 1.96 - 1, times degrees of freedom, about */
#define LEAST_BLOCK   8    /* bytes */
#define ROUNDED_MOST  0.5  /* of a block's size, that may be rounding */
#define ROUNDED_OFF   0.1  /* of a block's size, that is rounded up */

struct found { /* sums, with other weights */
	double calls, bytes;
};

struct bin { /* sums over its slices */
	double hits, own, own_own, own_hits, hits_hits;
};

/* own: ns, as they passed behind so many hits. What is slower is code that runs: little code is little slower. */
static double without_cold(double own, double hits, double cold_ns)
{
	double cold = cold_ns * hits;

	if (cold > 0)
		cold *= 1 - exp(-(1 - WARM_LEAST) * fmax(own, 0) / cold);
	return fmax(own - cold, hits * ALLOC_OWN_LEAST);
}

/* Hits that code of the program's own lies before. */
static double first_hits(const struct alloc_slice *s)
{
	return s->hits - s->pairs;
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
	return s->gaps < WHOLE * first_hits(s);
}

static double gaps_own(const struct alloc_slice *s)
{
	return s->gap_ns - s->gaps * s->exception_ns;
}

double alloc_slice_own(const struct alloc_slice *s)
{
	return gaps_own(s) + (has_rest(s) ? fmax(rest_of(s), 0) : 0);
}

struct rests { /* of slices by the octave of the time from hit to hit; [1]: of those of which nearly all is gaps */
	double times;    /* as much as was found they are */
	bool everywhere; /* the latter count where exceptions are dense, too, though they may be what these cost more */
	double n[2][PACES], ns[2][PACES], hits[2][PACES], squares[2][PACES];
};

static int pace_of(const struct alloc_slice *s)
{
	return s->hits > 0 && s->ns > s->hits ? (int)fmin(log2(s->ns / s->hits), PACES - 1) : 0;
}

static void fill_rests(struct rests *r, const struct alloc_slice *slices, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		int whole = !has_rest(&slices[i]), pace = pace_of(&slices[i]);
		double rest = rest_of(&slices[i]);

		r->n[whole][pace]++;
		r->ns[whole][pace] += rest;
		r->hits[whole][pace] += first_hits(&slices[i]) - slices[i].gaps;
		r->squares[whole][pace] += rest * rest;
	}
}

/*
 * Of each hit that ends no gap, in all slices of a like pace: in one, a tick may be more than all of it, and a slice of
 * a single hit says nothing of those of thousands. Where nearly all hits end gaps, the rest may be nothing but ticks;
 * or most of the time, in threads that do not allocate and where a thread was switched away: as much counts as is more
 * than chance (a positive-part James-Stein estimate).
 */
static double rest_of_each(const struct rests *r, const struct alloc_slice *s)
{
	int at = pace_of(s), first = at > PACES_NEAR ? at - PACES_NEAR : 0;
	int last = at + PACES_NEAR < PACES ? at + PACES_NEAR : PACES - 1, whole = !has_rest(s);
	double n = 0, rest = 0, hits = 0, squares = 0;

	for (int i = first; i <= last; i++) {
		n += r->n[whole][i];
		rest += r->ns[whole][i];
		hits += r->hits[whole][i];
		squares += r->squares[whole][i];
	}
	if (whole && rest > 0)
		rest -= n > 1 ? (squares - rest * rest / n) * n / (n - 1) / rest : rest;
	return hits > 0 ? r->times * fmax(rest, 0) / hits : 0;
}

static double own_of(const struct alloc_slice *s, const struct rests *r)
{
	return gaps_own(s) + (first_hits(s) - s->gaps) * rest_of_each(r, s);
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

static void fill(struct bin *bins, const struct alloc_slice *slices, u32 n, const struct rests *rest)
{
	for (u32 i = 0; i < n; i++) {
		const struct alloc_slice *s = &slices[i];
		struct bin *b = &bins[bin_of(s)];
		double hits = first_hits(s);
		double own = has_rest(s) || rest->everywhere ? own_of(s, rest) : gaps_own(s);

		b->hits += hits;
		b->own += own;
		b->own_own += own * own;
		b->own_hits += own * hits;
		b->hits_hits += hits * hits;
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

static double progress(
        const struct bin *bins, const struct alloc_slice *s, const struct rests *rest, double cold_ns, double *error)
{
	double dense = fmin(fmax((exceptions_part(s) - SPARSE) / (DENSE - SPARSE), 0), 1), each;
	double hits = first_hits(s), own = without_cold(own_of(s, rest), hits, cold_ns);

	*error = 0;
	each = dense > 0 ? pooled(bins, bin_of(s), error) : 0;
	*error *= dense * hits;
	return dense * hits * without_cold(each, 1, cold_ns) + (1 - dense) * own;
}

/*
 * times: as much as was found each exception costs; what is less is more of the rest. errors: of weights, by chance, as
 * parts of them; NULL: they do not matter.
 */
static void weights(const struct alloc_slice *slices, u32 n, double cold_ns, double times, double *ret, double *errors)
{
	struct bin bins[BINS] = {0};
	struct rests rests = {.times = 2 - times, .everywhere = times < 1};

	fill_rests(&rests, slices, n);
	fill(bins, slices, n, &rests);
	for (u32 i = 0; i < n; i++) {
		double error, own = progress(bins, &slices[i], &rests, cold_ns, &error);

		ret[i] = own > 0 ? alloc_slice_stands_for(&slices[i], cold_ns) / own : 0;
		if (errors)
			errors[i] = own > 0 ? error / own : 0;
	}
}

void alloc_weights(const struct alloc_slice *slices, u32 n, double cold_ns, double *ret)
{
	weights(slices, n, cold_ns, 1, ret, NULL);
}

/* Of the squares of differences of n slices; of few, so much wider as Student's t. alone: of one. */
static double chance_of(double squares, u32 n, double alone)
{
	return n > 1 ? squares * n / (n - 1) * pow(1 + STUDENT / (n - 1), 2) : alone * alone;
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
	calls->chance += chance_of(c, n, of_calls);
	bytes->chance += chance_of(b, n, of_bytes);
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

/* The sums if each exception cost `times` as much. */
static struct found sum_with(struct alloc_slice *slices, u32 n, double cold_ns, double times, double *weight)
{
	struct found ret = {0};

	for (u32 i = 0; i < n; i++)
		slices[i].exception_ns *= times;
	weights(slices, n, cold_ns, times, weight, NULL);
	for (u32 i = 0; i < n; i++) {
		slices[i].exception_ns /= times;
		ret.calls += fmax(weight[i], 1) * slices[i].calls;
		ret.bytes += fmax(weight[i], 1) * slices[i].bytes;
	}
	return ret;
}

/* Where nearly all of the time are exceptions, no more is known than that no program allocates faster than some. */
static void reach_most(const struct alloc_slice *slices, u32 n, double cold_ns, struct found *high)
{
	double exceptions = 0, time = 0;
	struct found most = {0};

	for (u32 i = 0; i < n; i++) {
		const struct alloc_slice *s = &slices[i];
		double most_weight = s->hits > 0 ? alloc_slice_stands_for(s, cold_ns) / (s->hits * ALLOC_OWN_LEAST) : 0;

		exceptions += s->gaps * s->exception_ns;
		time += s->gap_ns;
		most.calls += most_weight * s->calls;
		most.bytes += most_weight * s->bytes;
	}
	if (exceptions < HARDLY * time)
		return;
	high->calls = fmax(high->calls, most.calls);
	high->bytes = fmax(high->bytes, most.bytes);
}

static void weigh_by_progress(struct alloc_slice *slices, u32 n, const struct alloc_cold *cold, double *weight,
        double *error, struct alloc_sums *calls, struct alloc_sums *bytes)
{
	double off_calls = 0, off_bytes = 0;
	struct found sum = {0}, low = sum_with(slices, n, cold->low, 1 - EXCEPTION_OFF, weight),
	             high = sum_with(slices, n, cold->high, 1 + EXCEPTION_OFF, weight);

	weights(slices, n, cold->ns, 1, weight, error);
	for (u32 i = 0; i < n; i++) {
		struct alloc_slice *s = &slices[i];

		s->weight = fmax(weight[i], 1);
		sum.calls += s->weight * s->calls;
		sum.bytes += s->weight * s->bytes;
		off_calls += error[i] * s->weight * s->calls;
		off_bytes += error[i] * s->weight * s->bytes;
		weight[i] = alloc_slice_stands_for(s, cold->ns);
	}
	reach_most(slices, n, cold->ns, &high);
	add(calls, sum.calls, low.calls, high.calls, hypot(off_calls, sum.calls * WINDOWS_OFF / CHANCE));
	add(bytes, sum.bytes, low.bytes, high.bytes, hypot(off_bytes, sum.bytes * WINDOWS_OFF / CHANCE));
	add_chance(slices, n, weight, calls, bytes);
}

/* One more of the largest blocks, or one less, is chance. */
static double largest_of(const struct alloc_slice *slices, u32 n)
{
	double ret = 0;

	for (u32 i = 0; i < n; i++)
		ret = fmax(ret, slices[i].largest);
	return ret;
}

/*
 * How many slices have a scale together: to divide by the bytes of few calls, of which one in thousands has most, is to
 * be wrong by about their squares.
 */
static u32 slices_of_group(const struct alloc_slice *slices, u32 n)
{
	double sum = 0, squares = pow(largest_of(slices, n), 2), known = 0, want;

	for (u32 i = 0; i < n; i++) {
		sum += slices[i].rounded;
		squares += slices[i].squares;
		known += slices[i].is_counted && slices[i].rounded > 0;
	}
	want = sum > 0 ? squares * known / (sum * sum) / GROUP_BIAS : n;
	return (u32)fmin(fmax(ceil(want), 1), n);
}

/* What all weights have to be multiplied by, so that their bytes are those of the counter. */
static double scale_of(const struct alloc_slice *slices, u32 n, const double *base, double unknown)
{
	double counted = 0, rounded = 0;

	for (u32 i = 0; i < n; i++) {
		counted += slices[i].is_counted ? slices[i].counted : 0;
		rounded += slices[i].is_counted ? base[i] * slices[i].rounded : 0;
	}
	return rounded > 0 ? counted / rounded : unknown;
}

static bool saw_some(const struct alloc_slice *slices, u32 from, u32 to)
{
	for (u32 i = from; i < to; i++)
		if (slices[i].is_counted && slices[i].rounded > 0)
			return true;
	return false;
}

/* What a window without a call stands for, others have to. */
static u32 group_end(const struct alloc_slice *slices, u32 n, u32 from, u32 each)
{
	u32 to = n - from < 2 * each ? n : from + each;

	while (to < n && (!saw_some(slices, from, to) || !saw_some(slices, to, n)))
		to++;
	return to;
}

/* Scales the weights, `each` slices at a time. */
static struct found scale(struct alloc_slice *slices, u32 n, u32 each, const double *base)
{
	double scaled = scale_of(slices, n, base, 1);
	struct found ret = {0};

	for (u32 from = 0, to; from < n; from = to) {
		to = group_end(slices, n, from, each);
		scaled = scale_of(slices + from, to - from, base + from, scaled);
		for (u32 i = from; i < to; i++) {
			slices[i].weight = base[i] * scaled;
			ret.calls += slices[i].weight * slices[i].calls;
			ret.bytes += slices[i].weight * slices[i].bytes;
		}
	}
	return ret;
}

struct scaled { /* sums over slices with weights */
	double calls, bytes, rounded;
};

/* What differs between slices is how many calls, and bytes that were asked for, come with as many that are counted. */
static void add_scaled(const struct alloc_slice *slices, u32 n, struct alloc_sums *calls, struct alloc_sums *bytes)
{
	struct scaled all = {0};
	double c = 0, b = 0, seen = 0, one;

	for (u32 i = 0; i < n; i++) {
		all.calls += slices[i].weight * slices[i].calls;
		all.bytes += slices[i].weight * slices[i].bytes;
		all.rounded += slices[i].weight * slices[i].rounded;
		seen += slices[i].rounded;
	}
	for (u32 i = 0; i < n && all.rounded > 0; i++) {
		const struct alloc_slice *s = &slices[i];

		c += pow(s->weight * (s->calls - s->rounded * all.calls / all.rounded), 2);
		b += pow(s->weight * (s->bytes - s->rounded * all.bytes / all.rounded), 2);
	}
	one = largest_of(slices, n) / fmax(seen, 1);
	calls->sum += all.calls;
	calls->chance += chance_of(c, n, 0) + pow(all.calls * one, 2);
	bytes->sum += all.bytes;
	bytes->chance += chance_of(b, n, 0) + pow(all.bytes * one * ROUNDED_OFF, 2);
}

/* No window saw a call. */
static void add_unseen(const struct alloc_slice *slices, u32 n, struct alloc_sums *calls, struct alloc_sums *bytes)
{
	for (u32 i = 0; i < n; i++) {
		bytes->sum += slices[i].counted;
		bytes->less += slices[i].counted * ROUNDED_MOST;
		calls->more += slices[i].counted / LEAST_BLOCK;
	}
}

/* Weights are right among each other; the counter says how large they are. base: room for them. */
static void weigh_by_counter(
        struct alloc_slice *slices, u32 n, double *base, struct alloc_sums *calls, struct alloc_sums *bytes)
{
	struct found alone, together, sum;

	for (u32 i = 0; i < n; i++)
		base[i] = slices[i].weight;
	if (!saw_some(slices, 0, n)) {
		add_unseen(slices, n, calls, bytes);
		return;
	}
	alone = scale(slices, n, 1, base);
	together = scale(slices, n, n, base);
	sum = scale(slices, n, slices_of_group(slices, n), base);
	calls->less += fmax(sum.calls - fmin(alone.calls, together.calls), 0);
	calls->more += fmax(fmax(alone.calls, together.calls) - sum.calls, 0);
	bytes->less += fmax(sum.bytes - fmin(alone.bytes, together.bytes), 0) + EDGES_OFF * sum.bytes;
	bytes->more += fmax(fmax(alone.bytes, together.bytes) - sum.bytes, 0) + EDGES_OFF * sum.bytes;
	add_scaled(slices, n, calls, bytes);
}

/* Is the counter known of most, and does it say of windows what calls in them say? */
static bool are_counted(const struct alloc_slice *slices, u32 n)
{
	double all = 0, counted = 0, rounded = 0;
	u32 known = 0;

	for (u32 i = 0; i < n; i++)
		if (slices[i].is_counted) {
			known++;
			all += slices[i].counted;
			counted += slices[i].own_counted;
			rounded += slices[i].rounded;
		}
	if (known <= n / 2)
		return false;
	return rounded > 0 ? rounded < 2 * counted && counted < 2 * rounded : all > 0;
}

enum alloc_clock alloc_weigh(struct alloc_slice *slices, u32 n, const struct alloc_cold *cold, struct alloc_sums *calls,
        struct alloc_sums *bytes)
{
	const struct alloc_sums before[] = {*calls, *bytes};
	cleanup(free) double *weight = calloc(n + 1, sizeof(*weight)), *other = calloc(n + 1, sizeof(*other));
	bool waits = alloc_waits_tell(slices, n, cold);

	for (u32 i = 0; i < n; i++)
		slices[i].weight = 1;
	if (!weight || !other)
		return ALLOC_CLOCK_CPU;
	if (waits)
		weigh_by_waits(slices, n, weight, other, calls, bytes);
	else
		weigh_by_progress(slices, n, cold, weight, other, calls, bytes);
	if (!are_counted(slices, n))
		return waits ? ALLOC_CLOCK_WAITS : ALLOC_CLOCK_CPU;
	*calls = before[0];
	*bytes = before[1];
	weigh_by_counter(slices, n, weight, calls, bytes);
	return ALLOC_CLOCK_COUNTER;
}

/*
 * What few windows have seen may be twice as much as easily as half: both errors multiply, and divide. Their logarithms
 * add up by their squares.
 */
static double times_of(const struct alloc_sums *s, double systematic)
{
	double chance = s->sum > 0 ? CHANCE * sqrt(s->chance) / s->sum : 0;

	return exp(fmin(hypot(chance, log(systematic)), LOG_MOST));
}

double alloc_sums_low(const struct alloc_sums *s)
{
	return s->sum / times_of(s, s->sum > s->less ? s->sum / (s->sum - s->less) : exp(LOG_MOST));
}

double alloc_sums_high(const struct alloc_sums *s)
{
	return s->sum > 0 ? s->sum * times_of(s, 1 + s->more / s->sum) : s->more;
}
