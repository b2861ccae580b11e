/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "frontends/report/blockers.h"

static const char locks[] = "1: POSIX  ADVISORY  WRITE 700 08:01:11 0 EOF\n"
                            "2: FLOCK  ADVISORY  WRITE 733 08:01:1048577 0 EOF\n"
                            "2: -> FLOCK  ADVISORY  WRITE 734 08:01:1048577 0 EOF\n"
                            "3: OFDLCK ADVISORY  READ  -1 00:06:12 0 EOF\n"
                            "3: -> OFDLCK ADVISORY  WRITE 735 00:06:12 0 EOF\n";

static void test_holder(void **state)
{
	const pid_t waiter = 734, other = 733, of_nobody = 735;
	struct file_lock l = {0};

	assert_true(blockers_find_lock(locks, &waiter, 1, &l));
	assert_int_equal(l.holder, 733);
	assert_int_equal(l.inode, 1048577);
	assert_int_equal(l.major, 8);
	assert_int_equal(l.minor, 1);
	assert_false(blockers_find_lock(locks, &other, 1, &l));     /* it holds, and waits for none */
	assert_false(blockers_find_lock(locks, &of_nobody, 1, &l)); /* whose holder has no pid */
	assert_false(blockers_find_lock(locks, NULL, 0, &l));
}

/* What is cut, or is no line of it. */
static void test_odd(void **state)
{
	static const char *const texts[] = {"", "\n\n", "2: ->", "->",
	        "2: -> FLOCK  ADVISORY  WRITE 734 08:01:1048577 0 EOF", "2: FLOCK ADVISORY WRITE 733 08:01", ":",
	        "2: FLOCK ADVISORY WRITE x 08:01:1 0 EOF\n2: -> FLOCK"};
	const pid_t waiter = 734;
	struct file_lock l;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_false(blockers_find_lock(texts[i], &waiter, 1, &l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_holder),
	        cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
