/* SPDX-License-Identifier: Apache-2.0 */
/* The Perl walker and memory: what is absent, broken, or known from earlier walks and frames. Fake memory. */
#include "unit.h"

#include "perl_stack.h"

#define ABSENT 0x1238

static void test_unreadable(void **state)
{
	struct stack s = make();
	u64 interpreter;

	perl_fake_context(s.p, SUB, 0x123, RETURNS, 5); /* no CV */
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	expect(&s, STOP_VM_ABSENT, "aLMLr");
	interpreter = s.p->interpreter;
	fake_put(s.p->f, interpreter + s.p->layout.i_curstackinfo.at, 0x456);
	expect(&s, STOP_VM_ABSENT, "LLr");
	fake_put(s.p->f, PERL_FAKE_BLOCK + PERL_FAKE_SLOT, 0);
	expect(&s, STOP_VM_ABSENT, "LLr");
	perl_fake_destroy(s.p);
}

/* A stack of contexts that follows itself. */
static void test_circle(void **state)
{
	struct stack s = make();

	perl_fake_stack(s.p, PERL_STACK_SIGNAL);
	fake_put(s.p->f, s.p->stack + s.p->layout.si_prev.at, s.p->stack);
	assert_int_equal(perl_fake_walk(s.p), STOP_DEPTH);
	perl_fake_destroy(s.p);
}

/* A page that is absent for a moment, as after fork(): the thread's block, a CV's body, a CV. */
static void test_absent(void **state)
{
	static struct walk_cache caches[WALK_CACHES];
	struct stack s = make();

	s.p->caches = caches;
	s.p->cv = s.p->interpreter; /* in a register */
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	fake_put(s.p->f, s.a, ABSENT);
	expect(&s, STOP_ROOT, "uMLLr");
	assert_int_equal(perl_object(&s.p->f->frames[0]), s.a);
	perl_fake_half(s.p, s.a + s.p->layout.sv_flags.at, 12);
	expect(&s, STOP_VM_ABSENT, "LMLr"); /* no CV */
	perl_fake_half(s.p, s.a + s.p->layout.sv_flags.at, 13);
	perl_fake_context(s.p, SUB, ABSENT, RETURNS, 5); /* all of it */
	expect(&s, STOP_ROOT, "uuMLLr");
	assert_int_equal(perl_object(&s.p->f->frames[0]), ABSENT);
	fake_put(s.p->f, PERL_FAKE_POINTER + PERL_FAKE_VIA, ABSENT);
	expect(&s, STOP_ROOT, "uuMLLr");
	s.p->cv = s.x;
	expect(&s, STOP_VM_ABSENT, "LLr"); /* nothing says that it is this thread's still */
	perl_fake_destroy(s.p);
}

/* The place of a caller's body is known from an earlier walk; what a sub is, its body says each time. */
static void test_cache(void **state)
{
	static struct walk_cache caches[WALK_CACHES];
	struct stack s = make();
	u64 body = perl_fake_word(s.p, s.a), root;

	s.p->caches = caches;
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, SUB, s.b, RETURNS, 12);
	expect(&s, STOP_ROOT, "baMLLr");
	fake_put(s.p->f, s.a, 0);
	expect(&s, STOP_ROOT, "baMLLr");
	root = perl_fake_word(s.p, body + s.p->layout.cv_root.at);
	fake_put(s.p->f, body + s.p->layout.cv_root.at, 0x7777);
	expect(&s, STOP_VM_ABSENT, "bLMLr"); /* another sub's now: only the CV says whose */
	fake_put(s.p->f, body + s.p->layout.cv_root.at, root);
	for (u32 i = 0; i < WALK_CACHES; i++)
		caches[i].value ^= caches[i].value ? 1 : 0; /* torn */
	expect(&s, STOP_VM_ABSENT, "bLMLr");
	fake_put(s.p->f, s.a, body);
	fake_put(s.p->f, s.b, 0);
	expect(&s, STOP_VM_ABSENT, "LaMLr"); /* the innermost frame may not run its own statement yet */
	perl_fake_destroy(s.p);
}

/* A process has just begun, and its key is not known: the first interpreter is meant, if it is passed on. */
static void test_keyless(void **state)
{
	struct stack s = make();
	u64 first = perl_fake_alloc(s.p, 8);

	s.p->config->via = 0;
	s.p->config->first = first;
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	expect(&s, STOP_VM_UNKNOWN, "LLr"); /* PL_curinterp is NULL */
	fake_put(s.p->f, first, s.p->interpreter);
	expect(&s, STOP_VM_UNKNOWN, "LLr"); /* it may be another thread's */
	s.p->cv = s.p->interpreter;
	expect(&s, STOP_ROOT, "aMLLr");
	perl_fake_destroy(s.p);
}

/* As long as no code is compiled a caller's identity holds for seven walks; what the interpreter is one must know. */
static void test_generation(void **state)
{
	static struct walk_cache caches[WALK_CACHES];
	struct stack s = make();
	u64 root = perl_fake_word(s.p, s.a) + s.p->layout.cv_root.at,
	    seq = s.p->interpreter + s.p->layout.i_cop_seqmax.at;
	u32 cookie;

	s.p->caches = caches;
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, SUB, s.b, RETURNS, 12);
	for (u32 known = 0; known < 2; known++) {
		s.p->config->interpreter = known ? s.p->interpreter : 0;
		fake_put(s.p->f, root, 0x5555);
		expect(&s, STOP_ROOT, "baMLLr");
		cookie = perl_cookie_of(s.p->f->frames[1].detail);
		fake_put(s.p->f, root, 0x6666); /* another one's, if code was compiled */
		for (u32 i = 0; i < 8; i++) {
			expect(&s, STOP_ROOT, "baMLLr");
			assert_int_equal(perl_cookie_of(s.p->f->frames[1].detail) == cookie, known && i < 7);
		}
	}
	fake_put(s.p->f, root, 0x5555);
	for (u32 i = 0; i < 8; i++)
		expect(&s, STOP_ROOT, "baMLLr");
	fake_put(s.p->f, root, 0x6666);
	fake_put(s.p->f, seq, 1);
	expect(&s, STOP_ROOT, "baMLLr");
	assert_int_not_equal(perl_cookie_of(s.p->f->frames[1].detail), cookie);
	for (u32 i = 0; i < WALK_CACHES; i++)
		caches[i].value ^= caches[i].value ? 1ull << 56 : 0; /* torn */
	fake_put(s.p->f, root, 0x5555);
	expect(&s, STOP_ROOT, "baMLLr");
	assert_int_equal(perl_cookie_of(s.p->f->frames[1].detail), cookie);
	perl_fake_destroy(s.p);
}

/* The same sub in several frames, and another between them. */
static void test_recursion(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, SUB, s.a, RETURNS, 11);
	perl_fake_context(s.p, SUB, s.b, RETURNS, 11);
	perl_fake_context(s.p, SUB, s.a, RETURNS, 21);
	perl_fake_context(s.p, SUB, s.a, RETURNS, 11);
	expect(&s, STOP_ROOT, "aabaaMLLr");
	for (u32 i = 1; i < 5; i++)
		assert_int_equal(
		        perl_cookie_of(s.p->f->frames[i].detail) == perl_cookie_of(s.p->f->frames[0].detail), i != 2);
	perl_fake_destroy(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_unreadable),
	        cmocka_unit_test(test_circle),
	        cmocka_unit_test(test_absent),
	        cmocka_unit_test(test_cache),
	        cmocka_unit_test(test_keyless),
	        cmocka_unit_test(test_generation),
	        cmocka_unit_test(test_recursion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
