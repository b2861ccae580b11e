/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit.h"

#include "frontends/format/chance.h"
#include "frontends/format/diff.h"
#include "frontends/format/diff_test.h"
#include "profile_text.h"

static struct profile *folded(const char *text)
{
	struct filter_options options = {.threads = true};
	struct recording recording;
	struct profile *p;

	assert_null(read_bytes(text, strlen(text), &options, &p, &recording));
	return p;
}

static struct profile *compare(const char *before, const char *after, bool raw)
{
	struct diff_options options = {.raw = raw, .before = "a.yrt"};
	struct profile *a = folded(before), *b = folded(after), *ret;

	assert_null(diff_create(a, b, &options, &ret));
	profile_destroy(a);
	profile_destroy(b);
	return ret;
}

static void expect_folded(const char *before, const char *after, bool raw, const char *expected)
{
	struct profile *p = compare(before, after, raw);
	struct bytes b = written(p, &format_folded);

	assert_string_equal(b.data, expected);
	free(b.data);
	profile_destroy(p);
}

static void test_counts(void **state)
{
	expect_folded("m;a 3\nm;b 1\n", "m;a 3\nm;b 1\n", false, "m;a 3 3\nm;b 1 1\n");
	expect_folded("m;a 3\nm;gone 1\n", "m;a 3\nm;new 1\n", false, "m;a 3 3\nm;gone 1 0\nm;new 0 1\n");
	expect_folded("m 1\n", "m 2\nm;a 2\n", true, "m 1 2\nm;a 0 2\n");
}

/* Totals are made equal, whichever is larger, and nothing that was there becomes 0. */
static void test_totals(void **state)
{
	expect_folded("m;a 1\nm;b 1\n", "m;a 100\nm;b 300\n", false, "m;a 200 100\nm;b 200 300\n");
	expect_folded("m;a 100\nm;b 300\n", "m;a 1\nm;b 1\n", false, "m;a 100 200\nm;b 300 200\n");
	expect_folded("m;a 999999\nm;rare 1\n", "m;b 10\n", false, "m;a 999999 0\nm;b 0 1000000\nm;rare 1 0\n");
}

static struct profile *marked(u32 sure, u32 approx)
{
	struct profile_function fn = {.name = "f", .module = "hotspot", .kind = KIND_SCRIPT_JIT, .flags = FRAME_APPROX};
	struct profile *p;
	u32 function, node;

	assert_null(profile_create(&p));
	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_null(profile_child(p, 0, function, &node));
	profile_add(p, node, approx);
	fn.flags = 0;
	assert_null(profile_function(p, 0, &fn, false, &function));
	assert_null(profile_child(p, 0, function, &node));
	profile_add(p, node, sure);
	profile_finish(p);
	return p;
}

/* A function that one side is certain of somewhere is one, and certain. */
static void test_approximate(void **state)
{
	for (u32 sure = 0; sure < 2; sure++) {
		struct profile *a = marked(0, 3), *b = marked(sure, 2), *p;

		assert_null(diff_create(a, b, &(struct diff_options){.before = "a.yrt"}, &p));
		assert_int_equal(p->nnodes, 2);
		assert_int_equal(p->functions[p->nodes[1].function].flags, sure ? 0 : FRAME_APPROX);
		profile_destroy(p);
		profile_destroy(b);
		profile_destroy(a);
	}
}

static void test_empty(void **state)
{
	expect_folded("# none\n", "m;a 2\n", false, "m;a 0 2\n");
	expect_folded("m;a 2\n", "# none\n", false, "m;a 2 0\n");
	expect_folded("# none\n", "# none\n", false, "");
}

/* A function is the same though its line moved or the thread has another id; functions without a name are not. */
static void test_identity(void **state)
{
	expect_folded("w (tid 1);get (a.lua:10) 1\n", "w (tid 2);get (a.lua:12) 1\n", false,
	        "w (tid 2);get (a.lua:12) 1 1\n");
	expect_folded("function (a.lua:10) 1\n", "function (a.lua:12) 1\n", false,
	        "function (a.lua:10) 1 0\nfunction (a.lua:12) 0 1\n");
	expect_folded("f(int) 1\n", "f(long) 1\n", false, "f(int) 1 0\nf(long) 0 1\n");
	expect_folded("get (a.lua:10) 1\n", "get (b.lua:10) 1\n", false, "get (a.lua:10) 1 0\nget (b.lua:10) 0 1\n");
}

static void test_model(void **state)
{
	struct profile *p = compare("m;a 1\nm;b 1\n", "m;a 8\nm 2\n", false);
	double *totals;

	assert_true(p->base_scale == 5);
	assert_string_equal(p->meta.before, "a.yrt: 2 samples");
	assert_int_equal(p->nodes[0].total, 10);
	assert_null(diff_totals(p, &totals));
	assert_true(totals[0] == 10 && totals[1] == 10);
	free(totals);
	profile_destroy(p);
	assert_true(
	        diff_change(0, 3) == 1 && diff_change(3, 0) == -1 && diff_change(2, 2) == 0 && diff_change(0, 0) == 0);
	assert_true(diff_change(1, 2) == 0.5 && diff_change(2, 1) == -0.5);
}

/* Tables of Student's t and of the normal distribution. */
static void test_tails(void **state)
{
	static const struct {
		double t, df, p;
	} known[] = {{12.7062, 1, 0.05}, {2.22814, 10, 0.05}, {4.58689, 10, 0.001}, {1.95996, 0, 0.05},
	        {3.29053, 0, 0.001}, {0, 7, 1}};
	double p[] = {0.01, 0.04, 0.03, 0.005}, values[] = {3, 1, 2, 10};
	u32 order[4];

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		assert_true(fabs(chance_of_t(known[i].t, known[i].df) / known[i].p - 1) < 1e-4);
		assert_true(!known[i].t || fabs(chance_quantile(known[i].p, known[i].df) / known[i].t - 1) < 1e-4);
	}
	chance_holm(p, order, 4);
	assert_true(fabs(p[3] - 0.02) < 1e-12 && fabs(p[0] - 0.03) < 1e-12 && fabs(p[2] - 0.06) < 1e-12 &&
	            fabs(p[1] - 0.06) < 1e-12);
	assert_true(chance_median(values, 4) == 2.5 && chance_median(values, 3) == 2 && chance_median(values, 0) == 0);
}

#define RUNS_MOST 8

/* Runs of a program of 40 functions, one of them of another weight behind a caller; clumps: samples that come together.
 */
static struct profile *simulate(u64 *seed, double weight, u32 samples, u32 clumps)
{
	char text[8192];
	u32 counts[40] = {0}, n = 0;

	for (u32 i = 0; i < samples / clumps; i++) {
		double all = 39 + weight, at;

		*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
		at = (double)(*seed >> 33) / (1ull << 31) * all;
		counts[at < weight ? 0 : 1 + (u32)(at - weight)] += clumps;
	}
	for (u32 i = 0; i < 40; i++)
		n += snprintf(text + n, sizeof(text) - n, "main;call%u;f%u %u\n", i % 10, i, counts[i]);
	return folded(text);
}

/* Tests nruns a side, and gives how many were found, the noise, and whether f0 is found grown. */
static u32 tried(u64 *seed, u32 nruns, double weight, u32 clumps, double *noise, bool *found)
{
	struct profile *runs[RUNS_MOST], *before, *after, *difference;
	const struct profile *const *all = (const struct profile *const *)runs;
	struct diff_side sides[2] = {{all, nruns}, {all + nruns, nruns}};
	struct diff_options options = {.before = "a.yrt"};
	struct diff_tested t;
	const struct diff_finding *most;
	u32 n;

	for (u32 i = 0; i < 2 * nruns; i++)
		runs[i] = simulate(seed, i < nruns ? 1 : weight, 4000, clumps);
	assert_null(diff_join(sides[0].runs, nruns, &before));
	assert_null(diff_join(sides[1].runs, nruns, &after));
	assert_int_equal(before->nodes[0].total, 4000 * nruns);
	assert_null(diff_create(before, after, &options, &difference));
	assert_null(diff_test(difference, sides, false, &t));
	assert_int_equal(t.functions, 50);
	most = diff_grew(&t, 1, false);
	*found = most && (!strcmp(difference->functions[most->function].name, "f0") ||
	                         !strcmp(difference->functions[most->function].name, "call0"));
	*noise = t.noise;
	n = t.nfindings;
	diff_tested_free(&t);
	profile_destroy(difference);
	profile_destroy(after);
	profile_destroy(before);
	for (u32 i = 0; i < 2 * nruns; i++)
		profile_destroy(runs[i]);
	return n;
}

/* Alike programs give no finding but for one in twenty tries, also where samples come in clumps; a change is found. */
static void test_chance(void **state)
{
	u64 seed = 1;

	for (u32 nruns = 1; nruns <= 4; nruns += 3)
		for (u32 clumps = 1; clumps <= 4; clumps += 3) {
			u32 wrong = 0, right = 0, tries = 60;
			double noise, all = 0;
			bool found;

			for (u32 i = 0; i < tries; i++) {
				wrong += tried(&seed, nruns, 1, clumps, &noise, &found) > 0;
				all += noise;
				tried(&seed, nruns, 3, clumps, &noise, &found);
				right += found;
			}
			print_message("%u runs, clumps of %u: %u wrong, %u right, noise %.2f\n", nruns, clumps, wrong,
			        right, all / tries);
			assert_true(wrong <= 8);
			assert_true(right >= (clumps == 1 ? 58 : 36));
			assert_true(fabs(all / tries / clumps - 1) < 0.35);
		}
}

static void test_pictures(void **state)
{
	struct profile *p = compare("m;gone 1\nm;a 1\n", "m;new 1\nm;a 1\n", false);
	struct bytes svg = written(p, &format_svg), txt = written(p, &format_txt), html = written(p, &format_html);

	assert_non_null(strstr(svg.data, "<title>gone"));
	assert_non_null(strstr(svg.data, "before 50.00 %, after 0.00 %, -50.00 %</title>"));
	assert_non_null(strstr(svg.data, "class=\"gone\"/><text"));
	assert_non_null(strstr(txt.data, "  50.00    0.00  -50.00  "));
	assert_non_null(strstr(txt.data, "compared with a.yrt: 2 samples\n"));
	/* Functions by name: [profile full], a, all, gone, m, new. */
	assert_non_null(strstr(html.data, "\"fn\":[2,4,1,3,5]"));
	assert_non_null(strstr(html.data, "\"self\":[0,0,1,0,1]"));
	assert_non_null(strstr(html.data, "\"base\":[0,0,1,1,0]"));
	assert_non_null(strstr(html.data, "\"baseScale\":1"));
	assert_non_null(strstr(html.data, "\"before\":\"a.yrt: 2 samples\""));
	free(svg.data);
	free(txt.data);
	free(html.data);
	profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_counts),
	        cmocka_unit_test(test_totals),
	        cmocka_unit_test(test_approximate),
	        cmocka_unit_test(test_empty),
	        cmocka_unit_test(test_identity),
	        cmocka_unit_test(test_model),
	        cmocka_unit_test(test_tails),
	        cmocka_unit_test(test_chance),
	        cmocka_unit_test(test_pictures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
