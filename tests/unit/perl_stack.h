/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of perl_fake.h for tests: the main program and four CVs, and its frames as a text. After cmocka.h. */
#ifndef YRT_PERL_STACK_H
#define YRT_PERL_STACK_H

#include "perl_fake.h"

enum { SUB = 9, FORMAT = 10, EVAL = 11, BLOCK = 2 };
#define RETURNS 0x1000 /* an op to return to */

struct stack {
	struct perl_fake *p;
	u64 a, b, c, x; /* CVs */
};

/* The main program. */
static inline struct stack make(void)
{
	struct perl_fake *p = perl_fake_create();
	u64 package = perl_fake_package(p, "Some::Package");
	struct stack s = {.p = p,
	        .a = perl_fake_cv(p, package, "a", 10, false),
	        .b = perl_fake_cv(p, package, "b", 20, true),
	        .c = perl_fake_cv(p, package, "c", 30, false),
	        .x = perl_fake_cv(p, package, "x", 0, false)};

	p->cv = s.x;
	fake_put(p->f, p->interpreter + p->layout.i_curcop.at, perl_fake_cop(p, 99));
	perl_fake_context(p, BLOCK, 0, 0, 1);
	perl_fake_call(p, p->run);
	perl_fake_call(p, p->runops);
	return s;
}

/*
 * The stack as a text, leaf first: subs by letter, "e" eval, "q" require, "t" string, "s" a block of sort, "p" of a
 * pattern, "u" a sub that could not be read, "f" format, "M" the main program; native frames: "L" the interpreter's,
 * "n" C, "r" the root.
 */
static inline const char *text(const struct stack *s)
{
	static const char kinds[PERL_KINDS] = {[PERL_KIND_FORMAT] = 'f',
	        [PERL_KIND_EVAL] = 'e',
	        [PERL_KIND_TRY] = 'y',
	        [PERL_KIND_STRING] = 't',
	        [PERL_KIND_REQUIRE] = 'q',
	        [PERL_KIND_SORT] = 's',
	        [PERL_KIND_PATTERN] = 'p',
	        [PERL_KIND_UNREAD] = 'u',
	        [PERL_KIND_MAIN] = 'M'};
	static char ret[FAKE_FRAMES + 1];
	const struct fake *f = s->p->f;

	for (u32 i = 0; i < f->walk.nframes; i++) {
		u64 addr = frame_addr(&f->frames[i]), object = perl_object(&f->frames[i]);
		u32 kind = perl_kind(f->frames[i].detail);

		if (frame_kind(&f->frames[i]) == FRAME_SCRIPT)
			ret[i] = kind > PERL_KIND_XS ? kinds[kind]
			         : object == s->a    ? 'a'
			         : object == s->b    ? 'b'
			         : object == s->c    ? 'c'
			         : object == s->x    ? 'x'
			                             : '?';
		else if (frame_flags(&f->frames[i]) & FRAME_VM)
			ret[i] = 'L';
		else
			ret[i] = addr - s->p->root < FAKE_PAGE ? 'r' : 'n';
	}
	ret[f->walk.nframes] = '\0';
	return ret;
}

static inline void expect(struct stack *s, int stop, const char *frames)
{
	int found = perl_fake_walk(s->p);

	assert_string_equal(text(s), frames);
	assert_int_equal(found, stop);
}

#endif
