/* SPDX-License-Identifier: Apache-2.0 */
/* Naming of Perl frames over fake memory: what a CV, its code and its statements say, also when it is gone. */
#include "unit.h"

#include "perl_stack.h"

static u64 op(struct perl_fake *p, u32 type, u64 next, u64 first)
{
	u64 at = perl_fake_alloc(p, 56);

	fake_put(p->f, at, next);
	fake_put(p->f, at + 32, type | (first ? 4u << 16 : 0));
	fake_put(p->f, at + 40, first);
	return at;
}

static void follow(struct perl_fake *p, u64 one, u64 sibling)
{
	fake_put(p->f, one + 8, sibling);
	fake_put(p->f, one + 32, perl_fake_word(p, one + 32) | 0x4000);
}

/* What a statement of a string is in, also where the name of that says what ran the string. */
static void test_strings(void **state)
{
	static const char *const files[] = {
	        "(eval 12)", "(eval 12)[/usr/share/perl/5.36/JSON/PP.pm:78]", "(eval x).pl"};

	for (u32 i = 0; i < 3; i++) {
		struct stack s = make();
		struct perl_names *names = perl_names_create(&s.p->image, 0);
		u64 cop = perl_fake_word(s.p, perl_fake_context(s.p, SUB, s.a, RETURNS, 5) + s.p->layout.cx_oldcop.at);
		struct frame_name name;

		fake_put(s.p->f, cop + s.p->layout.cop_file.at, perl_fake_text(s.p, files[i]));
		expect(&s, STOP_ROOT, "aMLLr");
		assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[1], &name) &&
		            !strcmp(name.file, i == 2 ? files[i] : "(eval)"));
		perl_names_destroy(names);
		perl_fake_destroy(s.p);
	}
}

static void test_names(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	const struct frame *frames = s.p->f->frames;
	struct frame_name name;

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

/* A sub whose body the walk could not read. It may be another one by now: then it does not fit its statement. */
static void test_unread(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	u64 body = perl_fake_word(s.p, s.a);
	struct frame f;
	struct frame_name name;

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	fake_put(s.p->f, s.a, 0x1238);
	expect(&s, STOP_ROOT, "uMLLr");
	f = s.p->f->frames[0];
	assert_false(perl_name_frame(names, &s.p->f->memory, &f, &name));
	fake_put(s.p->f, s.a, body);
	assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
	assert_string_equal(name.name, "Some::Package::a");
	assert_int_equal(name.definition, 10);
	assert_int_equal(name.line, 99);
	perl_names_destroy(names);
	names = perl_names_create(&s.p->image, 0);
	fake_put(s.p->f, s.a, perl_fake_word(s.p, perl_fake_cv(s.p, 0, "later", 100, false)));
	assert_false(perl_name_frame(names, &s.p->f->memory, &f, &name));
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* The current statement is the caller's until a sub has run one of its own; a sub that calls itself has run it. */
static void test_entered(void **state)
{
	struct stack s = make();
	u64 cop = perl_fake_word(s.p, s.p->interpreter + s.p->layout.i_curcop.at), at;

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

	perl_fake_half(s.p, body + s.p->layout.cv_flags.at, PERL_CV_CLONED | PERL_CV_ANON);
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	assert_int_equal(perl_fake_walk(s.p), STOP_ROOT);
	assert_int_equal(perl_kind(s.p->f->frames[0].detail), PERL_KIND_CLOSURE);
	fake_put(s.p->f, s.a, 0);
	assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
	assert_string_equal(name.name, "Some::Package::__ANON__");
	assert_int_equal(name.definition, 10);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_curcop.at,
	        perl_fake_word(s.p, body + s.p->layout.cv_start.at));
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_op.at, 1 << 13); /* no bits of it are kept */
	perl_names_destroy(names);
	names = perl_names_create(&s.p->image, 0);
	fake_put(s.p->f, s.a, body);
	assert_int_equal(perl_fake_walk(s.p), STOP_ROOT);
	assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
	assert_string_equal(name.name, "Some::Package::__ANON__");
	assert_int_equal(name.line, 10);
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

/* Its memory is another one's of the same file and cookie by now: who ran a caller's statement was named before. */
static void test_renamed_replaced(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	u64 a = perl_fake_word(s.p, s.a), c = perl_fake_word(s.p, s.c), words[PERL_CV_WORDS], cop;
	struct frame_name name;
	struct frame f;

	perl_fake_half(s.p, a + s.p->layout.cv_flags.at, PERL_CV_CLONED);
	perl_fake_half(s.p, c + s.p->layout.cv_flags.at, PERL_CV_CLONED);
	perl_fake_context(s.p, SUB, s.c, RETURNS, 99);
	cop = perl_fake_word(s.p, perl_fake_context(s.p, SUB, s.b, RETURNS, 35) + s.p->layout.cx_oldcop.at);
	fake_put(s.p->f, c + s.p->layout.cv_root.at, op(s.p, 180, 0, cop));
	assert_int_equal(perl_fake_walk(s.p), STOP_ROOT);
	f = s.p->f->frames[1];
	assert_int_equal(perl_kind(f.detail), PERL_KIND_RENAMED);
	assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
	assert_string_equal(name.name, "Some::Package::c");
	words[0] = perl_fake_word(s.p, a + s.p->layout.cv_start.at);
	words[1] = perl_fake_alloc(s.p, 4096); /* of ops */
	while (perl_cookie(a, words, PERL_KIND_RENAMED) != perl_cookie_of(f.detail))
		words[1] += 8;
	fake_put(s.p->f, a + s.p->layout.cv_root.at, words[1]);
	fake_put(s.p->f, s.c, a);
	assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
	assert_string_equal(name.name, "Some::Package::c");
	assert_int_equal(name.definition, 30);
	perl_names_destroy(names);
	names = perl_names_create(&s.p->image, 0);
	assert_false(perl_name_frame(names, &s.p->f->memory, &f, &name)); /* it does not have the statement */
	perl_fake_half(s.p, words[1] + 32, PERL_FAKE_OP_SUBST);           /* it may have it in its replacement */
	assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
	perl_names_destroy(names);
	names = perl_names_create(&s.p->image, 0);
	perl_fake_half(s.p, a + s.p->layout.cv_flags.at, PERL_CV_CLONED | PERL_CV_ANON); /* it had a name */
	assert_false(perl_name_frame(names, &s.p->f->memory, &f, &name));
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* Freed, and its memory is another sub's: no name rather than a false one. */
static void test_cookie(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	struct frame_name name;

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	expect(&s, STOP_ROOT, "aMLLr");
	fake_put(s.p->f, perl_fake_word(s.p, s.a) + s.p->layout.cv_root.at, 0x7777);
	assert_false(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* The same CV and cookie as one that is gone, but what runs is another file's: no name. */
static void test_freed(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	struct frame_name name;
	struct frame f;
	u64 cop;

	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	expect(&s, STOP_ROOT, "aMLLr");
	f = s.p->f->frames[0];
	assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
	perl_fake_half(s.p, s.a + s.p->layout.sv_flags.at, 0xff);
	assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
	assert_string_equal(name.name, "Some::Package::a");
	f.where += 1 << 12; /* a copy of the sub, which is gone, at the same statement */
	assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
	assert_string_equal(name.name, "Some::Package::a");
	f = s.p->f->frames[0];
	cop = perl_fake_cop(s.p, 12);
	fake_put(s.p->f, cop + s.p->layout.cop_file.at, perl_fake_text(s.p, "other.pl"));
	f.detail = perl_without_cop(f.detail) | cop >> 3;
	assert_false(perl_name_frame(names, &s.p->f->memory, &f, &name));
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* A memory context of PostgreSQL. begin: where its first child is. */
static u64 memory_context(struct perl_fake *p, u32 begin, u64 next, const char *name, const char *ident)
{
	u64 at = perl_fake_alloc(p, 1024);

	fake_put(p->f, at + begin + 16, next);
	fake_put(p->f, at + begin + 24, perl_fake_text(p, name));
	fake_put(p->f, at + begin + 32, ident ? perl_fake_text(p, ident) : 0);
	return at;
}

/* A sub of PL/Perl is what SQL calls it. */
static void test_sql_function(void **state)
{
	for (u32 begin = 24; begin <= 32; begin += 8) { /* of 11 and 12; of later versions */
		struct stack s = make();
		struct perl_names *names = perl_names_create(&s.p->image, 0);
		u64 function = memory_context(s.p, begin, 0, "PL/Perl function", "work");
		u64 other = memory_context(s.p, begin, function, "PL/Perl function", "other");
		u64 top = memory_context(s.p, begin, 0, "TopMemoryContext", NULL), pointer = perl_fake_alloc(s.p, 8);
		u64 desc = function + 256, sv = perl_fake_alloc(s.p, 24);
		struct frame_name name;

		fake_put(s.p->f, pointer, top);
		fake_put(s.p->f, top + begin, other);
		fake_put(s.p->f, desc, perl_fake_word(s.p, function + begin + 32));
		fake_put(s.p->f, desc + 8, function);
		fake_put(s.p->f, desc + 40, sv);
		fake_put(s.p->f, sv + s.p->layout.sv_u.at, s.a);
		perl_fake_half(s.p, perl_fake_word(s.p, s.a) + s.p->layout.cv_flags.at, PERL_CV_ANON);
		perl_fake_half(s.p, perl_fake_word(s.p, s.c) + s.p->layout.cv_flags.at, PERL_CV_ANON);
		perl_names_set_postgres(names, pointer);
		perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
		perl_fake_context(s.p, SUB, s.c, RETURNS, 12);
		expect(&s, STOP_ROOT, "caMLLr");
		assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[1], &name));
		assert_string_equal(name.name, "work");
		assert_int_equal(name.definition, 10);
		assert_true(perl_name_frame(names, &s.p->f->memory, &s.p->f->frames[0], &name));
		assert_string_equal(name.name, "Some::Package::c");
		perl_names_destroy(names);
		perl_fake_destroy(s.p);
	}
}

/* `if (call()) { call() }`: the statement of the block was optimised away. */
static void test_lost_statement(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	const struct frame *frames = s.p->f->frames;
	u64 condition = op(s.p, PERL_FAKE_OP_ENTERSUB, 0x20008, 0), call = op(s.p, PERL_FAKE_OP_ENTERSUB, 0x20010, 0);
	u64 lost = perl_fake_cop(s.p, 12), scope = op(s.p, PERL_FAKE_OP_SCOPE, 0x20010, lost);
	u64 all = op(s.p, 170, 0x30000, condition), at = perl_fake_context(s.p, SUB, s.a, RETURNS, 5), cop;
	const u64 retops[] = {0x20008, 0x20010, 0x20018};
	const u32 lines[] = {11, 12, 11};
	struct frame_name name;

	follow(s.p, condition, scope);
	follow(s.p, lost, call);
	fake_put(s.p->f, lost + s.p->layout.op_ppaddr.at, PERL_FAKE_NULL);
	fake_put(s.p->f, lost + s.p->layout.op_targ.at, PERL_FAKE_OP_NEXTSTATE);
	at = perl_fake_context(s.p, SUB, s.b, RETURNS, 11);
	cop = perl_fake_word(s.p, at + s.p->layout.cx_oldcop.at);
	follow(s.p, cop, all);
	for (u32 i = 0; i < 3; i++) {
		fake_put(s.p->f, at + s.p->layout.cx_retop.at, retops[i]);
		expect(&s, STOP_ROOT, "baMLLr");
		assert_true(perl_name_frame(names, &s.p->f->memory, &frames[1], &name));
		assert_int_equal(name.line, lines[i]);
	}
	perl_fake_half(s.p, s.p->stack + s.p->layout.si_cxix.at, 1);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_curcop.at, cop);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_op.at, call);
	expect(&s, STOP_ROOT, "aMLLr");
	assert_true(perl_name_frame(names, &s.p->f->memory, &frames[0], &name));
	assert_int_equal(name.line, 12);
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* Of ops with the same bits the one that can run, or call, is meant, not one behind a later statement. */
static void test_same_bits(void **state)
{
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	const struct frame *frames = s.p->f->frames;
	u64 call = op(s.p, PERL_FAKE_OP_ENTERSUB, 0x20010, 0), lost = perl_fake_cop(s.p, 12);
	u64 inner = perl_fake_cop(s.p, 20), far, null, other, at, cop, block, all;
	struct frame_name name;

	perl_fake_alloc(s.p, (call - s.p->heap) % (8 * (PERL_OP_MASK + 1)));
	far = op(s.p, PERL_FAKE_OP_ENTERSUB, 0x24010, 0);
	perl_fake_alloc(s.p, (call - s.p->heap) % (8 * (PERL_OP_MASK + 1)));
	null = op(s.p, 0, 0x28000, 0);
	assert_int_equal(perl_op_bits(far, true), perl_op_bits(call, true));
	assert_int_equal(perl_op_bits(null, true), perl_op_bits(call, true));
	assert_int_equal(perl_op_bits(0x24010, false), perl_op_bits(0x20010, false));
	other = op(s.p, 100, 0x24010, 0);
	follow(s.p, null, other);
	follow(s.p, other, lost);
	follow(s.p, inner, far);
	follow(s.p, lost, call);
	fake_put(s.p->f, lost + s.p->layout.op_ppaddr.at, PERL_FAKE_NULL);
	fake_put(s.p->f, lost + s.p->layout.op_targ.at, PERL_FAKE_OP_NEXTSTATE);
	block = op(s.p, 180, 0x30000, inner);
	follow(s.p, block, null);
	all = op(s.p, 170, 0x30000, block);
	perl_fake_context(s.p, SUB, s.a, RETURNS, 5);
	at = perl_fake_context(s.p, SUB, s.b, RETURNS, 11);
	cop = perl_fake_word(s.p, at + s.p->layout.cx_oldcop.at);
	follow(s.p, cop, all);
	fake_put(s.p->f, at + s.p->layout.cx_retop.at, 0x20010);
	expect(&s, STOP_ROOT, "baMLLr");
	assert_true(perl_name_frame(names, &s.p->f->memory, &frames[1], &name));
	assert_int_equal(name.line, 12);
	perl_fake_half(s.p, s.p->stack + s.p->layout.si_cxix.at, 1);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_curcop.at, cop);
	fake_put(s.p->f, s.p->interpreter + s.p->layout.i_op.at, call);
	expect(&s, STOP_ROOT, "aMLLr");
	assert_true(perl_name_frame(names, &s.p->f->memory, &frames[0], &name));
	assert_int_equal(name.line, 12);
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

/* A BEGIN block whose statement is gone: that of a `use` on line 10 has its CV's place by now, or it is that one. */
static void test_begin_replaced(void **state)
{
	struct stack s = make();
	u64 cv = perl_fake_cv(s.p, perl_fake_package(s.p, "Some"), "BEGIN", 10, false);

	perl_fake_half(s.p, perl_fake_word(s.p, cv) + s.p->layout.cv_flags.at, 0);
	fake_put(s.p->f, perl_fake_word(s.p, cv) + s.p->layout.cv_root.at, 0);
	for (u32 line = 10; line <= 13; line += 3) {
		struct perl_names *names = perl_names_create(&s.p->image, 0);
		u64 detail = perl_detail(perl_fake_cop(s.p, 7), PERL_KIND_SUB, PERL_STACK_REQUIRE, PERL_LINE | line);
		struct frame f = {perl_where(cv, PERL_LINE | line), detail};
		struct frame_name name;

		assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
		assert_string_equal(name.name, "Some::BEGIN");
		assert_int_equal(name.line, line);
		assert_string_equal(name.file, line == 10 ? "x.pl" : "");
		perl_names_destroy(names);
	}
	perl_fake_destroy(s.p);
}

/* A BEGIN block that has lost its GV, and what else has a place there. */
static void test_begin_ended(void **state)
{
	static const char *const names_of[] = {"__ANON__", "loader"}, *const shown[] = {"Some::BEGIN", "Some::loader"};

	for (u32 i = 0; i < 2; i++) {
		struct stack s = make();
		struct perl_names *names = perl_names_create(&s.p->image, 0);
		u64 cv = perl_fake_cv(s.p, perl_fake_package(s.p, "Some"), names_of[i], 10, false);
		u64 cop = perl_fake_cop(s.p, 11),
		    detail = perl_detail(cop, PERL_KIND_SUB, PERL_STACK_REQUIRE, PERL_LINE | 11);
		struct frame f = {perl_where(cv, PERL_LINE | 11), detail};
		struct frame_name name;

		fake_put(s.p->f, perl_fake_word(s.p, cv) + s.p->layout.cv_root.at, op(s.p, 170, 0x30000, cop));
		assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name) && name.line == 11);
		assert_string_equal(name.name, shown[i]);
		perl_names_destroy(names);
		perl_fake_destroy(s.p);
	}
}

/* The name of a file that is required may be another text by now, or the name of the next file. */
static void test_file_names(void **state)
{
	static const struct {
		const char *text, *name;
		u64 statement; /* 0: what runs is not known, as while a file is compiled */
	} files[] = {{"Some/File.pm", "require Some/File.pm", 0}, {"hex", "require Some/File.pm", 0},
	        {"/lib/Other.pm", "require Some/File.pm", 0}, {"^ (\\d+) \\.", "require Some/File.pm", 0},
	        {"Next/File.pm", "require Next/File.pm", 0}, {"x.pl", "require x.pl", 1},
	        {"Next/File.pm", "require x.pl", 1}};
	struct stack s = make();
	struct perl_names *names = perl_names_create(&s.p->image, 0);
	u64 sv = perl_fake_alloc(s.p, 24), body = perl_fake_alloc(s.p, 32), cop = perl_fake_cop(s.p, 7);
	struct frame_name name;

	fake_put(s.p->f, sv + s.p->layout.sv_any.at, body);
	perl_fake_half(s.p, sv + s.p->layout.sv_flags.at, 0x400);
	for (u32 i = 0; i < sizeof(files) / sizeof(*files); i++) {
		u64 detail = perl_detail(files[i].statement ? cop : 0, PERL_KIND_REQUIRE, 0, 0);
		struct frame f = {frame_where(FRAME_SCRIPT, RUNTIME_PERL, 0, sv), detail};

		fake_put(s.p->f, sv + s.p->layout.sv_u.at, perl_fake_text(s.p, files[i].text));
		fake_put(s.p->f, body + s.p->layout.pv_cur.at, strlen(files[i].text));
		assert_true(perl_name_frame(names, &s.p->f->memory, &f, &name));
		assert_string_equal(name.name, files[i].name);
	}
	perl_names_destroy(names);
	perl_fake_destroy(s.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_strings),
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_unread),
	        cmocka_unit_test(test_entered),
	        cmocka_unit_test(test_closure),
	        cmocka_unit_test(test_renamed),
	        cmocka_unit_test(test_renamed_replaced),
	        cmocka_unit_test(test_cookie),
	        cmocka_unit_test(test_freed),
	        cmocka_unit_test(test_sql_function),
	        cmocka_unit_test(test_lost_statement),
	        cmocka_unit_test(test_same_bits),
	        cmocka_unit_test(test_begin_replaced),
	        cmocka_unit_test(test_begin_ended),
	        cmocka_unit_test(test_file_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
