/* SPDX-License-Identifier: Apache-2.0 */
/* Perl's stacks at every instruction. */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtimes/perl/perl.h"

#define STEPS 100000

static u64 identity(struct steps *s, const struct frame *f)
{
	u64 detail = perl_without_cop(f->detail);

	if (perl_has_line(f))
		detail &= (1ull << PERL_OP_SHIFT) - 1;
	return steps_mix(perl_object(f), detail);
}

static u64 place(struct steps *s, const struct frame *f)
{
	return perl_cop(f->detail);
}

/* runtimes/perl/README.md, "Limits" */
static bool known(struct steps *s, enum steps_fault fault)
{
	bool unwinds = steps_in(s, s->now, UINT32_MAX, "Perl_die_unwind") ||
	               steps_in(s, s->before, UINT32_MAX, "Perl_die_unwind") || (s->cuts && s->step - s->cut < 64);

	return unwinds || (fault == STEPS_PLACE && steps_in(s, s->now, 1, "Util.so"));
}

static void test_steps(void **state)
{
	static const struct steps_language language = {
	        .identity = identity, .place = place, .shortest = 12, .known = known, .bursts = 64, .root = true};
	const char *perl = getenv("YRT_PERL");

	steps_test(&language, (const char *[]){perl && *perl ? perl : "perl", "fixtures/perl/steps.pl", NULL}, STEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
