/* SPDX-License-Identifier: Apache-2.0 */
/* Python's stacks at every instruction. YRT_PYTHON names another interpreter than the system's. */
#include "steps.h"
#include "runtimes/python/python.h"

#define STEPS 100000

static u64 identity(struct steps *s, const struct frame *f)
{
	(void)s;
	return f->where;
}

static u64 place(const struct frame *f)
{
	return f->detail;
}

static void test_steps(void **state)
{
	static const struct steps_language language = {identity, place, 8, NULL};
	const char *source = getenv("YRT_SOURCE"), *python = getenv("YRT_PYTHON");
	char path[4096];
	char *argv[] = {python && *python ? (char *)python : "/usr/bin/python3", "-B", path, NULL};
	struct steps *s;

	(void)state;
	snprintf(path, sizeof(path), "%s/fixtures/python/steps.py", source ? source : YRT_SOURCE_DIR);
	s = steps_start(&language, argv);
	steps_run(s, 0);
	steps_through(s, STEPS);
	steps_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
