/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "probes/hit/hit_usdt.h"
#include "unwind/arch/x86_64/arch.h"

static void test_operands(void **state)
{
	struct hit_usdt_argument a[HIT_USDT_ARGUMENTS];

	assert_int_equal(hit_usdt_parse("-4@%edi 8@16(%rsp) 1@$-5 2@-8(%rbp,%rcx,4) 8@(%r8) -1@%r10b", a), 6);
	assert_true(a[0].kind == HIT_USDT_REGISTER && a[0].base == DWREG_RDI && a[0].size == 4 && a[0].is_signed);
	assert_true(a[1].kind == HIT_USDT_MEMORY && a[1].base == DWREG_RSP && a[1].value == 16 && !a[1].is_signed);
	assert_true(a[2].kind == HIT_USDT_CONSTANT && a[2].value == -5 && a[2].size == 1);
	assert_true(a[3].kind == HIT_USDT_MEMORY && a[3].value == -8 && a[3].base == DWREG_RBP);
	assert_true(a[3].index == DWREG_RCX && a[3].scale == 4);
	assert_true(a[4].kind == HIT_USDT_MEMORY && a[4].base == DWREG_R8 && a[4].index == HIT_USDT_NONE);
	assert_true(a[5].kind == HIT_USDT_REGISTER && a[5].base == DWREG_R10 && a[5].size == 1);
}

static void test_unknown(void **state)
{
	static const char *const texts[] = {"8@", "@%rdi", "3@%rdi", "8@%xmm0", "8@%rdix", "8@name(%rip)", "8@4(%rip)",
	        "8@(%rax", "8@(%rax,%rbx,3)", "8@$", "8@$x", "8@()", "8@(,)", "8@(%rax,)", "99999999999@%rax", "8%rax"};
	struct hit_usdt_argument a[HIT_USDT_ARGUMENTS];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(hit_usdt_parse(texts[i], a), 1);
		if (a[0].kind != HIT_USDT_UNKNOWN)
			fail_msg("%s", texts[i]);
	}
	assert_int_equal(hit_usdt_parse("", a), 0);
	assert_int_equal(hit_usdt_parse("1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1", a), 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_operands), cmocka_unit_test(test_unknown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
