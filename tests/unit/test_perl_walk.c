/* SPDX-License-Identifier: Apache-2.0 */
/* The Perl walker over fake memory: order with native frames, what is between two states. */
#include "unit.h"

#include "perl_stack.h"

/* The main program calls a, which calls b. */
static void test_one_loop(void **state)
{
	struct stack s = make();

	expect(&s, STOP_ROOT, "MLLr");
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, 8, 0, 0, 11); /* a loop */
	perl_fake_context(s.p, SUB, s.b, RETURNS, 12);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nbaMLLr");
	perl_fake_destroy(s.p);
}

/* call_sv(): a context without a place to return to, and a loop of its own; its eval is outside of the loop. */
static void test_two_loops(void **state)
{
	for (u32 protected = 0; protected < 2; protected ++) {
		struct stack s = make();

		perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
		perl_fake_call(s.p, s.p->c);
		if (protected)
			perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, 0, 11);
		perl_fake_context(s.p, SUB, s.b, 0, 11);
		perl_fake_call(s.p, s.p->runops);
		perl_fake_context(s.p, SUB, s.c, RETURNS, 21);
		perl_fake_call(s.p, s.p->c);
		expect(&s, STOP_ROOT, protected ? "ncbeLnaMLLr" : "ncbLnaMLLr");
		perl_fake_destroy(s.p);
	}
}

/* Where C code begins a stack of contexts, as for a handler. */
static void test_stacks(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->c);
	perl_fake_stack(s.p, PERL_STACK_DIEHOOK);
	perl_fake_context(s.p, SUB, s.b, 0, 11);
	perl_fake_call(s.p, s.p->runops);
	perl_fake_stack(s.p, PERL_STACK_SIGNAL); /* empty: it is about to be used */
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nbLnaMLLr");
	assert_int_equal(perl_stack(s.p->f->frames[1].detail), PERL_STACK_DIEHOOK);
	for (u32 type = 0; type < 64; type++) {
		bool said = type > PERL_STACK_MAIN && type <= PERL_STACK_REQUIRE && type != PERL_STACK_DESTROY;

		assert_int_equal(perl_stack(perl_detail(0, PERL_KIND_SUB, type, 0)), said ? type : 0);
	}
	perl_fake_destroy(s.p);
}

/* A BEGIN block, and what C code was called from, have their lines; other subs do not. */
static void test_lines(void **state)
{
	struct stack s = make();
	const struct frame *f = s.p->f->frames;

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->c);
	perl_fake_stack(s.p, PERL_STACK_REQUIRE);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, 0, 11);
	perl_fake_context(s.p, SUB, s.b, 0, 12);
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "beLnaMLLr");
	assert_true(perl_has_line(&f[0]) && perl_has_line(&f[1]) && !perl_has_line(&f[4]));
	assert_int_equal(perl_line(&f[0]), 99);
	assert_int_equal(perl_line(&f[1]), 12);
	perl_fake_context(s.p, SUB, s.c, 0, 13); /* a sub in @INC, which the require of the BEGIN block calls */
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "cLbeLnaMLLr");
	assert_true(!perl_has_line(&f[0]) && !perl_stack(f[0].detail) && perl_has_line(&f[2]));
	perl_fake_destroy(s.p);
}

/* docatch(): the loop of an eval goes on with what the loop outside has begun. */
static void test_catch(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->c);
	perl_fake_context(s.p, SUB, s.b, 0, 11);
	perl_fake_call(s.p, s.p->runops);
	perl_fake_call(s.p, s.p->catch);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, RETURNS, 21);
	perl_fake_call(s.p, s.p->runops);
	perl_fake_context(s.p, SUB, s.c, RETURNS, 22);
	expect(&s, STOP_ROOT, "cebLLLnaMLLr");
	perl_fake_destroy(s.p);
}

/* sort keeps a context for all comparisons; between two of them it runs nothing. */
static void test_sort(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->sort);
	perl_fake_stack(s.p, PERL_STACK_SORT);
	perl_fake_context(s.p, 0, 0, 0, 11);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nLaMLLr");
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "sLnLaMLLr");
	perl_fake_call(s.p, s.p->sort); /* one in the other */
	perl_fake_stack(s.p, PERL_STACK_SORT);
	perl_fake_context(s.p, SUB, s.b, 0, 12);
	expect(&s, STOP_ROOT, "LsLnLaMLLr");
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "bLLsLnLaMLLr");
	perl_fake_destroy(s.p);
}

/* What a block of a sort calls last has no place to return to, but no loop of its own either. */
static void test_last_call(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->sort);
	perl_fake_stack(s.p, PERL_STACK_SORT);
	perl_fake_context(s.p, 0, 0, 0, 11);
	perl_fake_call(s.p, s.p->other);
	perl_fake_call(s.p, s.p->runops);
	perl_fake_context(s.p, SUB, s.b, 0, 12);
	expect(&s, STOP_ROOT, "bsLnLaMLLr");
	perl_fake_call(s.p, s.p->c); /* as call_sv() does */
	perl_fake_context(s.p, SUB, s.c, 0, 21);
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "cLnbsLnLaMLLr");
	perl_fake_destroy(s.p);
}

/* A function in C that is called by name; one that runs a block many times. */
static void test_xs(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->xs);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nxLaMLLr");
	perl_fake_stack(s.p, PERL_STACK_MULTICALL);
	perl_fake_context(s.p, SUB, s.b, 0, 11);
	expect(&s, STOP_ROOT, "nxLaMLLr");
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "bLnxLaMLLr");
	perl_fake_destroy(s.p);
}

/* call_sv() of a function in C, as of a destructor: no loop runs it, but its eval is there. */
static void test_xs_protected(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->c);
	perl_fake_context(s.p, SUB, s.b, 0, 11);
	perl_fake_call(s.p, s.p->runops);
	perl_fake_call(s.p, s.p->enter);
	perl_fake_stack(s.p, PERL_STACK_DESTROY);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, 0, 21);
	perl_fake_call(s.p, s.p->xs);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nxLeLbLnaMLLr");
	perl_fake_destroy(s.p);
}

static void test_pattern(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->regexec);
	perl_fake_stack(s.p, PERL_STACK_MULTICALL);
	perl_fake_context(s.p, SUB | PERL_CX_SUB_RE, s.a, 0, 11);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nLaMLLr");
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "pLnLaMLLr");
	perl_fake_destroy(s.p);
}

/* A context was pushed, and none of its statements has run: the current statement is the one before. */
static void push_only(struct stack *s, u32 type, u64 cv, u64 returns, u32 line)
{
	u64 cop = perl_fake_context(s->p, type, cv, returns, line) + s->p->layout.cx_oldcop.at;

	fake_put(s->p->f, s->p->interpreter + s->p->layout.i_curcop.at, perl_fake_word(s->p, cop));
}

/* call_sv() calls pp_entersub(), which pushes the context, before it calls the loop; and the loop ends before call_sv()
 * does. */
static void test_edges(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->enter);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nLaMLLr");
	push_only(&s, SUB, s.b, 0, 11);
	expect(&s, STOP_ROOT, "nbLaMLLr");
	perl_fake_half(s.p, s.p->stack + s.p->layout.si_cxix.at, 1);
	s.p->pc = s.p->runops + FAKE_RETURN;
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_op.at, 0);
	expect(&s, STOP_ROOT, "LLaMLLr");
	perl_fake_destroy(s.p);
}

/* call_sv() has pushed an eval, and not yet a context of the sub that it calls. */
static void test_only_protected(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->xs);
	perl_fake_call(s.p, s.p->enter);
	perl_fake_call(s.p, s.p->c);
	push_only(&s, EVAL | PERL_CX_BLOCK, 0, 0, 11);
	expect(&s, STOP_ROOT, "neLxLaMLLr");
	perl_fake_destroy(s.p);
}

/* call_sv() has pushed an eval, and its loop looks a method up. */
static void test_protected_lookup(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->xs);
	perl_fake_call(s.p, s.p->c);
	push_only(&s, EVAL | PERL_CX_BLOCK, 0, 0, 11);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_op.at, s.p->sp + 8);
	perl_fake_call(s.p, s.p->runops);
	perl_fake_call(s.p, s.p->other);
	expect(&s, STOP_ROOT, "neLnxLaMLLr");
	perl_fake_destroy(s.p);
}

/* An exception has taken away the context of the sub that call_sv() called. */
static void test_unwound(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->xs);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, 0, 11);
	perl_fake_call(s.p, s.p->runops);
	perl_fake_call(s.p, s.p->unwind);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nLeLxLaMLLr");
	perl_fake_context(s.p, SUB, s.b, 0, 11);
	expect(&s, STOP_ROOT, "nLbeLxLaMLLr");
	perl_fake_destroy(s.p);
}

/* The sub that call_sv() called has returned; its loop has not, nor is its eval gone. */
static void test_ended_protected(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->xs);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, 0, 11);
	perl_fake_call(s.p, s.p->runops);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_op.at, 0);
	expect(&s, STOP_ROOT, "eLxLaMLLr");
	perl_fake_destroy(s.p);
}

/* In the middle of pushing a context, this is not looked at. */
static void test_pushing(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, SUB, 0x123, RETURNS, 5);
	perl_fake_call(s.p, s.p->pushing);
	expect(&s, STOP_ROOT, "LaMLLr");
	perl_fake_destroy(s.p);
}

static void test_evals(void **state)
{
	struct stack s = make();
	u64 at;

	perl_fake_context(s.p, EVAL, 0, RETURNS, 5);
	at = perl_fake_context(s.p, EVAL, 0, RETURNS, 6);
	fake_put(s.p->f, at + s.p->layout.cx_namesv.at, 0x5000);
	perl_fake_context(s.p, EVAL | PERL_CX_REAL, 0, RETURNS, 7);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, RETURNS, 8);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK | PERL_CX_TRY, 0, RETURNS, 8);
	perl_fake_context(s.p, FORMAT, s.a, RETURNS, 8);
	expect(&s, STOP_ROOT, "fyetqqMLLr");
	perl_fake_destroy(s.p);
}

/* More contexts than a window has, and than one step looks at. */
static void test_deep(void **state)
{
	struct stack s = make();
	char want[FAKE_FRAMES];

	for (u32 i = 0; i < PERL_FAKE_CONTEXTS - 1; i++)
		perl_fake_context(s.p, SUB, s.a, RETURNS, i);
	memset(want, 'a', PERL_FAKE_CONTEXTS - 1);
	strcpy(want + PERL_FAKE_CONTEXTS - 1, "MLLr");
	expect(&s, STOP_ROOT, want);
	s.p->f->max = 20;
	assert_int_equal(perl_fake_walk(s.p), STOP_DEPTH);
	assert_int_equal(s.p->f->walk.nframes, 20);
	perl_fake_destroy(s.p);
}

/* A loop too few: what is left over is shown, at the end, and the stack is not complete. */
static void test_left_over(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->c);
	perl_fake_context(s.p, SUB, s.b, 0, 11);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_VM_BROKEN, "nnbLaMLr");
	perl_fake_destroy(s.p);
}

/* eval_sv() compiles a string: the statement that runs may be any, and BEGIN blocks have loops of their own. */
static void test_compiling(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_call(s.p, s.p->enter);
	perl_fake_context(s.p, EVAL | PERL_CX_REAL, 0, 0, 11);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_curcop.at, s.p->interpreter + 256);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "ntLaMLLr");
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_curcop.at, perl_fake_cop(s.p, 98));
	perl_fake_call(s.p, s.p->compile);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "nLntLaMLLr");
	perl_fake_stack(s.p, PERL_STACK_REQUIRE);
	expect(&s, STOP_ROOT, "nLntLaMLLr");
	perl_fake_context(s.p, SUB, s.b, 0, 11);
	perl_fake_call(s.p, s.p->enter);
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "bLLnLntLaMLLr");
	perl_fake_destroy(s.p);
}

/* The parser runs ops whose operands are constants, in an eval and a loop of its own. */
static void test_folding(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, EVAL | PERL_CX_REAL, 0, RETURNS, 11);
	perl_fake_call(s.p, s.p->compile);
	perl_fake_call(s.p, s.p->other);
	perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, 0, 12);
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "eLnLtaMLLr");
	perl_fake_destroy(s.p);
}

/* Before 5.20 a BEGIN block's contexts are on the stack of the code that is compiled. */
static void test_begin_on_the_same_stack(void **state)
{
	struct stack s = make();
	u64 compiling = s.p->interpreter + 256;

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, EVAL | PERL_CX_REAL, 0, RETURNS, 11);
	perl_fake_call(s.p, s.p->compile);
	perl_fake_call(s.p, s.p->enter);
	fake_put(s.p->f, perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, 0, 12) + s.p->layout.cx_oldcop.at, compiling);
	fake_put(s.p->f, perl_fake_context(s.p, SUB, s.b, 0, 12) + s.p->layout.cx_oldcop.at, compiling);
	perl_fake_call(s.p, s.p->runops);
	expect(&s, STOP_ROOT, "beLLLtaMLLr");
	perl_fake_destroy(s.p);
}

/* An exception has left the loop, and perl_run() has not called it again. */
static void test_between_loops(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	s.p->sp += PERL_FAKE_C_BYTES;
	s.p->pc = s.p->run + FAKE_RETURN;
	expect(&s, STOP_ROOT, "aMLr");
	perl_fake_destroy(s.p);
}

/* pp_leavesub() takes the CV out of the context before it frees it. */
static void test_leaving(void **state)
{
	struct stack s = make();

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, SUB, 0, RETURNS, 5);
	perl_fake_call(s.p, s.p->c);
	expect(&s, STOP_ROOT, "naMLLr");
	perl_fake_destroy(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_one_loop),
	        cmocka_unit_test(test_two_loops),
	        cmocka_unit_test(test_stacks),
	        cmocka_unit_test(test_lines),
	        cmocka_unit_test(test_catch),
	        cmocka_unit_test(test_sort),
	        cmocka_unit_test(test_last_call),
	        cmocka_unit_test(test_xs),
	        cmocka_unit_test(test_xs_protected),
	        cmocka_unit_test(test_pattern),
	        cmocka_unit_test(test_edges),
	        cmocka_unit_test(test_only_protected),
	        cmocka_unit_test(test_protected_lookup),
	        cmocka_unit_test(test_unwound),
	        cmocka_unit_test(test_ended_protected),
	        cmocka_unit_test(test_pushing),
	        cmocka_unit_test(test_evals),
	        cmocka_unit_test(test_deep),
	        cmocka_unit_test(test_left_over),
	        cmocka_unit_test(test_compiling),
	        cmocka_unit_test(test_folding),
	        cmocka_unit_test(test_begin_on_the_same_stack),
	        cmocka_unit_test(test_between_loops),
	        cmocka_unit_test(test_leaving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
