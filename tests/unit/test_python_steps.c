/* SPDX-License-Identifier: Apache-2.0 */
/* Python's stacks at every instruction. YRT_PYTHON names another interpreter than the system's. */
#include "steps.h"

#include <stdlib.h>

#include "runtimes/python/python.h"

#define STEPS 100000

static u64 identity(struct steps *s, const struct frame *f)
{
	return f->where;
}

static u64 place(struct steps *s, const struct frame *f)
{
	return f->detail;
}

/* runtimes/python/README.md, "Limits" */
static bool known(struct steps *s, enum steps_fault fault)
{
	return fault == STEPS_CUT && steps_in(s, s->now, 1, "_gen_throw");
}

static void test_steps(void **state)
{
	static const struct steps_language language = {
	        .identity = identity, .place = place, .shortest = 8, .known = known, .root = true};
	const char *python = getenv("YRT_PYTHON");

	steps_test(&language,
	        (const char *[]){
	                python && *python ? python : "/usr/bin/python3", "-B", "fixtures/python/steps.py", NULL},
	        STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
