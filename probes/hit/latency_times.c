/* SPDX-License-Identifier: Apache-2.0 */
#include "latency_times.h"

#include <math.h>
#include <string.h>

#define KNOWN_LEAST  5000 /* ns: the price of the median hit, of a target with other code in its caches */
#define PRICES_LEAST 8
#define SIGMAS       1.96 /* of a normal distribution, to each side: 95 % */

static u64 less(u64 ns, u64 price)
{
	return ns > price ? ns - price : 0;
}

/* Of the calls in rank order, as if they lay evenly in their buckets. */
static u64 quantile(const struct latency_stats *s, double part)
{
	double rank = fmin(fmax(part, 0), 1) * (double)s->returned, before = 0, inside;
	u32 i = 0, last = LATENCY_BUCKETS - 1;
	u64 ns;

	for (; i < last && (!s->bucket[i] || before + (double)s->bucket[i] < rank); i++)
		before += (double)s->bucket[i];
	inside = s->bucket[i] ? (rank - before) / (double)s->bucket[i] : 0;
	ns = latency_least(i) + (u64)(fmax(inside, 0) * (double)(latency_least(i + 1) - latency_least(i)));
	return ns < s->max_ns ? ns : s->max_ns;
}

/* 1, 2, 5, 10 … us */
static u64 round_up(u64 ns)
{
	for (u64 unit = 1000;; unit *= 10)
		for (u32 i = 0; i < 3; i++)
			if (ns <= unit * (i == 2 ? 5 : i + 1))
				return unit * (i == 2 ? 5 : i + 1);
}

static void add_row(struct latency_times *t, u64 from, u64 to, u64 calls)
{
	struct latency_row *last = t->nrows ? &t->row[t->nrows - 1] : NULL;

	if (last && last->from == from)
		last->calls += calls;
	else if (t->nrows < LATENCY_ROWS)
		t->row[t->nrows++] = (struct latency_row){.from = from, .to = to, .calls = calls};
}

static void make_rows(const struct latency_stats *s, u64 price, struct latency_times *t)
{
	for (u32 i = 0; i < LATENCY_BUCKETS; i++) {
		u64 ns = less((latency_least(i) + latency_least(i + 1)) / 2, price), from, to;
		u32 row = latency_bucket(ns) / LATENCY_ROWS_EACH;

		if (!s->bucket[i])
			continue;
		from = latency_least(row * LATENCY_ROWS_EACH);
		to = latency_least((row + 1) * LATENCY_ROWS_EACH);
		if (ns < t->known)
			add_row(t, 0, t->known, s->bucket[i]);
		else
			add_row(t, from < t->known ? t->known : from, to, s->bucket[i]);
	}
}

void latency_times(
        const struct latency_stats *s, const struct latency_price *price, double seen, struct latency_times *ret)
{
	double n = (double)s->returned * seen, aside = n > 0 ? SIGMAS / 2 / sqrt(n) : 0;
	static const struct latency_price none;

	memset(ret, 0, sizeof(*ret));
	if (!s->returned)
		return;
	if (price->n < PRICES_LEAST)
		price = &none;
	else
		ret->known = round_up(fmax(KNOWN_LEAST, 2.0 * (double)(price->high - price->low)));
	ret->mean = less(s->sum_ns / s->returned, price->mean);
	ret->median = less(quantile(s, 0.5), price->middle);
	ret->median_low = less(quantile(s, 0.5 - aside), price->high);
	ret->median_high = less(quantile(s, 0.5 + aside), price->low);
	ret->part_99 = less(quantile(s, 0.99), price->middle);
	ret->most = less(s->max_ns, price->middle);
	make_rows(s, price->middle, ret);
}
