/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Lua functions from the text where they are defined. */
#include "unit.h"

#include "runtimes/lua_common/lua_source.h"

static const char *parse(const char *text, struct lua_definition d)
{
	static char name[64];

	return lua_source_parse(text, strlen(text), &d, name, sizeof(name)) ? name : "";
}

static void test_forms(void **state)
{
	static const struct {
		const char *text, *name;
		u32 parameters;
		bool vararg;
	} forms[] = {
	        {"function plain(a, b) return a end", "plain", 2, false},
	        {"local function inner() return 1 end", "inner", 0, false},
	        {"function template.substitute(view) end", "template.substitute", 1, false},
	        {"function Class:method(a) end", "Class:method", 2, false},
	        {"function a.b.c:d(...) end", "a.b.c:d", 1, true},
	        {"M.handler = function(view) end", "M.handler", 1, false},
	        {"function named(a, ...rest) end", "named", 1, true},
	        {"local spaced  =  function ( a , b , ... ) end", "spaced", 2, true},
	        {"\tlist = {1, key = function(x) end}", "key", 1, false},
	        {"t[\"a key\"] = function() end", "", 0, false},
	        {"t[\"key\"] = function() end", "key", 0, false},
	        {"t['other'] = function() end", "other", 0, false},
	        {"t[i] = function() end", "", 0, false},
	        {"table.sort(t, function(a, b) return a < b end)", "", 2, false},
	        {"local a, b = function() end", "", 0, false},
	        {"return x == function() end", "", 0, false},
	        {"functional(1) -- end", "", 0, false},
	        {"function wrong(a) end", "", 2, false},
	        {"function wrong(a) end", "", 1, true},
	        {"function broken(a,, b) end", "", 2, false},
	        {"function open(a, b end", "", 2, false},
	};

	for (u32 i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct lua_definition d = {
		        .line = 1, .last = 1, .parameters = forms[i].parameters, .vararg = forms[i].vararg};

		assert_string_equal(parse(forms[i].text, d), forms[i].name);
	}
}

static void test_lines(void **state)
{
	static const char text[] = "local M = {}\nfunction M.long(\n\ta,\n\tb)\n\treturn a\nend\nreturn M";

	assert_string_equal(parse(text, (struct lua_definition){.line = 2, .last = 6, .parameters = 2}), "M.long");
	/* the file is another one now */
	assert_string_equal(parse(text, (struct lua_definition){.line = 2, .last = 5, .parameters = 2}), "");
	assert_string_equal(parse(text, (struct lua_definition){.line = 3, .last = 6, .parameters = 2}), "");
	assert_string_equal(parse(text, (struct lua_definition){.line = 2, .last = 8, .parameters = 2}), "");
	assert_string_equal(parse(text, (struct lua_definition){.line = 0, .last = 6, .parameters = 2}), "");
	assert_string_equal(parse(text, (struct lua_definition){.line = 6, .last = 2, .parameters = 2}), "");
	assert_string_equal(parse("", (struct lua_definition){.line = 1, .last = 1}), "");
}

/* Of several in a line the one with as many parameters; none if that does not decide. */
static void test_several(void **state)
{
	static const char text[] =
	        "local t = {one = function(a) end, two = function(a, b) end, three = function(x) end}";

	assert_string_equal(parse(text, (struct lua_definition){.line = 1, .last = 1, .parameters = 2}), "two");
	assert_string_equal(parse(text, (struct lua_definition){.line = 1, .last = 1, .parameters = 1}), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_forms),
	        cmocka_unit_test(test_lines),
	        cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
