/* SPDX-License-Identifier: Apache-2.0 */
/* What tells calls of a native function apart, as a user writes it. */
#include "unit.h"

#include "probes/hit/hit_native_key.h"

static const u8 regs[] = {5, 4, 1, 2};

static void ways(void **state)
{
	struct value_places v;

	assert_true(hit_native_key("arg1+48,arg4+16+56#", regs, sizeof(regs), &v));
	assert_int_equal(v.n, 2);
	assert_int_equal(v.base, VALUE_REGISTERS);
	assert_int_equal(v.slot[0], 1 + 5);
	assert_int_equal(v.path[0].n, 1);
	assert_int_equal(v.path[0].at[0], 48);
	assert_int_equal(v.path[0].string, VALUE_STRING_C);
	assert_int_equal(v.slot[1], 1 + 2);
	assert_int_equal(v.path[1].n, 2);
	assert_int_equal(v.path[1].at[1], 56);
	assert_int_equal(v.path[1].string, VALUE_STRING_SIZED);
}

static void refused(void **state)
{
	static const char *const wrong[] = {"", "arg", "arg0+8", "arg5+8", "arg1", "arg1+", "arg1+x", "arg1+32768",
	        "arg1+99999999999999999999", "arg1+8,", "arg1+8,x", "arg1+8##", "arg1+8#+8", "arg99999999999+8",
	        "arg1+1+2+3+4+5+6+7+8+9+10+11+12+13+14+15",
	        "arg1+1,arg1+1,arg1+1,arg1+1,arg1+1,arg1+1,arg1+1,arg1+1,arg1+1"};
	struct value_places v;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (hit_native_key(wrong[i], regs, sizeof(regs), &v))
			fail_msg("\"%s\" was taken", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ways),
	        cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
