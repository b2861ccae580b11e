/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "unwind/profile/profile.h"

static int setup(void **state)
{
	return profile_create((struct profile **)state) != NULL;
}

static int teardown(void **state)
{
	profile_destroy(*state);
	return 0;
}

static u32 function(struct profile *p, u64 key, const char *name, bool better)
{
	struct profile_function fn = {.name = name, .module = "m", .kind = KIND_SCRIPT};
	u32 ret = UINT32_MAX;

	assert_null(profile_function(p, key, &fn, better, &ret));
	assert_true(ret < p->nfunctions);
	return ret;
}

static u32 child(struct profile *p, u32 node, u32 fn)
{
	u32 ret = 0;

	assert_null(profile_child(p, node, fn, &ret));
	assert_true(ret && ret < p->nnodes);
	return ret;
}

static void test_empty(void **state)
{
	struct profile *p = *state;

	profile_finish(p);
	assert_int_equal(p->nnodes, 1);
	assert_int_equal(p->nodes[0].total, 0);
	assert_string_equal(p->functions[p->nodes[0].function].name, "all");
	assert_string_equal(p->functions[PROFILE_FULL].name, "[profile full]");
	assert_int_equal(p->functions[0].kind, KIND_ROOT);
}

static void test_identity_without_key(void **state)
{
	struct profile *p = *state;
	char name[] = "handler";
	struct profile_function fn = {.name = name, .kind = KIND_NATIVE, .line = 3};
	struct profile_function others[6] = {fn, fn, fn, fn, fn, fn};
	u32 a, b;

	assert_null(profile_function(p, 0, &fn, false, &a));
	others[0].name = "handle";
	others[1].module = "x";
	others[2].file = "x";
	others[3].line = 4;
	others[4].flags = FRAME_GUESS;
	others[5].kind = KIND_CXX;
	for (size_t i = 0; i < 6; i++) {
		assert_null(profile_function(p, 0, &others[i], false, &b));
		assert_int_not_equal(a, b);
	}
	fn.name = strdup(name);
	memset(name, 'x', sizeof(name) - 1); /* the profile has its own copy */
	assert_null(profile_function(p, 0, &fn, false, &b));
	free((char *)fn.name);
	assert_int_equal(a, b);
	assert_string_equal(p->functions[a].name, "handler");
	assert_string_equal(p->functions[a].module, "");
	assert_string_equal(p->functions[a].file, "");
}

static void test_late_names(void **state)
{
	struct profile *p = *state;
	u32 a = function(p, 7, "(app.lua:42)", false);
	u32 b = function(p, 8, "(app.lua:42)", false);

	assert_int_not_equal(a, b);
	assert_int_not_equal(a, function(p, 0, "(app.lua:42)", false));
	assert_int_equal(a, function(p, 7, "other", false));
	assert_string_equal(p->functions[a].name, "(app.lua:42)");
	assert_int_equal(a, function(p, 7, "handler (app.lua:42)", true));
	assert_string_equal(p->functions[a].name, "handler (app.lua:42)");
	assert_int_equal(a, function(p, 7, "", true));
	assert_int_equal(a, function(p, 7, NULL, true));
	assert_string_equal(p->functions[a].name, "handler (app.lua:42)");
	assert_string_equal(p->functions[b].name, "(app.lua:42)");
}

static void test_better_name_brings_its_file(void **state)
{
	struct profile *p = *state;
	struct profile_function fn = {.name = "?", .file = "a.lua", .line = 1, .kind = KIND_SCRIPT};
	u32 a, b;

	assert_null(profile_function(p, 9, &fn, false, &a));
	fn = (struct profile_function){.name = "f", .file = "b.lua", .line = 2};
	assert_null(profile_function(p, 9, &fn, true, &b));
	fn = (struct profile_function){.name = "g"};
	assert_null(profile_function(p, 9, &fn, true, &b));
	assert_int_equal(a, b);
	assert_string_equal(p->functions[a].name, "g");
	assert_string_equal(p->functions[a].file, "b.lua");
	assert_int_equal(p->functions[a].line, 2);
	assert_int_equal(p->functions[a].kind, KIND_SCRIPT);
}

static void test_totals(void **state)
{
	struct profile *p = *state;
	u32 f = function(p, 0, "f", false), g = function(p, 0, "g", false);
	u32 a = child(p, 0, f), aa = child(p, a, f), ab = child(p, a, g), b = child(p, 0, g);

	assert_int_equal(aa, child(p, a, f));
	profile_add(p, aa, 5);
	profile_add(p, ab, 7);
	profile_add(p, ab, 1);
	profile_add(p, a, 2);
	profile_add(p, b, 10);
	for (int again = 0; again < 2; again++) {
		profile_finish(p);
		assert_int_equal(p->nodes[0].total, 25);
		assert_int_equal(p->nodes[a].total, 15);
		assert_int_equal(p->nodes[ab].total, 8);
		assert_int_equal(p->nodes[b].total, 10);
	}
	assert_int_equal(p->nodes[aa].parent, a);
	assert_int_equal(p->nodes[a].self, 2);
}

/* Every node is reached once through child and sibling, behind its parent. */
static void check_links(const struct profile *p)
{
	u32 seen = 1;

	for (u32 n = 0; n < p->nnodes; n++)
		for (u32 c = p->nodes[n].child; c; c = p->nodes[c].sibling, seen++) {
			assert_true(c > n);
			assert_int_equal(p->nodes[c].parent, n);
		}
	assert_int_equal(seen, p->nnodes);
}

/* Time that was counted for too much is taken away, but none becomes less than nothing. */
static void test_less(void **state)
{
	struct profile *p = *state;
	u32 node = child(p, 0, function(p, 1, "a", false));

	profile_add(p, node, 100);
	profile_add(p, node, (u64)-30);
	assert_int_equal(p->nodes[node].self, 70);
	profile_add(p, node, (u64)-71);
	assert_int_equal(p->nodes[node].self, 0);
}

static void test_many(void **state)
{
	enum { FUNCTIONS = 3000, STACKS = 20000, DEPTH = 10 };
	struct profile *p = *state;
	u32 seed = 1, first, again, node;

	for (int pass = 0; pass < 2; pass++) {
		for (u32 s = seed = 0; s < STACKS; s++) {
			node = 0;
			for (u32 d = 0; d < DEPTH; d++) {
				char name[32];

				seed = seed * 1664525 + 1013904223;
				snprintf(name, sizeof(name), "f%u", (seed >> 8) % (d * FUNCTIONS / DEPTH + 2));
				node = child(p, node, function(p, 0, name, false));
			}
			profile_add(p, node, 1);
		}
		if (!pass)
			first = p->nnodes;
		again = p->nnodes;
	}
	assert_int_equal(first, again);
	assert_true(first > 100000);
	assert_in_range(p->nfunctions, FUNCTIONS / 2, FUNCTIONS + 10);
	profile_finish(p);
	assert_int_equal(p->nodes[0].total, 2 * STACKS);
	check_links(p);
}

static void test_full(void **state)
{
	struct profile *p = *state;
	u32 f = function(p, 0, "f", false), g = function(p, 0, "g", false), a, over;

	p->max_nodes = 3;
	a = child(p, child(p, 0, f), g);
	over = child(p, a, f);
	assert_int_equal(p->nodes[over].function, PROFILE_FULL);
	assert_int_equal(p->nodes[over].parent, 0);
	assert_int_equal(child(p, over, g), over);
	assert_int_equal(child(p, 0, g), over);
	assert_int_equal(child(p, p->nodes[a].parent, g), a);
	profile_add(p, over, 4);
	profile_finish(p);
	assert_int_equal(p->nodes[0].total, 4);
	assert_int_equal(p->nnodes, 4);
	check_links(p);
}

static void test_long_name_is_cut(void **state)
{
	struct profile *p = *state;
	char *name = malloc(1 << 20);
	u32 a;

	memset(name, 'x', (1 << 20) - 1);
	name[(1 << 20) - 1] = 0;
	a = function(p, 0, name, false);
	assert_int_equal(strlen(p->functions[a].name), 4096);
	assert_int_equal(a, function(p, 0, name, false));
	free(name);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(test_empty),
	        T(test_identity_without_key),
	        T(test_late_names),
	        T(test_better_name_brings_its_file),
	        T(test_totals),
	        T(test_less),
	        T(test_many),
	        T(test_full),
	        T(test_long_name_is_cut),
	};

	profile_destroy(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
