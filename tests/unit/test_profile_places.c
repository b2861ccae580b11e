/* SPDX-License-Identifier: Apache-2.0 */
/* Names that show the shortest end of a path that is unique in the profile. */
#include "unit.h"

#include "unwind/profile/profile_places.h"

static u32 add(struct profile *p, const char *name, const char *file, u32 line)
{
	struct profile_function fn = {
	        .name = name, .module = "luajit", .file = file, .line = line, .kind = KIND_SCRIPT};
	u32 function;

	assert_null(profile_function(p, 0, &fn, false, &function));
	return function;
}

static void test_unique_ends(void **state)
{
	static const struct {
		const char *name, *file, *shown;
	} cases[] = {
	        {"f (init.lua:1)", "/a/x/init.lua", "f (x/init.lua:1)"},
	        {"f (init.lua:1)", "/a/y/init.lua", "f (a/y/init.lua:1)"},
	        {"g (init.lua:7)", "/a/y/init.lua", "g (a/y/init.lua:7)"},
	        {"h (init.lua)", "/a/w/y/init.lua", "h (w/y/init.lua)"},
	        {"k (ainit.lua:3)", "/b/ainit.lua", "k (ainit.lua:3)"},
	        {"alone (one.py:2):57", "/usr/lib/one.py", "alone (one.py:2):57"},
	        {"r (base.py:2):57", "django/base.py", "r (django/base.py:2):57"},
	        {"s (base.py:2)", "base.py", "s (base.py:2)"},
	        {"odd (base.py:2) (base.py:3)", "db/base.py", "odd (base.py:2) (db/base.py:3)"},
	        {"function ([string \"/init.lua\"]:1)", "[string \"/init.lua\"]",
	                "function ([string \"/init.lua\"]:1)"},
	        {"Q.f", "Q.java", "Q.f"},
	};
	enum { N = sizeof(cases) / sizeof(*cases) };
	struct profile *p;
	u32 at[N];

	assert_null(profile_create(&p));
	for (u32 i = 0; i < N; i++)
		at[i] = add(p, cases[i].name, cases[i].file, i);
	for (u32 again = 0; again < 2; again++) { /* what was rewritten is not found any more */
		assert_null(profile_shorten_places(p));
		for (u32 i = 0; i < N; i++) {
			assert_string_equal(p->functions[at[i]].name, cases[i].shown);
			assert_string_equal(p->functions[at[i]].file, cases[i].file);
		}
	}
	profile_destroy(p);
}

static void test_place(void **state)
{
	assert_string_equal(profile_place("/a/b.lua"), "b.lua");
	assert_string_equal(profile_place("b.lua"), "b.lua");
	assert_string_equal(profile_place("[string \"a/b\"]"), "[string \"a/b\"]");
	assert_string_equal(profile_place("<frozen importlib._bootstrap>"), "<frozen importlib._bootstrap>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_unique_ends), cmocka_unit_test(test_place)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
