/* SPDX-License-Identifier: Apache-2.0 */
/* tlab_reweight.h: shares by samples and survey have no bias and less error, also of rare kinds; a survey of other
 * buffers does no harm. */
#include <math.h>

#include "unit.h"

#include "probes/tlab/tlab_reweight.h"

#define KINDS   12
#define RUNS    2000
#define BIAS    0.0005
#define SAMPLES 200
#define BUFFERS 50
#define BYTES   1e6 /* of a buffer */
#define BY      30.0
#define FILLED  0.98
#define WEIGHT  5e5                         /* of a sample */
#define ROOM    (SAMPLES * WEIGHT / FILLED) /* of all buffers */

static const double shares[KINDS] = {0.2, 0.18, 0.15, 0.12, 0.1, 0.08, 0.06, 0.05, 0.03, 0.02, 0.008, 0.002};

static u32 draw(const double *of, double all)
{
	double x = drand48() * all;
	u32 i = 0;

	while (i + 1 < KINDS && x >= of[i])
		x -= of[i++];
	return i;
}

static struct reweighting *make(u32 *kinds)
{
	struct reweighting *s;

	assert_null(reweight_create(&s));
	for (u32 i = 0; i < KINDS; i++)
		assert_null(reweight_kind(s, &(struct frame){.where = 16 * (i + 1)}, 48, &kinds[i]));
	return s;
}

/* A buffer of some phases, in each of which one kind is made. */
static void count_buffer(struct reweighting *s, const u32 *kinds, const double *of, double all, u32 phases)
{
	double bytes[KINDS] = {0};

	for (u32 i = 0; i < phases; i++)
		bytes[draw(of, all)] += BYTES / phases;
	for (u32 i = 0; i < KINDS; i++)
		if (bytes[i] > 0)
			reweight_counted(s, kinds[i], bytes[i], BYTES, BYTES / FILLED, BY);
}

/* Adds the errors of one run, as sampled and as weighed. Returns the trust. */
static double run(const double *survey, double all, u32 phases, double *sum, double *raw, double *weighed)
{
	u32 kinds[KINDS], seen[KINDS] = {0};
	struct reweighting *s = make(kinds);
	double trust, made = 0;

	for (u32 i = 0; i < BUFFERS; i++)
		count_buffer(s, kinds, survey, all, phases);
	for (u32 i = 0; i < SAMPLES; i++) {
		u32 k = draw(shares, 1);

		seen[k]++;
		reweight_sample(s, kinds[k], WEIGHT);
	}
	trust = reweight_weigh(s, ROOM);
	for (u32 i = 0; i < KINDS; i++)
		made += seen[i] * reweight_factor(s, kinds[i]);
	for (u32 i = 0; i < KINDS; i++) {
		double share = seen[i] * reweight_factor(s, kinds[i]) / made, plain = (double)seen[i] / SAMPLES;

		sum[i] += share - shares[i];
		*raw += (plain - shares[i]) * (plain - shares[i]);
		*weighed += (share - shares[i]) * (share - shares[i]);
	}
	reweight_destroy(s);
	return trust;
}

/* Returns by how much the error has become less; no share may be off in the mean by more than chance allows, and half a
 * thousandth. */
static double gain(u32 phases, double *trust)
{
	double sum[KINDS] = {0}, raw = 0, weighed = 0;

	*trust = 0;
	for (u32 i = 0; i < RUNS; i++)
		*trust += run(shares, 1, phases, sum, &raw, &weighed) / RUNS;
	for (u32 i = 0; i < KINDS; i++)
		assert_true(fabs(sum[i] / RUNS) < 4 * sqrt(shares[i] * (1 - shares[i]) / SAMPLES / RUNS) + BIAS);
	return sqrt(weighed / raw);
}

/* 50 buffers of 6, 60 phases say as much as 300, 3,000 samples; of one phase, less than the samples themselves. */
static void test_better(void **state)
{
	double trust, by;

	srand48(1);
	by = gain(6, &trust);
	assert_true(by < 0.72 && trust > 0.5 && trust < 0.7);
	by = gain(60, &trust);
	assert_true(by < 0.4 && trust > 0.85);
	by = gain(1, &trust);
	assert_true(by < 0.95 && trust < 0.3);
}

/* What makes the first kind never gives up a buffer. */
static void test_other_buffers(void **state)
{
	double others[KINDS], sum[KINDS] = {0}, raw = 0, weighed = 0, trusted = 0;

	srand48(2);
	for (u32 i = 0; i < KINDS; i++)
		others[i] = i ? shares[i] : 0;
	for (u32 i = 0; i < RUNS; i++)
		trusted += run(others, 1 - shares[0], 60, sum, &raw, &weighed) > 0;
	assert_true(trusted < 0.01 * RUNS);
	assert_true(fabs(sum[0] / RUNS) < 0.003);
	assert_true(weighed < 1.05 * raw);
}

/* Too few to estimate their own error. */
static void test_few(void **state)
{
	u32 kinds[KINDS];
	struct reweighting *s = make(kinds);

	srand48(3);
	for (u32 i = 0; i < 5; i++)
		count_buffer(s, kinds, shares, 1, 6);
	for (u32 i = 0; i < SAMPLES; i++)
		reweight_sample(s, kinds[draw(shares, 1)], WEIGHT);
	assert_true(reweight_weigh(s, ROOM) == 0);
	for (u32 i = 0; i < KINDS; i++)
		assert_true(fabs(reweight_factor(s, kinds[i]) - 1) < 1e-9);
	reweight_destroy(s);
	s = make(kinds);
	assert_true(reweight_weigh(s, ROOM) == 0);
	reweight_destroy(s);
}

static double handed(void *ctx, u32 size_class)
{
	return ((const double *)ctx)[size_class == 80];
}

/*
 * 3e7 bytes of large objects, by 20 samples that stand for 4e7, and 2e6 of others, by one that stands for 1e6; in
 * buffers samples stand for 1e8, of which 9e7 were handed out, full to 98 %.
 */
static void test_outside(void **state)
{
	double truth[] = {2e6, 3e7};
	u32 kinds[KINDS], large, small;
	struct reweighting *s = make(kinds);

	srand48(4);
	assert_null(reweight_outside(s, 80, &large));
	assert_null(reweight_outside(s, 60, &small));
	for (u32 i = 0; i < 5; i++)
		count_buffer(s, kinds, shares, 1, 6);
	for (u32 i = 0; i < SAMPLES; i++)
		reweight_sample(s, kinds[draw(shares, 1)], WEIGHT);
	for (u32 i = 0; i < 20; i++)
		reweight_sample(s, large, 2e6);
	reweight_sample(s, small, 1e6);
	reweight_handed(s, handed, truth);
	assert_true(reweight_weigh(s, 9e7 / FILLED) == 0);
	assert_true(fabs(reweight_factor(s, large) - 0.75) < 1e-9);
	assert_true(reweight_factor(s, small) == 1);
	for (u32 i = 0; i < KINDS; i++)
		assert_true(fabs(reweight_factor(s, kinds[i]) - 0.9) < 1e-9);
	reweight_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_better),
	        cmocka_unit_test(test_other_buffers),
	        cmocka_unit_test(test_few),
	        cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
