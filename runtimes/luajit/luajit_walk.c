/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Walks LuaJIT: for each native frame of the VM (its interpreter, or a trace) the Lua frames of one cframe, then the
 * native frame itself. This file finds the running function and the cframe; luajit_frames_walk.c goes down from there.
 * README.md describes how the two stacks are paired.
 */
#include "walk.h"
#include "luajit_frames.h"
#include "luajit_thread_walk.h"

#define LJ_EXITING_MAX  4 /* cframes that work on behalf of a trace exit */
#define LJ_CFRAME_BYTES 80
#define LJ_SPILL_MAX    192 /* candidates for the cframe below a trace's spill slots, 16 bytes each */
#define LJ_SPILL_GROUP  16  /* of them in one function, which the verifier checks once */

/* Makes the cursor of a lua_State the one in use. False: there are too many of them on this stack. */
static inline bool lj_select_cursor(struct walk *w, u64 l)
{
	u32 i = walk_cursor(w, l), j;

	for (j = 0; j < WALK_CURSORS && i == WALK_CURSORS; j++) {
		if (w->cursor[j].at == LUAJIT_AT_BOTTOM) {
			i = j;
			w->cursor[j].key = l;
			w->cursor[j].at = 0;
			w->cursor[j].more[0] = w->cursor[j].more[1] = 0;
		}
	}
	i = walk_launder(w, i);
	w->vm_state = i + 1;
	return i < WALK_CURSORS;
}

/*
 * A Lua stack that can not be read (it is being reallocated, say) ends there, but native frames do not depend on it:
 * the walk goes on without the frames of that lua_State.
 */
static inline int lj_lose(struct walk *w, int stop)
{
	if (stop != STOP_VM_ABSENT && stop != STOP_VM_BROKEN)
		return stop;
	w->lost = stop;
	if (w->vm_state && w->vm_state <= WALK_CURSORS)
		lj_cursor(w)->at = LUAJIT_AT_BOTTOM;
	return LUAJIT_FRAMES_DONE;
}

/* An address of the VM's in a register. */
static inline u64 lj_reg(const struct walk *w, const struct luajit_vm *vm, u32 reg)
{
	return vm->gc64 ? w->reg[reg] : (u32)w->reg[reg];
}

/*
 * The base of the running function. The interpreter keeps it in rdx, or in rbp while it calls a function that needs no
 * lua_State, else in L->base. LUAJIT_STANDS_NO_MORE: the function is about to return, and its frame is overwritten.
 */
LJ_ALWAYS_INLINE u64 lj_find_base(
        struct walk *w, const struct luajit_vm *vm, const struct lj_thread *t, u64 pc, int *standing)
{
	u64 rdx = lj_reg(w, vm, DWREG_RDX), rbp = lj_reg(w, vm, DWREG_RBP);
	bool live = walk_has(w, DWREG_RDX) && lj_in_stack(t, rdx);

	if (live && (*standing = luajit_accepts(w, rdx, pc)) &&
	        (*standing != LUAJIT_STANDS || !luajit_is_operand(w, rdx, pc, t->base)))
		return rdx;
	*standing = LUAJIT_STANDS_NO_MORE;
	if (live && luajit_returns(w, rdx, pc))
		return rdx;
	if (walk_has(w, DWREG_RBP) && lj_in_stack(t, rbp) && (*standing = luajit_accepts(w, rbp, pc)))
		return rbp;
	*standing = luajit_accepts(w, t->base, pc);
	if (*standing)
		return t->base;
	rdx = live ? rdx : t->base;
	*standing = luajit_stands(w, rdx) ? LUAJIT_STANDS_UNSURE : LUAJIT_STANDS_NO_MORE;
	return rdx;
}

/* The link of a function that is gone: still in rbx, or saved in the cframe. */
static inline u64 lj_find_link(struct walk *w, const struct luajit_vm *vm, u64 base, u64 saved)
{
	u64 rbx = lj_reg(w, vm, DWREG_RBX);

	if (w->region.part == LUAJIT_LEAVE) /* its type was compared with that of C by xor */
		rbx ^= LUAJIT_LINK_C;
	if (luajit_returns(w, base, rbx))
		return rbx;
	if (luajit_returns(w, base, saved))
		return saved;
	return (rbx & 3) && rbx >= LUAJIT_DELTA_MIN && rbx < LUAJIT_DELTA_MAX ? rbx : saved;
}

/* Pushes the running function, in cframe cf, and the one below where the link is still in rbx. */
static inline int lj_push_running(
        struct walk *w, const struct luajit_vm *vm, struct walk_cursor *c, const struct lj_thread *t, u64 cf)
{
	u64 pc = walk_has(w, DWREG_RBX) ? lj_reg(w, vm, DWREG_RBX) : 0, saved;
	int standing;

	if (!walk_stack(w, cf + (vm->cf_pc & ~7u), &saved))
		return STOP_STACK_ABSENT;
	saved = vm->gc64 ? saved : lj_half(saved, vm->cf_pc);
	if (w->leaf && w->region.part == LUAJIT_CALL && lj_in_stack(t, lj_reg(w, vm, DWREG_RDX))) {
		c->at = lj_reg(w, vm, DWREG_RDX) - 8;
		return luajit_below(w, cf, pc, 1);
	}
	c->at = lj_find_base(w, vm, t, pc, &standing) - 8;
	if (standing == LUAJIT_STANDS_NO_MORE)
		return luajit_below(w, cf, lj_find_link(w, vm, c->at + 8, saved), 0);
	if (standing == LUAJIT_STANDS_AT_PC)
		saved = pc;
	c->more[1] = LUAJIT_PENDING | (saved & LUAJIT_PC_MASK);
	return luajit_own(w, cf);
}

/*
 * Is a frame of C being made (its link is in rbx) or being dropped here, so that the outer cframe owns what runs? When
 * it is dropped, rbx goes from the distance to the outer base to its negative, then to that base itself.
 */
static inline bool lj_between_cframes(const struct walk *w, const struct luajit_vm *vm, struct lj_thread *t)
{
	u64 rbx = w->reg[DWREG_RBX], base;

	if (!walk_has(w, DWREG_RBX))
		return false;
	rbx = vm->gc64 ? rbx : (u64)(s64)(s32)rbx;
	base = rbx;
	if (w->region.part == LUAJIT_ENTER)
		return (rbx & 7) == LUAJIT_LINK_C || (rbx & 7) == LUAJIT_LINK_CP;
	if (w->region.part != LUAJIT_LEAVE || rbx & 3)
		return false;
	if (rbx < LUAJIT_DELTA_MAX)
		base = lj_reg(w, vm, DWREG_RDX) - (rbx & ~7ull);
	else if (rbx >> 63)
		base = -rbx;
	if (lj_in_stack(t, base))
		t->base = base;
	return true;
}

/*
 * What the VM itself is busy with, as a frame above the function that has to wait for it: only where it has called into
 * C, because the state is not always set back at once.
 */
WALK_GLOBAL int luajit_push_work(struct walk *w, const struct luajit_vm *vm, u64 g)
{
	s32 state;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	if (w->leaf || !walk_read(w, &state, sizeof(state), g + vm->g_vmstate))
		return STOP_NONE;
	state = ~state;
	if (state < LUAJIT_VMST_GC || state >= LUAJIT_VMST_MAX)
		return STOP_NONE;
	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, LUAJIT_WORK + state),
	               luajit_detail(LUAJIT_FAST, LUAJIT_NO_POS, state))
	               ? STOP_NONE
	               : STOP_DEPTH;
}

/* Starts on the frames of a lua_State at its running function; cf is the cframe that the native stack shows. */
WALK_GLOBAL int luajit_top(struct walk *w, u64 cf)
{
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	struct lj_thread t;
	u64 prev;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = lj_cursor(w);
	stop = lj_read_thread(w, vm, c->key, &t);
	if (!stop && !t.steady)
		stop = STOP_VM_BROKEN;
	if (!stop && w->ncursors == 1) {
		luajit_note(w, t.g, cf);
		stop = luajit_push_work(w, vm, t.g);
	}
	if (stop)
		return stop;
	if (t.cframe == cf && !lj_between_cframes(w, vm, &t))
		return lj_push_running(w, vm, c, &t, cf);
	c->at = t.base - 8;
	c->more[1] = LUAJIT_PENDING;
	if (t.cframe != cf)
		return luajit_own(w, t.cframe);
	if (!walk_stack(w, cf + vm->cf_prev, &prev))
		return STOP_STACK_ABSENT;
	return luajit_own(w, prev);
}

/* Is this the cframe of a running trace, of one that is left even now (with cframes of its own below) included? */
WALK_GLOBAL int luajit_is_cframe(struct walk *w, u64 cf)
{
	const struct luajit_vm *vm;
	struct lj_thread t;
	u64 word, l, base;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !walk_stack(w, cf + (vm->cf_l & ~7u), &word))
		return 0;
	l = lj_half(word, vm->cf_l);
	if (!l || l & 7 || lj_read_thread(w, vm, l, &t))
		return 0;
	for (i = 0; i < LJ_EXITING_MAX && t.cframe && t.cframe < cf; i++) {
		if (!walk_read(w, &t.cframe, sizeof(t.cframe), t.cframe + vm->cf_prev))
			return 0;
		t.cframe &= LUAJIT_CFRAME_MASK;
	}
	if (t.cframe != cf)
		return 0;
	return lj_read_running(w, vm, t.g, &word, &base) && word == l;
}

/* The first cframe of some candidates from cf on. 0: none of them is one. */
LUAJIT_SHARED u64 luajit_first_cframe(struct walk *w, u64 cf)
{
	WALK_CHECK(w);
	for (u32 i = 0; i < LJ_SPILL_GROUP; i++, cf += 16)
		if (luajit_is_cframe(w, cf))
			return cf;
	return 0;
}

/* Without GC64 no register of a trace leads anywhere: its cframe is looked for above its spill slots. */
static inline u64 lj_search_cframe(struct walk *w)
{
	u64 at = (w->reg[REG_SP] + 15) & ~15ull, cf = 0;

	for (u32 i = 0; i < LJ_SPILL_MAX && !cf; i += LJ_SPILL_GROUP)
		cf = luajit_first_cframe(w, at + i * 16ull);
	return cf;
}

/* Where the global state of a running trace is, 0 if unknown. */
static inline u64 lj_find_global(struct walk *w, const struct luajit_vm *vm)
{
	u64 cf, word, g;

	if (vm->gc64)
		return walk_has(w, DWREG_R14) ? w->reg[DWREG_R14] - vm->g2disp : 0;
	cf = lj_search_cframe(w);
	if (!cf || !walk_stack(w, cf + (vm->cf_l & ~7u), &word) ||
	        !walk_read(w, &g, sizeof(g), lj_half(word, vm->cf_l) + vm->l_glref))
		return 0;
	return (u32)g;
}

/* Pushes the VM and the trace itself. */
WALK_GLOBAL int luajit_push_mcode(struct walk *w, const struct luajit_vm *vm, u64 g)
{
	u64 pc, where, detail;
	s32 trace;
	u32 code;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	pc = w->reg[REG_PC];
	if (!walk_read(w, &code, sizeof(code), pc) || !walk_read(w, &trace, sizeof(trace), g + vm->g_vmstate))
		return false;
	trace = trace > 0 ? trace & 0xffff : 0;
	where = frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, FRAME_APPROX | (w->leaf ? 0 : FRAME_RETADDR), pc);
	detail = luajit_detail(LUAJIT_MCODE, trace, code) | LUAJIT_JIT;
	return walk_push(w, frame_where(FRAME_SCRIPT, RUNTIME_LUAJIT, 0, g),
	               luajit_detail(LUAJIT_FAST, LUAJIT_NO_POS, 0) | LUAJIT_JIT) &&
	       walk_push(w, where, detail);
}

/*
 * The lua_State of a trace that is being left: the handler keeps it in rbp while it calls C. cur_L is another one while
 * finalizers and handlers of VM events run, which have a lua_State of their own since November 2025.
 */
static inline bool lj_read_exited(struct walk *w, const struct luajit_vm *vm, u64 *l, struct lj_thread *ret)
{
	*l = lj_reg(w, vm, DWREG_RBP);
	return w->region.part == LUAJIT_EXIT && !w->leaf && walk_has(w, DWREG_RBP) && *l && !(*l & 7) &&
	       !lj_read_thread(w, vm, *l, ret) && ret->cframe >= w->reg[REG_SP];
}

/* The lua_State that runs on a trace, or ran on the one that is left; base: of the trace's function, if it runs. */
static inline bool lj_find_running(
        struct walk *w, const struct luajit_vm *vm, u64 *g, u64 *l, u64 *base, struct lj_thread *t)
{
	if (lj_read_exited(w, vm, l, t)) {
		u64 running;

		*g = t->g;
		return lj_read_running(w, vm, *g, &running, base);
	}
	*g = lj_find_global(w, vm);
	return *g && lj_read_running(w, vm, *g, l, base) && !lj_read_thread(w, vm, *l, t) && t->g == *g;
}

/*
 * Starts on the frames of a running trace: the global state leads to the lua_State and its cframe. The stack pointer
 * means nothing on a trace, so it is set to that cframe. False: this is not LuaJIT's code.
 */
WALK_GLOBAL int luajit_trace_top(struct walk *w)
{
	const struct luajit_vm *vm;
	struct walk_cursor *c;
	struct lj_thread t;
	u64 g, l, base, sp;
	bool on_trace;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return 0;
	if (!lj_find_running(w, vm, &g, &l, &base, &t))
		return 0;
	on_trace = walk_launder(w, w->region.part == LUAJIT_TRACE || w->region.part == LUAJIT_GAP);
	if (on_trace && t.steady && !lj_in_stack(&t, base))
		return 0;
	sp = w->reg[REG_SP];
	for (i = 0; i < LJ_EXITING_MAX && t.cframe && t.cframe < sp; i++) {
		if (!walk_read(w, &t.cframe, 8, t.cframe + vm->cf_prev))
			return 0;
		t.cframe &= LUAJIT_CFRAME_MASK;
	}
	if (t.cframe < sp || t.cframe & 7 || !lj_select_cursor(w, l))
		return 0;
	w->reg[REG_SP] = t.cframe;
	c = lj_cursor(w);
	if (c->at)
		return 1;
	if (w->ncursors == 1) {
		luajit_note(w, g, t.cframe);
		if (luajit_push_work(w, vm, g))
			return 0;
	}
	if (!t.steady) {
		lj_lose(w, STOP_VM_BROKEN);
		return 1;
	}
	if (on_trace && !luajit_push_mcode(w, vm, g))
		return 0;
	c->at = (lj_in_stack(&t, base) ? base : t.base) - 8;
	c->more[0] = t.cframe;
	c->more[1] = LUAJIT_PENDING | (lj_in_stack(&t, base) ? LUAJIT_ON_TRACE : 0);
	return 1;
}

/*
 * A native frame of the interpreter whose rsp leads to no lua_State: libgcc is about to land there after an error. It
 * has put the registers in place already, of the VM's state the cframe is known. If C caught the error, that one is a
 * little too far down.
 */
static inline bool lj_landing(struct walk *w)
{
	if (w->leaf)
		return false;
	w->ncursors = (w->vm_state - 1) & (WALK_CURSORS - 1);
	w->vm_state = 0;
	w->flags |= FRAME_GUESS;
	return luajit_trace_top(w);
}

static inline int lj_open_cframe(struct walk *w, const struct luajit_vm *vm, u64 cf)
{
	u64 l;
	int stop;

	if (!walk_stack(w, cf + (vm->cf_l & ~7u), &l))
		return STOP_STACK_ABSENT;
	l = vm->gc64 ? l : lj_half(l, vm->cf_l);
	if (!lj_select_cursor(w, l))
		return STOP_VM_BROKEN;
	if (lj_cursor(w)->at)
		return STOP_NONE;
	stop = luajit_top(w, cf);
	if ((stop == STOP_VM_ABSENT || stop == STOP_VM_BROKEN) && lj_landing(w))
		return STOP_NONE;
	return stop;
}

/* Pushes frames of a cframe, whose address is rsp + skip. */
WALK_GLOBAL int luajit_interpreter(struct walk *w, u32 skip)
{
	const struct luajit_vm *vm;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	if (!w->vm_state) {
		stop = lj_open_cframe(w, vm, w->reg[REG_SP] + skip);
		if (stop)
			return stop;
	}
	return luajit_frames(w, w->reg[REG_SP] + skip);
}

/* A trace runs in the cframe of the interpreter that started it, which saved the registers that traces use besides. */
static inline int lj_leave_trace(struct walk *w)
{
	const struct luajit_vm *vm = walk_arena(w, w->region.vm);
	u64 cf = w->reg[REG_SP], words[5];
	u64 where = frame_where(FRAME_NATIVE, RUNTIME_NATIVE, FRAME_VM | (w->leaf ? 0 : FRAME_RETADDR), w->reg[REG_PC]);

	if (!vm)
		return STOP_ARENA;
	if (!walk_push(w, where, w->region.module))
		return STOP_DEPTH;
	if (!walk_read(w, words, sizeof(words), cf + LJ_CFRAME_BYTES - sizeof(words)) ||
	        !walk_stack(w, cf + vm->cf_r13, &w->reg[DWREG_R13]) || !walk_stack(w, cf, &w->reg[DWREG_R12]))
		return STOP_STACK_ABSENT;
	w->reg[DWREG_R14] = words[0];
	w->reg[DWREG_R15] = words[1];
	w->reg[DWREG_RBX] = words[2];
	w->reg[DWREG_RBP] = words[3];
	w->reg[REG_PC] = words[4];
	w->reg[REG_SP] = cf + LJ_CFRAME_BYTES;
	w->valid = ARCH_SAVED_MASK | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	w->flags = 0;
	return STOP_NONE;
}

WALK_GLOBAL int luajit_trace(struct walk *w)
{
	int stop;

	WALK_CHECK(w);
	if (!w->vm_state && !luajit_trace_top(w)) {
		w->vm_state = 0;
		if (w->region.part == LUAJIT_GAP)
			return w->leaf ? STOP_NO_REGION : STOP_BAD_RETADDR;
		return native_step(w, 0);
	}
	stop = lj_lose(w, luajit_frames(w, w->reg[REG_SP]));
	if (stop != LUAJIT_FRAMES_DONE)
		return stop;
	w->vm_state = 0;
	return lj_leave_trace(w);
}

/* Helpers of the VM that the interpreter calls leave rdx alone: it still is the running function's base. */
static inline int lj_step_glue(struct walk *w)
{
	u32 rdx = w->leaf << DWREG_RDX;
	int stop = native_step(w, FRAME_VM);

	w->valid |= rdx;
	return stop;
}

WALK_STEP int luajit_step(struct walk *w)
{
	u32 skip = 0;
	int stop;

	WALK_CHECK(w);
	switch (w->region.part) {
	case LUAJIT_GLUE:
		return lj_step_glue(w);
	case LUAJIT_EXIT:
	case LUAJIT_TRACE:
	case LUAJIT_GAP:
		return luajit_trace(w);
	case LUAJIT_INTERP_8:
		skip = 8;
		break;
	case LUAJIT_INTERP_16:
		skip = 16;
		break;
	}
	stop = lj_lose(w, luajit_interpreter(w, skip));
	if (stop != LUAJIT_FRAMES_DONE)
		return stop;
	w->vm_state = 0;
	return w->reg[REG_SP] ? native_step(w, FRAME_VM) : STOP_ROOT_RUNTIME; /* 0: luajit_tasks.c */
}
