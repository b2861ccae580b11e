/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_check.h"

#include "perl_objects.h"

#define STACKS_MAX   64
#define CONTEXTS_MAX 256 /* of a stack that are looked at */
#define CX_KINDS     14
#define SI_TYPES     16

struct stack {
	u64 at, contexts, prev;
	s32 cxix, cxmax, type;
};

static bool word(const struct perl_checked *c, u64 *ret, u64 addr)
{
	return memory_read(c->r.mem, ret, sizeof(*ret), addr);
}

static bool half(const struct perl_checked *c, s32 *ret, u64 addr)
{
	return memory_read(c->r.mem, ret, sizeof(*ret), addr);
}

static bool read_stack(const struct perl_checked *c, u64 at, struct stack *ret)
{
	const struct perl_layout *l = c->l;

	ret->at = at;
	return word(c, &ret->contexts, at + l->si_cxstack.at) && word(c, &ret->prev, at + l->si_prev.at) &&
	       half(c, &ret->cxix, at + l->si_cxix.at) && half(c, &ret->cxmax, at + l->si_cxmax.at) &&
	       half(c, &ret->type, at + l->si_type.at) && ret->cxix >= -1 && ret->cxix <= ret->cxmax &&
	       ret->type >= -1 && ret->type < SI_TYPES && ret->contexts && ret->contexts % 8 == 0;
}

/* The outermost one is the main program's. */
static int check_stacks(void *subject)
{
	const struct perl_checked *c = subject;
	struct stack s;
	u32 n = 0;
	u64 at;

	if (!c->curcop)
		return 0;
	if (!word(c, &at, c->curstackinfo))
		return CHECK_FAILS;
	for (; at && n < STACKS_MAX; n++, at = s.prev) {
		if (!read_stack(c, at, &s))
			return CHECK_FAILS;
		if (!s.prev && s.type != PERL_STACK_MAIN)
			return CHECK_FAILS;
	}
	return (int)n;
}

static bool check_context(const struct perl_checked *c, u64 at)
{
	const struct perl_vm *vm = &c->r.image->vm;
	u8 type;
	u64 cv;

	if (!memory_read(c->r.mem, &type, sizeof(type), at + c->l->cx_type.at) || (type & PERL_CX_KIND) >= CX_KINDS)
		return false;
	if ((type & PERL_CX_KIND) == vm->kind_sub)
		return word(c, &cv, at + c->l->cx_cv.at) && perl_is_cv(&c->r, cv);
	return true;
}

static int check_contexts(void *subject)
{
	const struct perl_checked *c = subject;
	struct stack s;
	u32 seen = 0;
	u64 at;

	if (!c->curcop)
		return 0;
	if (!word(c, &at, c->curstackinfo))
		return CHECK_FAILS;
	for (u32 n = 0; at && n < STACKS_MAX; n++, at = s.prev) {
		if (!read_stack(c, at, &s))
			return CHECK_FAILS;
		for (s32 i = 0; i <= s.cxix && i < CONTEXTS_MAX; i++, seen++)
			if (!check_context(c, s.contexts + (u64)i * c->l->cx_size.at))
				return CHECK_FAILS;
	}
	return (int)seen;
}

/* While code is compiled the current statement is a member of the interpreter, which has no function. */
static int check_statement(void *subject)
{
	const struct perl_checked *c = subject;
	u64 cop;
	char file[256];
	u32 line;

	if (!c->curcop)
		return 0;
	if (!word(c, &cop, c->curcop))
		return CHECK_FAILS;
	if (!cop || !perl_is_cop(&c->r, cop))
		return 0;
	return perl_cop_place(&c->r, cop, &line, file, sizeof(file)) ? 1 : CHECK_FAILS;
}

/* The interpreter at PL_curinterp. */
static void look(void *subject)
{
	struct perl_checked *c = subject;
	const struct perl_image *image = c->r.image;
	u64 interpreter;

	if (!image->vm.multiple) {
		c->curstackinfo = c->r.bias + image->curstackinfo;
		c->curcop = c->r.bias + image->curcop;
	} else if (word(c, &interpreter, c->r.bias + image->interpreter) && interpreter) {
		c->curstackinfo = interpreter + c->l->i_curstackinfo.at;
		c->curcop = interpreter + c->l->i_curcop.at;
	}
}

static const struct runtime_check checks[] = {
        {"stacks", "of contexts are linked up to the main program's", check_stacks},
        {"contexts", "have kinds that there are; those of subs have a CV", check_contexts},
        {"statement", "the current one has a line and a file", check_statement},
};

const struct runtime_checks perl_checks = {
        .all = checks, .n = sizeof(checks) / sizeof(*checks), .attempts = 20, .look = look};

struct perl_checked perl_checked_of(const struct perl_image *image, u64 bias, struct memory *mem)
{
	return (struct perl_checked){.r = {.mem = mem, .image = image, .bias = bias}, .l = image->layout};
}
