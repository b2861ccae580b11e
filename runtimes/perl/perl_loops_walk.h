/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which loop runs which contexts: a loop may not have begun with its context, may have ended, or may have been left by
 * an exception.
 *
 * The functions that perl_begin() calls are global, so the verifier checks them once, and not for each path to a call.
 */
#ifndef YRT_PERL_LOOPS_WALK_H
#define YRT_PERL_LOOPS_WALK_H

#include "perl_contexts_walk.h"

#define PL_CALL_BYTES    512 /* of call_sv()'s stack above a loop's */
#define PL_STACKS_A_STEP 4

/* PL_op */
static inline bool pl_op(struct walk *w, const struct perl_vm *vm, u64 *op)
{
	return !perl_interpreter(w) && walk_read(w, op, sizeof(*op), w->scratch[0] + vm->op);
}

/* Is this statement PL_compiling? After perl_interpreter(). */
static inline bool pl_is_compiled_at(const struct walk *w, const struct perl_vm *vm, u64 cop)
{
	return cop - (w->scratch[0] + vm->compiling) < vm->compiling_size;
}

/* The type of the innermost context if it was entered from C: a sub or an eval with no place to return to. Else 0. */
WALK_GLOBAL int perl_from_c(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	u32 type, kind;
	int found;
	u64 i;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	found = c->at != PL_END && pl_left(c) ? pl_context(w, vm, c) : -1;
	if (found < 0)
		return 0;
	i = (u64)found;
	type = (u32)pl_word(w, i, 0) & 0xff;
	kind = type & PERL_CX_KIND;
	if (kind == vm->kind_sub)
		return pl_word(w, i, vm->cx_retop) ? 0 : (int)type;
	return kind == vm->kind_eval && !pl_word(w, i, vm->cx_eval_retop) ? (int)type : 0;
}

/* Has this loop ended, and with it its context? It has no op any more. */
WALK_GLOBAL int perl_has_ended(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	u64 op;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	if (!w->leaf)
		return (c->more[2] & PL_ENDED) != 0;
	if (w->region.part == PERL_NEXT)
		return walk_has(w, REG_RESULT) && !w->reg[REG_RESULT];
	return pl_op(w, vm, &op) && !op;
}

/* Is code being compiled? Then the current statement is PL_compiling, except while the parser optimizes ops. */
static inline bool pl_is_compiling(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	return c->more[2] & PL_COMPILES || (!perl_interpreter(w) && pl_is_compiled_at(w, vm, c->more[1]));
}

/*
 * The type of the innermost context if it was entered from C and no loop has run it yet: it was entered from the
 * current statement, or it is the eval of a string that is being compiled, which may have run BEGIN blocks. Else 0.
 */
WALK_GLOBAL int perl_entered(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	int type, found;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	type = c ? perl_from_c(w, vm, c) : 0;
	found = type ? pl_context(w, vm, c) : -1;
	if (!c || found < 0)
		return 0;
	if (!(c->more[2] & PL_RAN) && pl_word(w, (u64)found, vm->cx_oldcop) == c->more[1])
		return type;
	return (type & PERL_CX_KIND) == vm->kind_eval && type & PERL_CX_REAL && pl_is_compiling(w, vm, c) ? type : 0;
}

/* Has this loop not begun with its sub? call_sv() first has it run an op that is a variable of call_sv(). */
#define PL_EARLY           1 /* it has no context */
#define PL_EARLY_PROTECTED 2 /* only the eval that call_sv() has pushed */
WALK_GLOBAL int perl_is_early(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u32 type;
	u64 op;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || c->more[2] & PL_RAN || !pl_op(w, vm, &op) || native_cfa(w) || op - w->scratch[0] >= PL_CALL_BYTES)
		return false;
	type = (u32)perl_entered(w);
	if (!type)
		return PL_EARLY;
	return (type & PERL_CX_KIND) == vm->kind_eval && type & PERL_CX_BLOCK ? PL_EARLY_PROTECTED : false;
}

/* Is the innermost context an eval that call_sv() pushed? */
static inline bool pl_is_protection(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	u32 type = (u32)perl_from_c(w, vm, c);

	return (type & PERL_CX_KIND) == vm->kind_eval && type & PERL_CX_BLOCK;
}

/* Is it a stack of contexts that a block keeps for many runs? */
static inline bool pl_is_kept(const struct perl_vm *vm, u32 type)
{
	return type == PERL_STACK_SORT || type == vm->multicall;
}

/*
 * The block of a sort, or of a pattern, that C code runs with its own loop ends without an op that returns: a sub that
 * is called last in it has no place to return to either. Such a loop was not called by call_sv() or the like.
 */
WALK_GLOBAL int perl_is_keepers(struct walk *w)
{
	const struct perl_vm *vm;
	u64 ret;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || native_cfa(w) || !walk_stack(w, w->scratch[0] - 8, &ret))
		return false;
	for (i = 0; i < PERL_ENTRIES_MAX; i++)
		if (vm->entries[i] == ret)
			return false;
	return true;
}

WALK_GLOBAL int perl_skip_empty(struct walk *w, struct walk_cursor *c)
{
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	WALK_CHECK(c);
	for (i = 0; i < PL_STACKS_A_STEP && !stop && c->at != PL_END && !pl_left(c) && pl_type(c) != PERL_STACK_MAIN;
	        i++)
		stop = perl_stack_next(w);
	return stop;
}

/*
 * An exception leaves this loop of a block that keeps its context, and has already removed the block's stack of
 * contexts.
 */
static inline bool pl_is_left(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c)
{
	return c->more[2] & PL_UNWOUND && !perl_skip_empty(w, c) && !pl_is_kept(vm, pl_type(c)) &&
	       !perl_from_c(w, vm, c) && perl_is_keepers(w);
}

/* For the next loop. flag: PL_UNWOUND or PL_ENDED */
static inline int pl_mark(struct walk *w, u64 flag)
{
	const struct perl_vm *vm = walk_arena(w, w->region.vm);
	struct walk_cursor *c = vm ? pl_cursor(w, vm) : NULL;

	if (!c)
		return STOP_ARENA;
	c->more[2] |= flag;
	return STOP_NONE;
}

/* The innermost context is popped. If it was entered from C, its loop has ended, but does not know it yet. */
WALK_GLOBAL int perl_popped(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 at, type, retop;
	int stop;

	WALK_CHECK(w);
	stop = perl_open(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	if (c->at == PL_END)
		return STOP_NONE;
	at = c->more[0] + pl_left(c) * vm->cx_size;
	if (!walk_read(w, &type, sizeof(type), at))
		return STOP_VM_ABSENT;
	if (!walk_read(w, &retop, sizeof(retop),
	            at + ((type & PERL_CX_KIND) == vm->kind_eval ? vm->cx_eval_retop : vm->cx_retop)))
		return STOP_VM_ABSENT;
	if (!retop)
		c->more[2] |= PL_ENDED;
	return STOP_NONE;
}

/* docatch(): the loop outside of it has no contexts of its own, unless no loop was passed inside, or that has ended. */
WALK_GLOBAL int perl_catch(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 op;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	if (c->more[2] & PL_RAN)
		c->more[2] |= PL_SKIP;
	else if (pl_op(w, vm, &op) && !op)
		c->more[2] |= PL_ENDED;
	return STOP_NONE;
}

#endif
