/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of a live interpreter, one script of fixtures/lua a kind of frame, compared with what Lua says itself. */
#include "luajit_levels.h"

static void check_script(const char *script, u32 stops, u32 deepest)
{
	struct tally tally = compare_script(script, "");

	assert_true(tally.stops >= stops); /* some builds have more metamethods, as Lua 5.2 */
	assert_true(tally.deepest >= deepest);
}

/* name, stops at least, the deepest stack has at least that many levels */
#define SCRIPTS(X)                                                                                                     \
	X(recursion, 9, 12)                                                                                            \
	X(coroutines, 8, 14)                                                                                           \
	X(metamethods, 15, 4)                                                                                          \
	X(errors, 5, 8)                                                                                                \
	X(ffi_callback, 6, 8)                                                                                          \
	X(deep_stack, 3, 3000)                                                                                         \
	X(varargs, 22, 4)                                                                                              \
	X(protected, 96, 12)                                                                                           \
	X(threads, 74, 20)                                                                                             \
	X(builtins, 24, 4)                                                                                             \
	X(metamethods_all, 74, 4)                                                                                      \
	X(hooks, 49, 4)                                                                                                \
	X(c_hooks, 4, 6)                                                                                               \
	X(through_c, 9, 300)                                                                                           \
	X(chunks, 16, 5)                                                                                               \
	X(machines, 19, 10)                                                                                            \
	X(ffi_calls, 31, 6)
#define X(name, stops, deepest)                                                                                        \
	static void test_##name(void **state)                                                                          \
	{                                                                                                              \
		check_script(#name ".lua", stops, deepest);                                                            \
	}
SCRIPTS(X)
#undef X

int main(void)
{
#define X(name, stops, deepest) cmocka_unit_test(test_##name),
	const struct CMUnitTest tests[] = {SCRIPTS(X)};
#undef X

	return cmocka_run_group_tests(tests, NULL, NULL);
}
