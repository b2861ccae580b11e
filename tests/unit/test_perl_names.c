/* SPDX-License-Identifier: Apache-2.0 */
/* Naming of Perl frames over fake memory: what a CV, its code and its statements say, also when it is gone. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "perl_stack.h"

static void test_names(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	const struct frame *frames = s.p->f->frames;
	struct frame_name name;

	(void)state;
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	perl_fake_context(s.p, SUB, s.b, RETURNS, 12);
	expect(&s, STOP_ROOT, "baMLLr");
	assert_true(perl_name_frame(names, &s.p->f->memory, &frames[0], &name));
	assert_string_equal(name.name, "Some::Package::b");
	assert_string_equal(name.file, "x.pl");
	assert_int_equal(name.definition, 20);
	assert_int_equal(name.line, 99);
	assert_true(perl_name_frame(names, &s.p->f->memory, &frames[1], &name));
	assert_string_equal(name.name, "Some::Package::a");
	assert_int_equal(name.line, 12);
	assert_true(perl_name_frame(names, &s.p->f->memory, &frames[2], &name));
	assert_string_equal(name.name, "main program");
	assert_int_equal(name.line, 5);
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* The current statement is the caller's until a sub has run one of its own; a sub that calls itself has run it. */
static void test_entered(void **state)
{
	struct stack s = make();
	u64 cop = perl_fake_word(s.p, s.p->interpreter + s.p->layout.i_curcop.at), at;

	(void)state;
	at = perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	expect(&s, STOP_ROOT, "aMLLr");
	assert_false(perl_is_entered(s.p->f->frames, 0, s.p->f->walk.nframes));
	fake_put(s.p->f, at + s.p->layout.cx_oldcop.at, cop);
	expect(&s, STOP_ROOT, "aMLLr");
	assert_true(perl_is_entered(s.p->f->frames, 0, s.p->f->walk.nframes));
	assert_false(perl_is_entered(s.p->f->frames, 1, s.p->f->walk.nframes));
	at = perl_fake_context(s.p, EVAL | PERL_CX_BLOCK, 0, RETURNS, 12);
	fake_put(s.p->f, at + s.p->layout.cx_oldcop.at, cop);
	at = perl_fake_context(s.p, SUB, s.a, RETURNS, 12);
	fake_put(s.p->f, at + s.p->layout.cx_oldcop.at, cop);
	expect(&s, STOP_ROOT, "aeaMLLr");
	assert_false(perl_is_entered(s.p->f->frames, 0, s.p->f->walk.nframes));
	perl_fake_destroy(s.p);
}

/* A closure is known by its code, which is still there when it has been freed; it has no address of its own. */
static void test_closure(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	u64 body = perl_fake_word(s.p, s.a);
	struct frame_name name;

	(void)state;
	perl_fake_half(s.p, body + s.p->layout.cv_flags.at, PERL_CV_CLONED | PERL_CV_ANON);
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	assert_int_equal(perl_fake_walk(s.p), STOP_ROOT);
	assert_int_equal(perl_kind(s.p->f->frames[0].detail), PERL_KIND_CLOSURE);
	fake_put(s.p->f, s.a, 0);
	assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
	assert_string_equal(name.name, "Some::Package::__ANON__");
	assert_int_equal(name.definition, 10);
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* set_subname() gives a closure another GV, which may be as new as the call: it is the same closure. */
static void test_renamed(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	u64 a = perl_fake_word(s.p, s.a), c = perl_fake_word(s.p, s.c);
	struct frame_name name;

	(void)state;
	perl_fake_half(s.p, a + s.p->layout.cv_flags.at, PERL_CV_CLONED);
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	assert_int_equal(perl_fake_walk(s.p), STOP_ROOT);
	assert_int_equal(perl_kind(s.p->f->frames[0].detail), PERL_KIND_RENAMED);
	fake_put(s.p->f, a + s.p->layout.cv_gv.at, perl_fake_word(s.p, c + s.p->layout.cv_gv.at));
	assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
	assert_string_equal(name.name, "Some::Package::c");
	assert_int_equal(name.definition, 10);
	perl_fake_half(s.p, c + s.p->layout.cv_flags.at, PERL_CV_CLONED);
	perl_fake_context(s.p, SUB, s.c, RETURNS, 5);
	assert_int_equal(perl_fake_walk(s.p), STOP_ROOT);
	fake_put(s.p->f, s.c, 0); /* freed */
	assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
	assert_string_equal(name.name, "Some::Package::c");
	assert_int_equal(name.definition, 10);
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* Freed, and its memory is another sub's: no name rather than a false one. */
static void test_cookie(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	struct frame_name name;

	(void)state;
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	expect(&s, STOP_ROOT, "aMLLr");
	fake_put(s.p->f, perl_fake_word(s.p, s.a) + s.p->layout.cv_root.at, 0x7777);
	assert_false(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_entered),
	        cmocka_unit_test(test_closure),
	        cmocka_unit_test(test_renamed),
	        cmocka_unit_test(test_cookie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
