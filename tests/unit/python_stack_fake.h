/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of C, eval loops and Python frames over fake memory, and the walk of it as a text. */
#ifndef YRT_PYTHON_STACK_FAKE_H
#define YRT_PYTHON_STACK_FAKE_H

#include "unit.h"

#include "python_fake.h"

static const enum python_linkage linkages[] = {PYTHON_ENTRY_FLAG, PYTHON_ENTRY_FRAME, PYTHON_NO_CFRAME};

#define FOR_EACH_LINKAGE(l) for (u32 l = 0; l < sizeof(linkages) / sizeof(*linkages); l++)

struct stack {
	struct python_fake *p;
	u64 a, b, c, d; /* code objects */
};

/* C calls a, which calls b; through C b calls c, which calls d; that calls C. */
static inline struct stack make(enum python_linkage linkage)
{
	struct python_fake *p = python_fake_create(linkage);
	struct stack s = {.p = p,
	        .a = python_fake_code(p, "a", 10),
	        .b = python_fake_code(p, "b", 20),
	        .c = python_fake_code(p, "c", 30),
	        .d = python_fake_code(p, "d", 40)};

	python_fake_eval(p, (u64[]){s.a, s.b}, 2);
	python_fake_call(p, p->c, PYTHON_C_BYTES);
	python_fake_eval(p, (u64[]){s.c, s.d}, 2);
	python_fake_call(p, p->c, PYTHON_C_BYTES);
	return s;
}

/* The stack as a text: code objects by letter, "e" an eval loop, "n" C, "r" the root. */
static const char *text(const struct stack *s)
{
	static char ret[FAKE_FRAMES + 1];
	const struct fake *f = s->p->f;

	for (u32 i = 0; i < f->walk.nframes; i++) {
		u64 addr = frame_addr(&f->frames[i]);

		if (frame_kind(&f->frames[i]) == FRAME_SCRIPT)
			ret[i] = addr == s->a   ? 'a'
			         : addr == s->b ? 'b'
			         : addr == s->c ? 'c'
			         : addr == s->d ? 'd'
			                        : '?';
		else if (frame_kind(&f->frames[i]) == FRAME_GAP)
			ret[i] = 'g';
		else if (frame_flags(&f->frames[i]) & FRAME_VM)
			ret[i] = 'e';
		else
			ret[i] = addr - s->p->root < FAKE_PAGE ? 'r' : 'n';
	}
	ret[f->walk.nframes] = '\0';
	return ret;
}

static inline void expect(struct stack *s, int stop, const char *frames)
{
	assert_int_equal(python_fake_walk(s->p), stop);
	assert_string_equal(text(s), frames);
}

static inline struct python_vm *config(struct stack *s)
{
	return arena_at(s->p->f->arena, s->p->f->region[s->p->f->nregions - 1].vm, sizeof(struct python_vm));
}

#endif
