/* SPDX-License-Identifier: Apache-2.0 */
/* The small tree of a finding: what comes first, what is left out, and that this is said. */
#include "unit.h"

#include "frontends/report/finding_tree.h"

static void add(struct profile *p, const char *path, u64 value)
{
	char *copy = strdup(path), *rest = copy, *part;
	u32 node = 0, function;

	while ((part = strsep(&rest, ";"))) {
		bool kernel = !strncmp(part, "k:", 2);
		struct profile_function fn = {.name = kernel ? part + 2 : part,
		        .module = "",
		        .file = "",
		        .kind = kernel ? KIND_KERNEL : KIND_NATIVE};

		assert_null(profile_function(p, 0, &fn, false, &function));
		assert_null(profile_child(p, node, function, &node));
	}
	profile_add(p, node, value);
	free(copy);
}

/* "65.0 | a\n": shares, and names behind the lines of the tree. */
static char *drawn(struct profile *p, const char *site)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	profile_finish(p);
	assert_null(finding_tree_write(p, site, 1, out));
	fclose(out);
	profile_destroy(p);
	return ret;
}

static void expect(const char *text, const char *const *parts)
{
	const char *at = text;

	for (; *parts; parts++) {
		const char *found = strstr(at, *parts);

		if (!found)
			fail_msg("no '%s' where it should be:\n%s", *parts, text);
		at = found + 1;
	}
}

static struct profile *of(const char *long_way, u64 long_value, const char *other, u64 other_value)
{
	struct profile *p;

	assert_null(profile_create(&p));
	p->meta.unit = "samples";
	add(p, long_way, long_value);
	add(p, other, other_value);
	return p;
}

static void test_way_to_site_comes_first(void **state)
{
	char *text = drawn(of("all;clone3;a1;a2;a3;a4;a5;a6;a7;a8;a9;b1;b2;b3;b4;b5;b6;b7;b8;b9;c1;c2;c3;c4;c5", 65,
	                           "all;fcontext;site;work", 35),
	        "site");

	expect(text, (const char *const[]){"35.0", "fcontext", "site", "work", "65.0", "clone3", "a2", NULL});
	free(text);
}

static void test_heaviest_comes_first(void **state)
{
	char *text = drawn(of("all;light;a1;a2", 35, "all;heavy;b1", 65), "");

	expect(text, (const char *const[]){"65.0", "heavy", "b1", "35.0", "light", "a2", NULL});
	free(text);
}

static void test_several_programs(void **state)
{
	char *text = drawn(of("light;a1;site", 35, "heavy;b1", 65), "site");

	expect(text, (const char *const[]){"35.0", "light", "site", "65.0", "heavy", "b1", NULL});
	free(text);
}

static void test_what_is_cut_is_said(void **state)
{
	struct profile *p =
	        of("all;a;a1;a2;a3;a4;a5;a6;a7;a8;a9;b1;b2;b3;b4;b5;b6;b7;b8;b9;c1;c2;c3;c4;c5", 65, "all;rest", 35);
	char *text = drawn(p, "");

	expect(text, (const char *const[]){"65.0", "c1", "\u2026\n", "35.0", "+ 1 more", NULL});
	free(text);
}

static void test_far_site_is_drawn(void **state)
{
	char *text = drawn(of("all;a;a1;a2;a3;a4;a5;a6;a7;a8;a9;b1;b2;b3;b4;b5;b6;b7;b8;b9;c1;c2;c3;c4;c5;site;work",
	                           65, "all;b", 35),
	        "site");

	expect(text, (const char *const[]){"65.0", "(24 calls)", "65.0", "site", "65.0", "work", "35.0", "b", NULL});
	assert_null(strstr(text, "a5"));
	free(text);
}

static void test_kernel_is_short(void **state)
{
	char *text =
	        drawn(of("all;read;k:entry;k:do_syscall_64;k:__x64_sys_read;k:vfs_read;k:wait", 9, "all;b", 1), "read");

	expect(text, (const char *const[]){"read", "__x64_sys_read", "wait", NULL});
	assert_null(strstr(text, "do_syscall_64"));
	assert_null(strstr(text, "vfs_read"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_way_to_site_comes_first),
	        cmocka_unit_test(test_heaviest_comes_first), cmocka_unit_test(test_several_programs),
	        cmocka_unit_test(test_what_is_cut_is_said), cmocka_unit_test(test_far_site_is_drawn),
	        cmocka_unit_test(test_kernel_is_short)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
