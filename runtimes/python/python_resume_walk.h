/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Part of python_walk.c: where a lost walk resumes, by the thread state. */
#ifndef YRT_PYTHON_RESUME_WALK_H
#define YRT_PYTHON_RESUME_WALK_H

#include "python_frames.h"

#define PY_LINKS_A_SEEK 16 /* looked at to find where a walk that was lost goes on */
#define PY_SEEKS_MAX    128
#define PY_STACK_MAX    (64ull << 20) /* a native frame so far above the stack pointer is not on the same stack */

/*
 * The lowest _PyCFrame, or entry frame, of this thread on the native stack above the stack pointer; 0 if not found.
 * Those below belong to what was walked already. Follows some links; the place to go on from is in scratch[0], at first
 * 0.
 */
WALK_GLOBAL int python_seek(struct walk *w)
{
	const struct python_vm *vm;
	u64 at, link, entry = 0;
	u32 i, always = PYTHON_OWNER_NONE; /* each of them counts */
	u8 owner;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	at = w->scratch[0];
	link = vm->cf_frame + 8; /* _PyCFrame.previous lies behind current_frame */
	if (vm->linkage == PYTHON_NO_CFRAME) {
		link = vm->f_previous;
		entry = vm->f_entry;
		always = 0;
	}
	always = walk_launder(w, always);
	for (i = 0; i < PY_LINKS_A_SEEK; i++) {
		if (!at || at == PYTHON_AT_END)
			return STOP_VM_UNKNOWN;
		w->scratch[0] = at;
		if (!walk_read(w, &owner, sizeof(owner), at + entry))
			return STOP_VM_ABSENT;
		if ((owner | always) >= PYTHON_OWNER_NONE && at - w->reg[REG_SP] < PY_STACK_MAX)
			return STOP_NONE;
		if (!walk_read(w, &at, sizeof(at), at + link))
			return STOP_VM_ABSENT;
	}
	w->scratch[0] = at;
	return PY_EXHAUSTED;
}

/* Where this thread's records of its native frames begin, to scratch[0]. */
WALK_GLOBAL int python_innermost(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 at;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c || !vm->resume_pc)
		return STOP_VM_UNKNOWN;
	if (vm->linkage == PYTHON_NO_CFRAME) {
		stop = c->at ? STOP_NONE : python_open(w);
		w->scratch[0] = c->at;
		return stop;
	}
	at = py_slot(w, vm);
	return at && walk_read(w, &at, sizeof(at), at) && at && walk_read(w, w->scratch, 8, at + vm->ts_frame)
	               ? STOP_NONE
	               : STOP_VM_UNKNOWN;
}

/*
 * If nothing shows where the loop's native frames are, the thread state still has its Python frames: the walk goes on
 * in a region of its own, which has no code, with the frames that no native frame was found for.
 */
WALK_GLOBAL int python_begin_chain(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c || (vm->linkage != PYTHON_FRAME_OBJECT && vm->linkage != PYTHON_NO_CFRAME))
		return STOP_VM_UNKNOWN;
	stop = c->at ? STOP_NONE : python_open(w);
	if (stop || c->at == PYTHON_AT_END)
		return STOP_VM_UNKNOWN;
	c->more[0] = 0;
	w->region.start = 0;
	w->region.end = ~0ull;
	w->region.runtime = RUNTIME_PYTHON;
	w->region.part = PYTHON_CHAIN;
	w->reg[REG_PC] = PYTHON_NO_CODE;
	w->valid = 1u << REG_SP | 1u << REG_PC;
	return STOP_NONE;
}

static inline int py_push_gap(struct walk *w)
{
	return walk_push(w, frame_where(FRAME_GAP, RUNTIME_NATIVE, 0, 0), STOP_RESUMED) ? STOP_NONE : STOP_DEPTH;
}

/*
 * One frame further, by the thread state alone. Entry frames show that there are native ones. Up to 3.10 nothing does,
 * but at the end there are some.
 */
WALK_GLOBAL int python_chain_one(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c)
		return STOP_VM_BROKEN;
	stop = vm->linkage == PYTHON_FRAME_OBJECT ? python_object(w) : python_one(w, vm, c);
	if (stop > 0)
		return stop;
	if (stop == PY_EXHAUSTED || c->at == PYTHON_AT_END)
		stop = py_push_gap(w);
	else
		stop = STOP_NONE;
	return !stop && c->at == PYTHON_AT_END ? STOP_RESUMED : stop;
}

WALK_GLOBAL int python_chain(struct walk *w)
{
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	for (i = 0; i < PY_FRAMES_A_STEP && !stop; i++)
		stop = python_chain_one(w);
	return stop;
}

/*
 * Goes to the native frame of the loop that the thread state leads to: the place of its frame gives its CFA, and one
 * rule holds where everything is linked.
 */
WALK_STEP int python_resume(struct walk *w)
{
	const struct python_vm *vm;
	u64 cfa;
	int stop;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !vm->resume_pc)
		return python_begin_chain(w);
	stop = python_innermost(w);
	if (stop)
		return stop;
	stop = PY_EXHAUSTED;
	for (i = 0; i < PY_SEEKS_MAX && stop == PY_EXHAUSTED; i++)
		stop = python_seek(w);
	vm = walk_arena(w, w->region.vm);
	if (stop || !vm)
		return STOP_VM_UNKNOWN;
	cfa = w->scratch[0] + (vm->linkage == PYTHON_NO_CFRAME ? vm->entry_below : vm->cframe_below);
	w->valid = 1u << REG_SP | 1u << REG_PC;
	w->reg[REG_PC] = vm->resume_pc;
	if (vm->resume_reg == REG_FP) {
		w->reg[REG_FP] = cfa - vm->resume_off;
		w->valid |= 1u << REG_FP;
	} else {
		w->reg[REG_SP] = cfa - vm->resume_off;
	}
	return STOP_NONE;
}

#endif
