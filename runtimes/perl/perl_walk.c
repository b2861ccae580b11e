/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * From native frames of the interpreter to the Perl frames that they run.
 *
 * Perl's contexts hold no address of the native stack. But C code enters Perl only by a context without a place to
 * return to (retop), or on a new stack of contexts, and runs each in a loop of its own (Perl_runops_*). So, from the
 * innermost outwards, a native frame of a loop owns the contexts up to the next such one. Exceptions to this are
 * recognised by code (enum perl_part).
 */
#include "perl_loops_walk.h"

#define PL_CONTEXTS_A_STEP 16
#define PL_CONTEXTS_A_LOOK 2
#define PL_GROUP_DONE      (-1) /* besides stop reasons: all contexts of the native frame were pushed */

/* Pushes a frame that is no sub's. */
WALK_GLOBAL int perl_push(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c, u64 addr, u32 kind)
{
	u32 spot;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	if (!pl_spot(c)) /* C code entered it */
		perl_set_line(w, vm, c);
	spot = pl_spot(c);
	return walk_push(w, perl_where(addr, spot), perl_detail(c->more[1], kind, 0, spot)) ? STOP_NONE : STOP_DEPTH;
}

/* The context is done with. The next frame runs the statement oldcop, and goes on at retop. */
static inline void pl_take(struct walk_cursor *c, u64 oldcop, u64 retop)
{
	c->more[1] = oldcop;
	c->more[2] = (c->more[2] - 1) | PL_TOOK | PL_CALLER;
	pl_set_op(c, retop, false);
}

/*
 * What called the sub of the innermost context that is left from C, as its stack of contexts says. A BEGIN block has
 * one of its own, where only the eval of its call is below it; another sub there is one in @INC, say.
 */
static inline u32 pl_caller_type(const struct walk_cursor *c)
{
	return pl_type(c) == PERL_STACK_REQUIRE && pl_left(c) > 2 ? 0 : pl_type(c);
}

static inline int pl_sub(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c, u64 i, u32 type)
{
	bool format = (type & PERL_CX_KIND) == vm->kind_format;
	u32 kind = format ? PERL_KIND_FORMAT : type & PERL_CX_SUB_RE ? PERL_KIND_PATTERN : PERL_KIND_SUB;
	u64 oldcop = pl_word(w, i, vm->cx_oldcop), cv = pl_word(w, i, format ? vm->cx_format_cv : vm->cx_cv);
	u64 retop = pl_word(w, i, vm->cx_retop);
	bool entered = !format && !retop;
	u32 stack = entered ? pl_caller_type(c) : 0;
	int stop = STOP_NONE;

	if (stack == PERL_STACK_REQUIRE)
		perl_set_line(w, vm, c);
	else if (pl_spot(c) & PERL_LINE)
		pl_set_op(c, 0, false);
	if (cv) /* none: it has returned, and is being freed */
		stop = perl_push_cv(w, vm, c, cv, perl_detail(c->more[1], kind, stack, pl_spot(c)));
	if (stop == STOP_DEPTH)
		return stop;
	pl_take(c, oldcop, retop);
	if (entered && !(c->more[2] & PL_STACK))
		c->more[2] |= PL_PEEK;
	return stop;
}

/*
 * Did the parser push an eval entered at this statement, to fold constants in? That is nobody's. call_sv()'s, of a
 * BEGIN block, a handler or a destructor while code is compiled, is the first on a stack of its own. Before 5.20 a
 * BEGIN block has none, but its context is inside and was taken.
 */
static inline bool pl_is_folding(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c, u64 oldcop)
{
	return !(c->more[2] & PL_TOOK) && pl_left(c) > 1 && !perl_interpreter(w) && pl_is_compiled_at(w, vm, oldcop);
}

static inline int pl_eval(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c, u64 i, u32 type)
{
	u64 oldcop = pl_word(w, i, vm->cx_oldcop), name = pl_word(w, i, vm->cx_namesv), at = oldcop;
	u64 retop = pl_word(w, i, vm->cx_eval_retop);
	u32 kind = type & PERL_CX_TRY ? PERL_KIND_TRY : PERL_KIND_EVAL;

	if (type & PERL_CX_REAL) {
		kind = PERL_KIND_STRING;
	} else if (!(type & PERL_CX_BLOCK)) {
		kind = PERL_KIND_REQUIRE;
		at = name;
	}
	if (!(!retop && type & PERL_CX_BLOCK && pl_is_folding(w, vm, c, oldcop)) && perl_push(w, vm, c, at, kind))
		return STOP_DEPTH;
	pl_take(c, oldcop, retop);
	if (!retop && !(type & PERL_CX_BLOCK))
		c->more[2] |= PL_PEEK;
	return STOP_NONE;
}

/* At the end of a stack of contexts, which C code began. */
static inline int pl_stack_end(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c)
{
	if (pl_type(c) != PERL_STACK_MAIN)
		return (c->more[2] & (PL_TOOK | PL_ALL)) == PL_TOOK ? PL_GROUP_DONE : perl_stack_next(w);
	c->at = PL_END;
	if (c->more[2] & PL_BOTTOM && perl_push(w, vm, c, 0, PERL_KIND_MAIN))
		return STOP_DEPTH;
	return PL_GROUP_DONE;
}

/* One context further. */
static inline int pl_next(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c)
{
	u32 type, kind;
	int found;
	u64 i;

	if (c->at == PL_END)
		return PL_GROUP_DONE;
	if (!pl_left(c))
		return (c->more[2] & (PL_PEEK | PL_ALL)) == PL_PEEK ? PL_GROUP_DONE : pl_stack_end(w, vm, c);
	found = pl_context(w, vm, c);
	if (found < 0)
		return STOP_VM_ABSENT;
	i = (u64)found;
	type = (u32)pl_word(w, i, 0) & 0xff;
	kind = type & PERL_CX_KIND;
	if ((c->more[2] & (PL_PEEK | PL_ALL)) == PL_PEEK) {
		if (kind == vm->kind_eval && (type & PERL_CX_BLOCK) && !pl_word(w, i, vm->cx_eval_retop)) {
			found = pl_eval(w, vm, c, i, type);
			if (found)
				return found;
		}
		return PL_GROUP_DONE;
	}
	if (kind == vm->kind_sub || kind == vm->kind_format)
		return pl_sub(w, vm, c, i, type);
	if (kind == vm->kind_eval)
		return pl_eval(w, vm, c, i, type);
	if (!kind && pl_type(c) == PERL_STACK_SORT) {
		if (perl_push(w, vm, c, pl_word(w, i, vm->cx_oldcop), PERL_KIND_SORT))
			return STOP_DEPTH;
		pl_take(c, pl_word(w, i, vm->cx_oldcop), 0);
		return STOP_NONE;
	}
	if (kind == vm->kind_block && pl_left(c) == 1 && pl_type(c) == PERL_STACK_MAIN)
		c->more[2] |= PL_BOTTOM;
	c->more[2] = (c->more[2] - 1) | PL_TOOK;
	return STOP_NONE;
}

/* Some contexts further. */
WALK_GLOBAL int perl_next(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c)
{
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	for (i = 0; i < PL_CONTEXTS_A_LOOK && !stop; i++)
		stop = pl_next(w, vm, c);
	return stop;
}

WALK_GLOBAL int perl_group(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	for (i = 0; i < PL_CONTEXTS_A_STEP / PL_CONTEXTS_A_LOOK && !stop; i++)
		stop = perl_next(w, vm, c);
	return stop;
}

/* Where call_sv() is at work, and no loop: a context is its own, or only an eval that it has pushed before. */
static inline int pl_enter(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c, u32 part)
{
	u32 type = (u32)perl_entered(w);
	bool eval = (type & PERL_CX_KIND) == vm->kind_eval;

	if (!type || (part == PERL_SCOPE && !eval))
		return PL_GROUP_DONE;
	c->more[2] = (c->more[2] & ~(PL_GROUP | PL_XS | PL_COMPILES)) | PL_RAN;
	if (eval && type & PERL_CX_BLOCK)
		c->more[2] |= PL_PEEK;
	return STOP_NONE;
}

/*
 * C code that keeps a context for many runs of a loop: between two of them the context is there, but runs nothing.
 * Takes it away. Nothing if a loop was passed, which took it. sort: it is pp_sort().
 */
WALK_GLOBAL int perl_keeper(struct walk *w, u32 sort)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	int stop;

	WALK_CHECK(w);
	stop = perl_open(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	if (c->at != PL_END && !(c->more[2] & PL_RAN) && pl_type(c) == (sort ? (u32)PERL_STACK_SORT : vm->multicall)) {
		if (pl_left(c) && !walk_read(w, &c->more[1], sizeof(u64), c->more[0] + vm->cx_oldcop))
			return STOP_VM_ABSENT;
		pl_set_op(c, 0, false);
		stop = perl_stack_next(w);
	}
	c->more[2] &= ~PL_RAN;
	return stop;
}

/* Begins with a native frame. PL_GROUP_DONE: no context is its own. */
WALK_GLOBAL int perl_begin(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	bool ended, unwound;
	int stop, early;
	u32 part;

	WALK_CHECK(w);
	part = w->region.part == PERL_NEXT ? (u32)PERL_RUNOPS : w->region.part;
	stop = perl_open(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	if (part == PERL_ENTER &&
	        c->more[2] & PL_XS) { /* no loop runs a function in C: only call_sv()'s eval is there */
		c->more[2] = (c->more[2] & ~(PL_GROUP | PL_XS)) | PL_PEEK;
		return STOP_NONE;
	}
	if (part == PERL_ENTER || part == PERL_SCOPE)
		return pl_enter(w, vm, c, part);
	ended = part == PERL_RUNOPS && perl_has_ended(w, vm, c);
	if (ended && pl_is_kept(vm, pl_type(c)) && (pl_left(c) == 1 || perl_is_keepers(w))) {
		c->more[2] &= ~(PL_GROUP | PL_ENDED | PL_XS | PL_COMPILES);
		return PL_GROUP_DONE;
	}
	early = part == PERL_RUNOPS ? perl_is_early(w) : false;
	if ((ended && !pl_is_protection(w, vm, c)) || c->more[2] & PL_SKIP || early == PL_EARLY)
		stop = PL_GROUP_DONE;
	unwound = ended || c->more[2] & PL_UNWOUND;
	if (!stop && part == PERL_RUNOPS && pl_is_left(w, vm, c))
		stop = PL_GROUP_DONE;
	c->more[2] = (c->more[2] & ~(PL_GROUP | PL_SKIP | PL_UNWOUND | PL_ENDED | PL_XS | PL_COMPILES)) | PL_RAN;
	if (part == PERL_RUNOPS && !stop) {
		stop = perl_skip_empty(w, c);
		if (!stop && pl_is_kept(vm, pl_type(c)) && perl_is_keepers(w))
			c->more[2] |= PL_STACK;
		else if (!stop && pl_is_protection(w, vm, c) &&
		         (early == PL_EARLY_PROTECTED || unwound || perl_is_keepers(w)))
			c->more[2] |= PL_PEEK; /* the parser folds constants in such a loop, with an eval of its own */
	}
	if (part == PERL_RUN && c->at != PL_END) {
		c->more[2] |= PL_ALL;
		if (!w->lost && !w->leaf && pl_left(c)) /* a leaf: an exception has ended the loop */
			w->lost = STOP_VM_BROKEN;
	}
	return stop;
}

/* A function in C that Perl code calls: its CV is in the register that the call was made with. */
WALK_GLOBAL int perl_xs(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u32 reg;
	int stop;

	WALK_CHECK(w);
	reg = (u32)w->region.part - PERL_XS;
	stop = perl_keeper(w, 0);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	c->more[2] |= PL_XS;
	WALK_BARRIER(reg);
	if (reg >= ARCH_NREGS || !walk_has(w, reg))
		return STOP_NONE;
	return perl_push_cv(w, vm, c, w->reg[reg], perl_detail(c->more[1], PERL_KIND_XS, 0, 0));
}

/* Out of the native frame, whose Perl frames were pushed, or not. */
static inline int pl_leave(struct walk *w, int stop)
{
	if (stop > 0 && !w->lost)
		w->lost = stop;
	return native_step(w, FRAME_VM);
}

/* The parser. Each BEGIN block has a stack of contexts, which is empty before and after. */
WALK_GLOBAL int perl_compile(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	int stop;

	WALK_CHECK(w);
	stop = perl_open(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	c->more[2] |= PL_COMPILES;
	return perl_skip_empty(w, c);
}

/* The newest context counts, but is not whole: the caller of what it is for is what runs. */
static inline int pl_pushing(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	int stop = perl_open(w);

	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	if (c->at != PL_END && pl_left(c))
		c->more[2]--;
	return STOP_NONE;
}

/*
 * Coro's library. No code of it returns to the first instruction of abort(): a call in front of that belongs to a
 * function of the C library. So this is the word that a coroutine's stack begins with.
 */
static inline int pl_coro(struct walk *w)
{
	const struct perl_vm *vm = walk_arena(w, w->region.vm);
	int stop = native_step(w, 0);

	return !stop && vm && vm->coro_base && w->reg[REG_PC] == vm->coro_base ? STOP_ROOT_RUNTIME : stop;
}

WALK_STEP int perl_step(struct walk *w)
{
	u32 part;
	int stop;

	WALK_CHECK(w);
	part = w->region.part;
	if (part >= PERL_XS) {
		if (w->leaf)
			return native_step(w, FRAME_VM);
		stop = perl_xs(w);
		return stop == STOP_DEPTH ? stop : pl_leave(w, stop);
	}
	if (part == PERL_CORO)
		return pl_coro(w);
	if (part == PERL_PUSHING)
		return pl_leave(w, w->leaf ? pl_pushing(w) : STOP_NONE);
	if (part == PERL_DONE)
		return pl_leave(w, w->leaf ? pl_mark(w, PL_ENDED) : STOP_NONE);
	if (part == PERL_POPPED)
		return pl_leave(w, w->leaf ? perl_popped(w) : STOP_NONE);
	if (part == PERL_SORT)
		return pl_leave(w, perl_keeper(w, 1));
	if (part == PERL_REGEXEC)
		return pl_leave(w, perl_keeper(w, 0));
	if (part == PERL_CATCH)
		return pl_leave(w, perl_catch(w));
	if (part == PERL_UNWIND)
		return pl_leave(w, pl_mark(w, PL_UNWOUND));
	if (part == PERL_COMPILE)
		return pl_leave(w, perl_compile(w));
	stop = w->vm_state ? STOP_NONE : perl_begin(w);
	if (!stop)
		stop = perl_group(w);
	w->vm_state = !stop || stop == STOP_DEPTH;
	return w->vm_state ? stop : pl_leave(w, stop);
}
