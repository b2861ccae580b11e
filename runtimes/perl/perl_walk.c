/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * From native frames of the interpreter to the Perl frames that they run.
 *
 * Perl's contexts tell no address of the native stack. But C code enters Perl only by a context without a place to
 * return to (retop), or on a new stack of contexts; and each runs in a loop of its own (Perl_runops_*). So, from the
 * innermost outwards, a native frame of a loop takes the contexts up to the next such one. What disturbs this count is
 * known by its code (enum perl_part).
 */
#include "walk.h"
#include "perl.h"

#define PL_CONTEXTS_A_STEP 16
#define PL_CONTEXTS_A_LOOK 2 /* at the configuration */
#define PL_STACKS_A_STEP   4
#define PL_WINDOW          2048u /* bytes of a stack of contexts that are read at once */
#define PL_GROUP_DONE      (-1)  /* besides stop reasons: all contexts of the native frame were pushed */
#define PL_END             1ull  /* of the cursor: there are no more contexts */

/* more[2] of the cursor: how many contexts are left on this stack, its type, and: */
#define PL_SKIP   (1ull << 40) /* docatch() was passed: the next loop has none */
#define PL_RAN    (1ull << 41) /* a loop was passed */
#define PL_XS     (1ull << 42) /* a function in C was passed */
#define PL_PEEK   (1ull << 43) /* the context that was entered from C was taken; call_sv() may have one of its own */
#define PL_TOOK   (1ull << 44) /* a context was taken */
#define PL_BOTTOM (1ull << 45) /* the main program's own block was taken */
#define PL_ALL    (1ull << 46) /* all that is left belongs to this native frame */
#define PL_STACK  (1ull << 47) /* all that is left on this stack belongs to this native frame */
#define PL_GROUP  (PL_STACK | PL_PEEK | PL_TOOK | PL_BOTTOM | PL_ALL)

static inline struct walk_cursor *pl_cursor(struct walk *w, const struct perl_vm *vm)
{
	u32 i = walk_cursor(w, vm->identity);

	WALK_BARRIER(i);
	if (i >= WALK_CURSORS)
		return NULL;
	WALK_BARRIER(i); /* what is known of it may be lost in a spill: masked once more */
	return &w->cursor[i & (WALK_CURSORS - 1)];
}

static inline u64 pl_left(const struct walk_cursor *c)
{
	return (u32)c->more[2];
}

static inline u32 pl_type(const struct walk_cursor *c)
{
	return (u32)(c->more[2] >> 32) & 0xff;
}

static inline u32 pl_half(const u64 *words, u32 offset)
{
	return (u32)(words[(offset >> 3) & (PERL_SI_BYTES / 8 - 1)] >> (offset & 4) * 8);
}

/* Goes on with the contexts of the PERL_SI at `si`; 0: there is none. */
WALK_GLOBAL int perl_stack_open(struct walk *w, u64 si)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 base;
	s32 cxix, type;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	if (!si) {
		c->at = PL_END;
		return STOP_NONE;
	}
	if (!walk_read(w, &base, sizeof(base), si + vm->si_cxstack) ||
	        !walk_read(w, &cxix, sizeof(cxix), si + vm->si_cxix) ||
	        !walk_read(w, &type, sizeof(type), si + vm->si_type))
		return STOP_VM_ABSENT;
	if (cxix < -1 || cxix >= 1 << 24 || type < -1 || type > 63 || base & 7)
		return STOP_VM_BROKEN;
	c->at = si;
	c->more[0] = base;
	c->more[2] = (c->more[2] & ~((1ull << 40) - 1)) | (u32)(cxix + 1) | (u64)(type & 0xff) << 32;
	w->vm.len = 0;
	return STOP_NONE;
}

WALK_GLOBAL int perl_stack_next(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 si;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	if (!walk_read(w, &si, sizeof(si), c->at + vm->si_prev))
		return STOP_VM_ABSENT;
	return perl_stack_open(w, si);
}

/* Puts the address of this thread's interpreter into scratch[0]; without MULTIPLICITY 0, and all else is told by
 * addresses. */
WALK_GLOBAL int perl_interpreter(struct walk *w)
{
	const struct perl_vm *vm;
	u64 block;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	w->scratch[0] = 0;
	if (!vm->multiple)
		return STOP_NONE;
	if (!vm->via || !w->thread_pointer)
		return STOP_VM_UNKNOWN;
	if (!walk_read(w, &block, sizeof(block), w->thread_pointer + vm->via) || !block ||
	        !walk_read(w, w->scratch, sizeof(u64), block + (u64)(s64)vm->slot) || !w->scratch[0])
		return STOP_VM_ABSENT;
	return STOP_NONE;
}

/* Starts on the contexts of this thread, if that was not done yet. */
WALK_GLOBAL int perl_open(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 si, interpreter;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return STOP_ARENA;
	if (c->at)
		return STOP_NONE;
	c->at = PL_END;
	stop = perl_interpreter(w);
	if (stop)
		return stop;
	interpreter = w->scratch[0];
	if (!walk_read(w, &si, sizeof(si), interpreter + vm->curstackinfo) ||
	        !walk_read(w, &c->more[1], sizeof(c->more[1]), interpreter + vm->curcop))
		return STOP_VM_ABSENT;
	return perl_stack_open(w, si);
}

/* Is context number `i` in the window? Then *ret is its first word. */
static inline bool pl_in_window(const struct walk *w, const struct perl_vm *vm, u64 at, u64 *ret)
{
	u64 offset = at - w->vm.start;

	if (offset >= WALK_WINDOW || offset + vm->cx_size > w->vm.len)
		return false;
	*ret = offset / 8;
	return true;
}

/* Fills the window so that it ends with the innermost context that is left. If that fails with this context alone. */
WALK_GLOBAL int perl_window(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u64 end, size;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c)
		return false;
	size = pl_left(c) * vm->cx_size;
	end = c->more[0] + size;
	if (size > PL_WINDOW)
		size = PL_WINDOW;
	size &= 2 * PL_WINDOW - 8;
	w->vm.len = 0;
	w->vm.start = end - size;
	if (!walk_fill(w, w->vm.word, (u32)size, w->vm.start)) {
		size = vm->cx_size & (PERL_CX_BYTES_MAX * 2 - 8);
		w->vm.start = end - size;
		if (!walk_fill(w, w->vm.word, (u32)size, w->vm.start))
			return false;
	}
	w->vm.len = size;
	return true;
}

static inline u64 pl_word(const struct walk *w, u64 i, u32 offset)
{
	return w->vm.word[(i + (offset >> 3)) & (WALK_WINDOW_WORDS - 1)];
}

/* Reads the innermost context that is left; its first word of the window, or -1: unreadable. */
static inline int pl_context(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	u64 at = c->more[0] + (pl_left(c) - 1) * vm->cx_size, i;

	if (pl_in_window(w, vm, at, &i))
		return (int)i;
	return perl_window(w) && pl_in_window(w, vm, at, &i) ? (int)i : -1;
}

/* Pushes a frame of a CV. kind: enum perl_kind, the type of its stack in the upper bits. */
static inline int pl_push_cv(struct walk *w, const struct perl_vm *vm, u64 cv, u64 cop, u32 kind)
{
	u64 *words = w->scratch, body;
	u32 flags;

	if (!walk_read(w, &body, sizeof(body), cv + vm->sv_any) ||
	        !walk_read(w, words, 8 * PERL_CV_WORDS, body + vm->cv_words))
		return STOP_VM_ABSENT;
	flags = (u32)(words[(vm->cv_flags >> 3) & 7] >> (vm->cv_flags & 4) * 8);
	if ((kind & 15) == PERL_KIND_SUB &&
	        (flags & (PERL_CV_CLONED | PERL_CV_ANON | PERL_CV_NAMED)) == (PERL_CV_CLONED | PERL_CV_ANON)) {
		kind = (kind & ~15u) | PERL_KIND_CLOSURE;
		cv = words[0];
		body = 0;
	}
	if (!walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_PERL, 0, cv),
	            perl_detail(cop, kind & 15, kind >> 4, perl_cookie(body, words))))
		return STOP_DEPTH;
	return STOP_NONE;
}

static inline int pl_push(struct walk *w, u64 addr, u64 cop, u32 kind)
{
	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_PERL, 0, addr), perl_detail(cop, kind, 0, 0))
	               ? STOP_NONE
	               : STOP_DEPTH;
}

static inline void pl_take(struct walk_cursor *c, u64 oldcop)
{
	c->more[1] = oldcop;
	c->more[2] = (c->more[2] - 1) | PL_TOOK;
}

static inline int pl_sub(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c, u64 i, u32 type)
{
	bool format = (type & PERL_CX_KIND) == vm->kind_format, entered = !format && !pl_word(w, i, vm->cx_retop);
	u32 kind = format ? PERL_KIND_FORMAT : type & PERL_CX_SUB_RE ? PERL_KIND_PATTERN : PERL_KIND_SUB;
	u64 oldcop = pl_word(w, i, vm->cx_oldcop), cv = pl_word(w, i, format ? vm->cx_format_cv : vm->cx_cv);
	int stop = STOP_NONE;

	if (cv) /* none: it has returned, and is being freed */
		stop = pl_push_cv(w, vm, cv, c->more[1], kind | (entered ? pl_type(c) << 4 : 0));
	if (stop == STOP_DEPTH)
		return stop;
	pl_take(c, oldcop);
	if (entered && !(c->more[2] & PL_STACK))
		c->more[2] |= PL_PEEK;
	return stop;
}

static inline int pl_eval(struct walk *w, const struct perl_vm *vm, struct walk_cursor *c, u64 i, u32 type)
{
	u64 oldcop = pl_word(w, i, vm->cx_oldcop), name = pl_word(w, i, vm->cx_namesv), at = oldcop;
	bool entered = !pl_word(w, i, vm->cx_eval_retop);
	u32 kind = type & PERL_CX_TRY ? PERL_KIND_TRY : PERL_KIND_EVAL;

	if (type & PERL_CX_REAL) {
		kind = PERL_KIND_STRING;
	} else if (!(type & PERL_CX_BLOCK)) {
		kind = PERL_KIND_REQUIRE;
		at = name;
	}
	if (pl_push(w, at, c->more[1], kind))
		return STOP_DEPTH;
	pl_take(c, oldcop);
	if (entered && !(type & PERL_CX_BLOCK))
		c->more[2] |= PL_PEEK;
	return STOP_NONE;
}

/* At the end of a stack of contexts, which C code began. */
static inline int pl_stack_end(struct walk *w, struct walk_cursor *c)
{
	if (pl_type(c) != PERL_STACK_MAIN)
		return (c->more[2] & (PL_TOOK | PL_ALL)) == PL_TOOK ? PL_GROUP_DONE : perl_stack_next(w);
	c->at = PL_END;
	if (c->more[2] & PL_BOTTOM && pl_push(w, 0, c->more[1], PERL_KIND_MAIN))
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
		return (c->more[2] & (PL_PEEK | PL_ALL)) == PL_PEEK ? PL_GROUP_DONE : pl_stack_end(w, c);
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
		if (pl_push(w, pl_word(w, i, vm->cx_oldcop), c->more[1], PERL_KIND_SORT))
			return STOP_DEPTH;
		pl_take(c, pl_word(w, i, vm->cx_oldcop));
		return STOP_NONE;
	}
	if (kind == vm->kind_block && pl_left(c) == 1 && pl_type(c) == PERL_STACK_MAIN)
		c->more[2] |= PL_BOTTOM;
	pl_take(c, c->more[1]);
	return STOP_NONE;
}

/* Some contexts further. */
WALK_GLOBAL int perl_next(struct walk *w)
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
	for (i = 0; i < PL_CONTEXTS_A_LOOK && !stop; i++)
		stop = pl_next(w, vm, c);
	return stop;
}

WALK_GLOBAL int perl_group(struct walk *w)
{
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	for (i = 0; i < PL_CONTEXTS_A_STEP / PL_CONTEXTS_A_LOOK && !stop; i++)
		stop = perl_next(w);
	return stop;
}

/* Has this loop ended, and with it its context? It is the leaf, and has no op any more. */
static inline bool pl_has_ended(struct walk *w, const struct perl_vm *vm)
{
	u64 op;

	return w->leaf && !perl_interpreter(w) && walk_read(w, &op, sizeof(op), w->scratch[0] + vm->op) && !op;
}

/* Is the innermost context one that was just entered from C, from the statement that runs? */
static inline bool pl_is_entered(struct walk *w, const struct perl_vm *vm, const struct walk_cursor *c)
{
	int found = c->at != PL_END && pl_left(c) ? pl_context(w, vm, c) : -1;
	u64 i = (u64)found;
	u32 kind;

	if (found < 0)
		return false;
	kind = (u32)pl_word(w, i, 0) & PERL_CX_KIND;
	return pl_word(w, i, vm->cx_oldcop) == c->more[1] &&
	       ((kind == vm->kind_sub && !pl_word(w, i, vm->cx_retop)) ||
	               (kind == vm->kind_eval && !pl_word(w, i, vm->cx_eval_retop)));
}

/*
 * C code that keeps a context for many runs of a loop: between two of them the context is there, but runs nothing.
 * Takes it away. Nothing if a loop was passed, which took it.
 */
WALK_GLOBAL int perl_keeper(struct walk *w, u32 type)
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
	if (c->at != PL_END && !(c->more[2] & PL_RAN) && pl_type(c) == type) {
		if (pl_left(c) && !walk_read(w, &c->more[1], sizeof(u64), c->more[0] + vm->cx_oldcop))
			return STOP_VM_ABSENT;
		stop = perl_stack_next(w);
	}
	c->more[2] &= ~PL_RAN;
	return stop;
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

static inline int pl_skip_empty(struct walk *w, struct walk_cursor *c)
{
	int stop = STOP_NONE;
	u32 i;

	for (i = 0; i < PL_STACKS_A_STEP && !stop && c->at != PL_END && !pl_left(c) && pl_type(c) != PERL_STACK_MAIN;
	        i++)
		stop = perl_stack_next(w);
	return stop;
}

/* Begins with a native frame. PL_GROUP_DONE: no context is its own. */
WALK_GLOBAL int perl_begin(struct walk *w)
{
	const struct perl_vm *vm;
	struct walk_cursor *c;
	u32 part;
	int stop;

	WALK_CHECK(w);
	part = w->region.part;
	stop = perl_open(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	if (part == PERL_ENTER && ((c->more[2] & (PL_RAN | PL_XS)) || !pl_is_entered(w, vm, c))) {
		c->more[2] &= ~PL_XS;
		return PL_GROUP_DONE;
	}
	if (part == PERL_RUNOPS && pl_has_ended(w, vm))
		stop = PL_GROUP_DONE;
	if (c->more[2] & PL_SKIP)
		stop = PL_GROUP_DONE;
	c->more[2] = (c->more[2] & ~(PL_GROUP | PL_SKIP | PL_XS)) | PL_RAN;
	if (part == PERL_RUNOPS && !stop) {
		stop = pl_skip_empty(w, c);
		if (!stop && (pl_type(c) == PERL_STACK_SORT || pl_type(c) == PERL_STACK_MULTICALL) &&
		        perl_is_keepers(w))
			c->more[2] |= PL_STACK;
	}
	if (part == PERL_RUN && c->at != PL_END) {
		c->more[2] |= PL_ALL;
		if (!w->lost && pl_left(c))
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
	stop = perl_keeper(w, PERL_STACK_MULTICALL);
	vm = walk_arena(w, w->region.vm);
	c = vm ? pl_cursor(w, vm) : NULL;
	if (!c || stop)
		return stop ? stop : STOP_ARENA;
	c->more[2] |= PL_XS;
	WALK_BARRIER(reg);
	if (reg >= ARCH_NREGS || !walk_has(w, reg))
		return STOP_NONE;
	return pl_push_cv(w, vm, w->reg[reg], c->more[1], PERL_KIND_XS);
}

/* Out of the native frame, whose Perl frames were pushed, or not. */
static inline int pl_leave(struct walk *w, int stop)
{
	if (stop > 0 && !w->lost)
		w->lost = stop;
	return native_step(w, FRAME_VM);
}

static inline int pl_catch(struct walk *w)
{
	const struct perl_vm *vm = walk_arena(w, w->region.vm);
	struct walk_cursor *c = vm ? pl_cursor(w, vm) : NULL;

	if (!c)
		return STOP_ARENA;
	c->more[2] |= PL_SKIP;
	return STOP_NONE;
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
	if (part == PERL_PUSHING)
		return pl_leave(w, w->leaf ? pl_pushing(w) : STOP_NONE);
	if (part == PERL_SORT)
		return pl_leave(w, perl_keeper(w, PERL_STACK_SORT));
	if (part == PERL_REGEXEC)
		return pl_leave(w, perl_keeper(w, PERL_STACK_MULTICALL));
	if (part == PERL_CATCH)
		return pl_leave(w, pl_catch(w));
	stop = w->vm_state ? STOP_NONE : perl_begin(w);
	if (!stop)
		stop = perl_group(w);
	w->vm_state = !stop || stop == STOP_DEPTH;
	return w->vm_state ? stop : pl_leave(w, stop);
}
