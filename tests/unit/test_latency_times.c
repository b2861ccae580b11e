/* SPDX-License-Identifier: Apache-2.0 */
/* latency_times.h and latency.h: buckets, the price of a hit, and what is left of calls without it. */
#include "unit.h"

#include "probes/event_command.h"
#include "probes/hit/hit_slow.h"
#include "probes/hit/latency_times.h"
#include "probes/sampler.h"

extern const struct event_words latency_words;

static struct latency_summary summary;
static struct latency_times times;
static char *text;

/* Calls of these durations, beside probes that take low, middle or high. */
static void measure(const u64 *ns, u32 n, u64 low, u64 middle, u64 high)
{
	static const struct slow_calls none;

	summary = (struct latency_summary){.n = 1, .of[0] = {.progress = 1, .slow = &none}};
	for (u32 i = 0; i < n; i++) {
		struct latency_stats *s = &summary.of[0].counts;

		s->entered++;
		s->returned++;
		s->sum_ns += ns[i];
		s->max_ns = ns[i] > s->max_ns ? ns[i] : s->max_ns;
		s->bucket[latency_bucket(ns[i])]++;
	}
	summary.of[0].price =
	        (struct latency_price){.low = low, .middle = middle, .high = high, .mean = middle, .n = 64};
	latency_times(&summary.of[0].counts, &summary.of[0].price, 1, &times);
}

static const char *head(void)
{
	struct sampler_stats *st = calloc(1, sizeof(*st));
	size_t size;
	FILE *out;

	free(text);
	out = open_memstream(&text, &size);
	assert_non_null(st);
	st->of_event = &summary;
	st->duration_s = 2;
	latency_words.head(out, st);
	fclose(out);
	free(st);
	return text;
}

static void says(const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in \"%s\"", part, text);
}

static void test_buckets(void **state)
{
	for (u64 ns = 0, before = 0; ns < 1ull << 41; ns += 1 + ns / 1000) {
		u32 i = latency_bucket(ns);

		assert_true(i >= before && i < LATENCY_BUCKETS);
		assert_true(latency_least(i) <= ns && ns < latency_least(i + 1));
		assert_true(latency_least(i + 1) - latency_least(i) <= 1 + ns / LATENCY_STEPS);
		before = i;
	}
	assert_int_equal(latency_bucket(~0ull), LATENCY_BUCKETS - 1);
}

static void test_price(void **state)
{
	u64 prices[20] = {0};
	struct latency_price p = latency_price_of(prices, 20);

	assert_int_equal(p.n, 0);
	for (u32 i = 0; i < 10; i++)
		prices[2 * i] = 1000 + 10 * (u64)i;
	prices[3] = 1000000; /* another thread had the CPU */
	p = latency_price_of(prices, 20);
	assert_int_equal(p.n, 11);
	assert_int_equal(p.low, 1010);
	assert_int_equal(p.middle, 1050);
	assert_int_equal(p.high, 1090);
	assert_int_equal(p.mean, (1000 * 10 + 450 + 1090) / 11);
}

static void test_corrected(void **state)
{
	u64 ns[1000];

	for (u32 i = 0; i < 1000; i++)
		ns[i] = 113000;
	measure(ns, 1000, 12000, 13000, 14000);
	assert_true(times.median >= 99000 && times.median <= 101000);
	assert_true(times.median_low <= times.median && times.median <= times.median_high);
	assert_true(times.median_low >= 97000 && times.median_high <= 103000);
	assert_int_equal(times.mean, 100000);
	assert_int_equal(times.most, 100000);
	assert_int_equal(times.nrows, 1);
	assert_int_equal(times.row[0].calls, 1000);
	assert_true(times.row[0].from <= 100000 && 100000 < times.row[0].to);
	head();
	says("1000 calls in 2.0 s: mean 100 us, median ");
	says("most 100 us, without the probes' 13.0 us");
}

static void test_under(void **state)
{
	static const u64 ns[] = {13220, 13220, 13220, 13220, 13220, 13220, 60000};

	measure(ns, 7, 12000, 13000, 14000);
	assert_int_equal(times.known, 5000);
	assert_int_equal(times.nrows, 2);
	assert_true(!times.row[0].from && times.row[0].to == 5000 && times.row[0].calls == 6);
	head();
	says("median under 5 us, 99 % ");
	says("most 47 us");
	measure(ns, 6, 10000, 13000, 16000); /* the price itself is not known any better */
	assert_int_equal(times.known, 20000);
	head();
	says("mean under 20 us, median under 20 us, 99 % under 20 us, most under 20 us");
}

static void test_unknown(void **state)
{
	static const u64 ns[] = {700, 700, 700};

	measure(ns, 3, 0, 0, 0);
	summary.of[0].price.n = 0;
	head();
	says("3 calls in 2.0 s: mean 700 ns, median 70");
	says(", with the probes' time");
}

static void test_calls(void **state)
{
	static const u64 ns[] = {20000, 20000, 20000, 20000};

	measure(ns, 4, 900, 1000, 1100);
	summary.of[0].progress = 0.5;
	head();
	says("4 calls in 2.0 s (up to 8 without the probes if it never waits): mean 19 us");
	summary.of[0].progress = 0.1;
	head();
	says("at least 4 calls in 2.0 s: mean");
}

static int forget(void **state)
{
	free(text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_buckets),
	        cmocka_unit_test(test_price),
	        cmocka_unit_test(test_corrected),
	        cmocka_unit_test(test_under),
	        cmocka_unit_test(test_unknown),
	        cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
