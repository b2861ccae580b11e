/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The Lua stack: from frame to frame by their links, and which cframe owns them (lj_frame.h of LuaJIT). luajit_walk.c
 * finds where to start.
 */
#include "walk.h"
#include "luajit_frames.h"

/* Is pc (behind the current instruction) in the bytecode of this prototype? */
static inline bool lj_pc_inside(struct walk *w, const struct luajit_vm *vm, u64 bytecode, u64 pc)
{
	u32 size;

	if (pc < bytecode || pc & 3 || !walk_read(w, &size, sizeof(size), bytecode - vm->proto_size + vm->proto_sizebc))
		return false;
	return (pc - bytecode) / 4 <= size;
}

/*
 * Does a frame stand at base, that of a function which runs at pc? For a Lua function pc must lie in it, or be its
 * link: a call or a return is under way then. Returns an enum luajit_standing.
 */
LUAJIT_SHARED int luajit_accepts(struct walk *w, u64 base, u64 pc)
{
	const struct luajit_vm *vm;
	u64 *fn, slot, link;

	WALK_CHECK(w);
	fn = w->scratch;
	vm = walk_arena(w, w->region.vm);
	if (!vm || base & 7 || !lj_read_frame(w, vm, base - 8, &slot, &link))
		return 0;
	if (!lj_may_be_function(vm, slot) || !walk_read(w, fn, LJ_OBJECT_BYTES, slot & LJ_GC_POINTER))
		return 0;
	if (lj_byte_at(fn, vm->l_gct) != LJ_GCT_FUNC)
		return 0;
	if (lj_byte_at(fn, vm->fn_ffid)) /* builtins put results where their link was, too */
		return lj_is_link(vm, link) ? LUAJIT_STANDS : LUAJIT_STANDS_UNSURE;
	if (lj_pc_inside(w, vm, lj_ref_at(vm, fn, vm->fn_pc), pc))
		return LUAJIT_STANDS_AT_PC;
	return link == pc ? LUAJIT_STANDS : LUAJIT_STANDS_UNSURE;
}

/*
 * Is it no base but an operand's address? Slow paths (vm_meta.*: comparisons, indexing) have that in rdx, and behind it
 * may be what an earlier call of a builtin left. While a builtin runs pc is its link; here pc is in the function of
 * L->base, which these paths have stored before.
 */
LUAJIT_SHARED int luajit_is_operand(struct walk *w, u64 base, u64 pc, u64 lbase)
{
	const struct luajit_vm *vm;
	u64 slot, link;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || lbase >= base || !lj_read_frame(w, vm, base - 8, &slot, &link))
		return 0;
	return !(link & 3) && link != pc && luajit_accepts(w, lbase, pc) == LUAJIT_STANDS_AT_PC;
}

/* Is pc where a function whose base was this one will return to? The call before it says how far down its caller is.
 */
LUAJIT_SHARED int luajit_returns(struct walk *w, u64 base, u64 pc)
{
	const struct luajit_vm *vm;
	u32 call;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || pc & 3 || !walk_read(w, &call, sizeof(call), pc - 4))
		return 0;
	base -= 8 * (lj_frame_words(vm) + (u64)(call >> 8 & 0xff));
	return luajit_accepts(w, base, pc) == LUAJIT_STANDS_AT_PC;
}

/* Does a frame stand at base still? Results of a function go where it stood, before it returns. */
LUAJIT_SHARED int luajit_stands(struct walk *w, u64 base)
{
	const struct luajit_vm *vm;
	u64 slot, link;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !lj_read_frame(w, vm, base - 8, &slot, &link))
		return 0;
	if (vm->gc64)
		return slot >> LJ_TAG_SHIFT == LJ_TAG_THREAD || (lj_may_be_function(vm, slot) && lj_is_link(vm, link));
	if (link == LJ_LINK_BOTTOM32)
		return 1;
	return lj_is_link(vm, link) && walk_read(w, w->scratch, LJ_OBJECT_BYTES, slot) &&
	       lj_byte_at(w->scratch, vm->l_gct) == LJ_GCT_FUNC;
}

struct lj_position {
	u64 pc;          /* behind the current instruction; 0: unknown */
	u32 instruction; /* the current one; 0: to be read, after a check that pc makes sense */
};

/* What is known of the function that was pushed last, and of the last call: recursion asks for them again and again. */
struct lj_function {
	u64 slot; /* its value on the Lua stack; 0: nothing is known */
	u64 code; /* bytecode, or code of a C function */
	u32 ffid;
	u32 call; /* the instruction before link */
	u64 link; /* 0: no call is known */
};

static inline int lj_read_function(struct walk *w, const struct luajit_vm *vm, u64 slot, struct lj_function *f)
{
	u64 *fn = w->scratch;

	if (!walk_read(w, fn, LJ_OBJECT_BYTES, slot & LJ_GC_POINTER))
		return STOP_VM_ABSENT;
	if (lj_byte_at(fn, vm->l_gct) != LJ_GCT_FUNC)
		return STOP_VM_BROKEN;
	f->slot = slot;
	f->ffid = lj_byte_at(fn, vm->fn_ffid);
	f->code = f->ffid ? lj_word_at(fn, vm->fn_f) : lj_ref_at(vm, fn, vm->fn_pc);
	return STOP_NONE;
}

static inline int lj_push_native(struct walk *w, const struct lj_function *f)
{
	u64 addr = f->ffid == LJ_FFID_C ? f->code : f->ffid;
	u64 detail = luajit_detail(f->ffid == LJ_FFID_C ? LUAJIT_C : LUAJIT_FAST, LUAJIT_NO_POS, f->ffid);

	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, addr), detail) ? STOP_NONE : STOP_DEPTH;
}

/* Pushes the frame at `at`. Thread objects stand where no function is: at the bottom, in errors. */
LJ_ALWAYS_INLINE int lj_push_frame(
        struct walk *w, const struct luajit_vm *vm, u64 at, struct lj_position p, u64 jit, struct lj_function *f)
{
	u64 slot, link, where, detail;
	u32 pos = LUAJIT_NO_POS;
	int stop;

	if (!lj_read_frame(w, vm, at, &slot, &link))
		return STOP_VM_ABSENT;
	if (slot != f->slot) {
		if (vm->gc64 ? slot >> LJ_TAG_SHIFT == LJ_TAG_THREAD : link == LJ_LINK_BOTTOM32)
			return STOP_NONE;
		if (!lj_may_be_function(vm, slot))
			return STOP_VM_BROKEN;
		stop = lj_read_function(w, vm, slot, f);
		if (stop)
			return stop;
	}
	if (f->ffid)
		return lj_push_native(w, f);
	if (p.pc && !p.instruction && !lj_pc_inside(w, vm, f->code, p.pc))
		p.pc = 0;
	if (p.pc > f->code)
		pos = (u32)((p.pc - f->code) / 4 - 1) & LUAJIT_NO_POS;
	if (!p.instruction || pos == LUAJIT_NO_POS) {
		if (!walk_read(w, &p.instruction, 4, f->code + (pos == LUAJIT_NO_POS ? 0 : pos) * 4ull))
			return STOP_VM_ABSENT;
	}
	detail = luajit_detail(LUAJIT_LUA, pos, luajit_cookie(vm->bc_patched, p.instruction)) | jit;
	where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, jit ? FRAME_APPROX : 0, f->code - vm->proto_size);
	return walk_push(w, where, detail) ? STOP_NONE : STOP_DEPTH;
}

/*
 * The cursor's frame belongs to cframe cf, or to one below if cf has no Lua frames (a negative nres gives how high the
 * stack was when it was made). A frame that is LUAJIT_PENDING gets the pc that the cframe has saved.
 */
LUAJIT_SHARED int luajit_own(struct walk *w, u64 cf)
{
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	u64 *words, stack;
	s32 nres;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lj_cursor(w);
	words = w->scratch;
	for (i = 0; i < LJ_UNLINKED_MAX; i++) {
		cf &= LUAJIT_CFRAME_MASK;
		c->more[0] = cf;
		if (!cf) {
			c->at = LUAJIT_AT_BOTTOM;
			return STOP_NONE;
		}
		if (!walk_read(w, words, LJ_OBJECT_BYTES, cf))
			return STOP_STACK_ABSENT;
		if ((c->more[1] & LUAJIT_PENDING) && !(c->more[1] & LUAJIT_PC_MASK))
			c->more[1] = LUAJIT_PENDING | (lj_ref_at(vm, words, vm->cf_pc) & LUAJIT_PC_MASK);
		nres = (s32)(lj_word_at(words, vm->cf_nres) >> (vm->cf_nres & 4) * 8);
		if (nres >= 0)
			return STOP_NONE;
		if (!walk_read(w, &stack, 8, c->key + vm->l_stack))
			return STOP_VM_ABSENT;
		stack = vm->gc64 ? stack : (u32)stack;
		if (c->at >= stack - (s64)nres)
			return STOP_NONE;
		if (c->more[1] & LUAJIT_PENDING)
			c->more[1] = LUAJIT_PENDING;
		cf = lj_word_at(words, vm->cf_prev);
	}
	return STOP_VM_BROKEN;
}

/* To the frame that the cursor's cframe was entered from: the cframe below owns it. */
LJ_ALWAYS_INLINE int lj_follow_c(struct walk *w, const struct luajit_vm *vm, struct walk_cursor *c)
{
	u64 prev;

	if (!c->more[0]) { /* a coroutine that has yielded: luajit_tasks.c */
		c->at = LUAJIT_AT_BOTTOM;
		return STOP_NONE;
	}
	if (!walk_read(w, &prev, sizeof(prev), c->more[0] + vm->cf_prev))
		return STOP_STACK_ABSENT;
	c->more[1] = LUAJIT_PENDING;
	return luajit_own(w, prev);
}

/* Follows a link down to the frame below. LJ_FRAMES_PUSH: that is to be pushed, if it belongs to the right cframe. */
LJ_ALWAYS_INLINE int lj_follow(struct walk *w, const struct luajit_vm *vm, struct walk_cursor *c, u64 link,
        struct lj_position *p, struct lj_function *f)
{
	u64 at = c->at, delta = link & ~7ull, cont = 0;

	if ((link & 3) == LUAJIT_LINK_LUA) {
		if ((!link || link != f->link) && !walk_read(w, &f->call, sizeof(f->call), link - 4))
			return STOP_VM_ABSENT;
		f->link = link;
		p->instruction = f->call;
		delta = 8 * (lj_frame_words(vm) + (u64)(p->instruction >> 8 & 0xff));
		p->pc = link;
	} else if (delta < LUAJIT_DELTA_MIN || delta > LUAJIT_DELTA_MAX) {
		return STOP_VM_BROKEN;
	}
	c->at = at - delta;
	switch (link & 7) {
	case LUAJIT_LINK_C:
	case LUAJIT_LINK_CP:
		cont = LJ_CONT_FFI_CALLBACK;
		break;
	case LUAJIT_LINK_VARG: /* the same function again */
		return STOP_NONE;
	case LUAJIT_LINK_CONT:
		if (!lj_read_frame(w, vm, at - 8 * lj_frame_words(vm), &cont, &p->pc))
			return STOP_VM_ABSENT;
		break;
	}
	return cont == LJ_CONT_FFI_CALLBACK ? lj_follow_c(w, vm, c) : LJ_FRAMES_PUSH;
}

/*
 * One frame further. LUAJIT_FRAMES_DONE: all frames of cframe cf were pushed. Out of line, so that the verifier looks
 * at one frame and not at all paths through several.
 */
LUAJIT_SHARED int luajit_next_frame(struct walk *w, struct lj_function *f, u64 cf)
{
	struct lj_position p = {};
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	u64 link, jit = 0;
	int stop;

	WALK_CHECK(w);
	WALK_CHECK(f);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lj_cursor(w);
	if (c->at == LUAJIT_AT_BOTTOM)
		return luajit_waiting(w, cf);
	if (c->more[0] > cf)
		return LUAJIT_FRAMES_DONE;
	if (c->more[1] & LUAJIT_PENDING) {
		p.pc = c->more[1] & LUAJIT_PC_MASK;
		jit = c->more[1] & LUAJIT_ON_TRACE ? LUAJIT_JIT : 0;
		c->more[1] = 0;
	} else {
		if (!walk_vm(w, c->at, &link))
			return STOP_VM_ABSENT;
		link = vm->gc64 ? link : link >> 32;
		if (link == (vm->gc64 ? LJ_LINK_BOTTOM : LJ_LINK_BOTTOM32)) {
			c->at = LUAJIT_AT_BOTTOM;
			return STOP_NONE;
		}
		stop = lj_follow(w, vm, c, link, &p, f);
		if (stop != LJ_FRAMES_PUSH)
			return stop;
	}
	return c->more[0] == cf ? lj_push_frame(w, vm, c->at, p, jit, f) : STOP_NONE;
}

/* Pushes some frames of cframe cf. LUAJIT_FRAMES_DONE when there are no more. */
LUAJIT_SHARED int luajit_frames(struct walk *w, u64 cf)
{
	struct lj_function f = {};
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	for (i = 0; i < LJ_FRAMES_A_STEP && !stop; i++)
		stop = luajit_next_frame(w, &f, cf);
	return stop;
}

/*
 * Goes on below a frame whose link is not on the stack (any more). running: that frame itself is to be pushed first.
 */
LUAJIT_SHARED int luajit_below(struct walk *w, u64 cf, u64 link, u32 running)
{
	struct lj_function f = {};
	struct lj_position p = {};
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lj_cursor(w);
	c->more[0] = cf;
	stop = running ? lj_push_frame(w, vm, c->at, p, 0, &f) : STOP_NONE;
	if (!stop)
		stop = lj_follow(w, vm, c, link, &p, &f);
	if (stop != LJ_FRAMES_PUSH)
		return stop;
	return c->more[0] == cf ? lj_push_frame(w, vm, c->at, p, 0, &f) : STOP_NONE;
}
