/* SPDX-License-Identifier: Apache-2.0 */
/* A profile made anew: functions that become chains, others that stay, counts that are all kept. */
#include "unit.h"

#include "unwind/profile/profile_expand.h"

static u32 function(struct profile *p, u64 key, const char *name)
{
	struct profile_function fn = {.name = name, .module = "m", .file = "", .kind = KIND_NATIVE};
	u32 f;

	assert_null(profile_function(p, key, &fn, false, &f));
	return f;
}

static u32 child(struct profile *p, u32 node, u32 f)
{
	u32 n;

	assert_null(profile_child(p, node, f, &n));
	return n;
}

/* "site" becomes outer, inner; "gone" nothing of its own. */
static struct error *chain(
        void *ctx, struct profile *to, const struct profile_function *fn, u32 f, const u32 **ret, u32 *n)
{
	static u32 list[2];

	*n = strncmp(fn->name, "site", 4) ? 0 : 2;
	*ret = *n || !strcmp(fn->name, "gone") ? list : NULL;
	if (*n) {
		list[0] = function(to, 0, "outer");
		list[1] = function(to, 0, "inner");
	}
	return NULL;
}

/* "all;outer;inner 3", a line for each node with a count. */
static const char *text(struct profile *p)
{
	static char all[4096];
	size_t at = 0;

	all[0] = 0;
	for (u32 i = 0; i < p->nnodes; i++) {
		char line[512] = "";

		if (!p->nodes[i].self)
			continue;
		for (u32 k = i;; k = p->nodes[k].parent) {
			char longer[512];

			snprintf(longer, sizeof(longer), "%.200s%s%.200s", p->functions[p->nodes[k].function].name,
			        *line ? ";" : "", line);
			strcpy(line, longer);
			if (!k)
				break;
		}
		at += snprintf(all + at, sizeof(all) - at, "%s %lu\n", line, p->nodes[i].self);
	}
	return all;
}

static struct profile *expanded(const struct profile *old)
{
	struct profile *p = NULL;

	assert_null(expand_profile(old, chain, NULL, &p));
	profile_finish(p);
	return p;
}

static void test_chains(void **state)
{
	struct profile *old, *p;
	u32 main, a, b;

	assert_null(profile_create(&old));
	main = child(old, 0, function(old, 0, "main"));
	a = child(old, main, function(old, 11, "site"));
	b = child(old, main, function(old, 12, "site"));
	profile_add(old, a, 2);
	profile_add(old, b, 3);
	profile_add(old, child(old, b, function(old, 0, "leaf")), 4);
	profile_add(old, main, 5);
	p = expanded(old);
	assert_string_equal(text(p), "all;main 5\nall;main;outer;inner 5\nall;main;outer;inner;leaf 4\n");
	assert_int_equal(p->nodes[0].total, 14);
	profile_destroy(p);
	profile_destroy(old);
}

/* A function that becomes none: its caller has what it had, and its callees. */
static void test_gone(void **state)
{
	struct profile *old, *p;
	u32 gone;

	assert_null(profile_create(&old));
	gone = child(old, child(old, 0, function(old, 0, "main")), function(old, 31, "gone"));
	profile_add(old, gone, 2);
	profile_add(old, child(old, gone, function(old, 0, "leaf")), 4);
	p = expanded(old);
	assert_string_equal(text(p), "all;main 2\nall;main;leaf 4\n");
	profile_destroy(p);
	profile_destroy(old);
}

/* Two functions that look the same, as those of two processes, stay two. */
static void test_functions_that_stay(void **state)
{
	struct profile *old, *p;

	assert_null(profile_create(&old));
	profile_add(old, child(old, 0, function(old, 21, "same")), 1);
	profile_add(old, child(old, 0, function(old, 22, "same")), 2);
	p = expanded(old);
	assert_string_equal(text(p), "all;same 1\nall;same 2\n");
	profile_destroy(p);
	profile_destroy(old);
}

static void test_images(void **state)
{
	struct profile_function fn = {.name = "f", .module = "m", .file = "", .kind = KIND_NATIVE, .address = 0x10};
	struct profile *old, *p;
	u32 f, found = 0;

	assert_null(profile_create(&old));
	assert_null(profile_image(old, "/first", "aa", &fn.image));
	assert_null(profile_image(old, "/second", "bb", &fn.image));
	assert_null(profile_function(old, 31, &fn, false, &f));
	profile_add(old, child(old, 0, f), 1);
	p = expanded(old);
	for (u32 i = 0; i < p->nfunctions; i++) {
		if (strcmp(p->functions[i].name, "f"))
			continue;
		found++;
		assert_string_equal(p->images[p->functions[i].image].path, "/second");
		assert_int_equal(p->functions[i].address, 0x10);
	}
	assert_int_equal(found, 1);
	profile_destroy(p);
	profile_destroy(old);
}

/* Where there is no room for more nodes, nothing is lost but the paths. */
static void test_full(void **state)
{
	struct profile *old, *p;

	assert_null(profile_create(&old));
	for (u32 i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "site%u", i);
		profile_add(old, child(old, child(old, 0, function(old, 0, name)), function(old, 0, name + 1)), 1);
	}
	old->max_nodes = 8;
	p = expanded(old);
	assert_int_equal(p->nodes[0].total, 20);
	assert_true(p->nnodes <= 9);
	profile_destroy(p);
	profile_destroy(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_chains),
	        cmocka_unit_test(test_gone),
	        cmocka_unit_test(test_functions_that_stay),
	        cmocka_unit_test(test_images),
	        cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
