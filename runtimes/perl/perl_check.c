/* SPDX-License-Identifier: Apache-2.0 */
#include "perl_check.h"

#include "perl_objects.h"

#define TRIES        20
#define STACKS_MAX   64
#define CONTEXTS_MAX 256 /* of a stack that are looked at */
#define CX_KINDS     14
#define SI_TYPES     16

struct checker {
	struct perl_reader r;
	const struct perl_layout *l;
	u64 curstackinfo, curcop; /* where the pointers are */
};

struct stack {
	u64 at, contexts, prev;
	s32 cxix, cxmax, type;
};

static bool word(const struct checker *c, u64 *ret, u64 addr)
{
	return memory_read(c->r.mem, ret, sizeof(*ret), addr);
}

static bool half(const struct checker *c, s32 *ret, u64 addr)
{
	return memory_read(c->r.mem, ret, sizeof(*ret), addr);
}

static bool read_stack(const struct checker *c, u64 at, struct stack *ret)
{
	const struct perl_layout *l = c->l;

	ret->at = at;
	return word(c, &ret->contexts, at + l->si_cxstack.at) && word(c, &ret->prev, at + l->si_prev.at) &&
	       half(c, &ret->cxix, at + l->si_cxix.at) && half(c, &ret->cxmax, at + l->si_cxmax.at) &&
	       half(c, &ret->type, at + l->si_type.at) && ret->cxix >= -1 && ret->cxix <= ret->cxmax &&
	       ret->type >= -1 && ret->type < SI_TYPES && ret->contexts && ret->contexts % 8 == 0;
}

/* The outermost one is the main program's. */
static enum perl_check_result check_stacks(const struct checker *c)
{
	struct stack s;
	u64 at;

	if (!word(c, &at, c->curstackinfo))
		return PERL_CHECK_FAILS;
	if (!at)
		return PERL_CHECK_SILENT;
	for (u32 n = 0; n < STACKS_MAX; n++) {
		if (!read_stack(c, at, &s))
			return PERL_CHECK_FAILS;
		if (!s.prev)
			return s.type == PERL_STACK_MAIN ? PERL_CHECK_HOLDS : PERL_CHECK_FAILS;
		at = s.prev;
	}
	return PERL_CHECK_HOLDS;
}

static bool check_context(const struct checker *c, u64 at)
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

static enum perl_check_result check_contexts(const struct checker *c)
{
	struct stack s;
	u32 seen = 0;
	u64 at;

	if (!word(c, &at, c->curstackinfo))
		return PERL_CHECK_FAILS;
	for (u32 n = 0; at && n < STACKS_MAX; n++, at = s.prev) {
		if (!read_stack(c, at, &s))
			return PERL_CHECK_FAILS;
		for (s32 i = 0; i <= s.cxix && i < CONTEXTS_MAX; i++, seen++)
			if (!check_context(c, s.contexts + (u64)i * c->l->cx_size.at))
				return PERL_CHECK_FAILS;
	}
	return seen ? PERL_CHECK_HOLDS : PERL_CHECK_SILENT;
}

/* While code is compiled the current statement is a member of the interpreter, which has no function. */
static enum perl_check_result check_statement(const struct checker *c)
{
	u64 cop;
	char file[256];
	u32 line;

	if (!word(c, &cop, c->curcop))
		return PERL_CHECK_FAILS;
	if (!cop || !perl_is_cop(&c->r, cop))
		return PERL_CHECK_SILENT;
	return perl_cop_place(&c->r, cop, &line, file, sizeof(file)) ? PERL_CHECK_HOLDS : PERL_CHECK_FAILS;
}

void perl_check(const struct perl_image *image, u64 bias, struct memory *mem, struct perl_check ret[PERL_CHECKS])
{
	static const struct {
		const char *name, *what;
		enum perl_check_result (*check)(const struct checker *c);
	} checks[PERL_CHECKS] = {
	        {"stacks", "of contexts are linked up to the main program's", check_stacks},
	        {"contexts", "have kinds that there are; those of subs have a CV", check_contexts},
	        {"statement", "the current one has a line and a file", check_statement},
	};
	struct checker c = {.r = {.mem = mem, .image = image, .bias = bias}, .l = image->layout};
	u64 interpreter = 0;

	if (!image->vm.multiple) {
		c.curstackinfo = bias + image->curstackinfo;
		c.curcop = bias + image->curcop;
	} else if (memory_read(mem, &interpreter, sizeof(interpreter), bias + image->interpreter) && interpreter) {
		c.curstackinfo = interpreter + image->layout->i_curstackinfo.at;
		c.curcop = interpreter + image->layout->i_curcop.at;
	}
	for (u32 i = 0; i < PERL_CHECKS; i++) {
		ret[i] = (struct perl_check){
		        checks[i].name, checks[i].what, c.curcop ? PERL_CHECK_FAILS : PERL_CHECK_SILENT};
		for (u32 k = 0; k < TRIES && ret[i].result == PERL_CHECK_FAILS; k++)
			ret[i].result = checks[i].check(&c);
	}
}

struct error *perl_check_process(const struct perl_image *image, u64 bias, const struct runtime_process *p)
{
	struct perl_check checks[PERL_CHECKS];

	perl_check(image, bias, p->memory, checks);
	for (u32 i = 0; i < PERL_CHECKS; i++)
		if (checks[i].result == PERL_CHECK_FAILS)
			return error_hint(
			        error_new(ERROR_UNSUPPORTED,
			                "process %d: the layout of Perl that was found does not hold: %s (%s)", p->pid,
			                checks[i].name, checks[i].what),
			        "its Perl frames are left out; run `yrt layout` on a build of it with -g and name the "
			        "folder of the result in YRT_LAYOUTS");
	return NULL;
}
