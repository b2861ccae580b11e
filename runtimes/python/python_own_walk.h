/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Part of python_walk.c: with which thread state, and which Python frame, a native frame of the eval loop begins. */
#ifndef YRT_PYTHON_OWN_WALK_H
#define YRT_PYTHON_OWN_WALK_H

#include "python_frames.h"

#define PY_NOT_OURS   (-2) /* the native frame has not linked its frames yet, or not any more */
#define PY_EXHAUSTED  (-3) /* the thread state leads to no frame of this native frame: it is another interpreter's */
#define PY_STATES_MAX 128  /* thread states and interpreters that are looked at then */

/* Where this thread's thread state is pointed to from; 0: not known. */
static inline u64 py_slot(struct walk *w, const struct python_vm *vm)
{
	u64 at = w->thread_pointer;
	u32 key[2], i;

	if (!at)
		return 0;
	if (vm->slot || vm->nvia) {
		for (i = 0; i < PYTHON_VIA_MAX && i < vm->nvia; i++)
			if (!walk_read(w, &at, sizeof(at), at + vm->via[i]))
				return 0;
		if (!vm->by_key)
			return at + (u64)(s64)vm->slot;
		return walk_read(w, key, sizeof(key), vm->key) && key[0] && key[1] < PYTHON_TSS_VALUES
		               ? at + 8 * (u64)key[1]
		               : 0;
	}
	if (!vm->key || !walk_read(w, key, sizeof(key), vm->key) || !key[0] || key[1] >= PYTHON_TSS_KEYS)
		return 0;
	return w->thread_pointer + PYTHON_TSS_BLOCK + 16 * (u64)key[1] + 8;
}

/*
 * Up to 3.10 a thread's key leads to its first interpreter's state, even while it runs another one. But the GIL's
 * holder is known.
 */
static inline bool py_is_current(struct walk *w, const struct python_vm *vm, u64 *ts)
{
	u64 thread;

	return vm->current && w->thread_pointer && walk_read(w, ts, sizeof(*ts), vm->current) && *ts &&
	       walk_read(w, &thread, sizeof(thread), *ts + vm->ts_thread_id) && thread == w->thread_pointer;
}

/*
 * Starts on the frames of this thread, at the current one by its thread state. While a thread takes an interpreter down
 * it has no such state for a moment: its frames are then found by its states in other interpreters.
 */
WALK_GLOBAL int python_open(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 at, top = 0;
	bool current;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c)
		return STOP_VM_BROKEN;
	current = py_is_current(w, vm, &c->more[1]);
	at = current ? 0 : py_slot(w, vm);
	if (!current && !at)
		return STOP_VM_UNKNOWN;
	if (!current && !walk_read(w, &c->more[1], sizeof(c->more[1]), at))
		return STOP_VM_ABSENT;
	if (c->more[1] && !walk_read(w, &top, sizeof(top), c->more[1] + vm->ts_frame))
		return STOP_VM_ABSENT;
	c->at = top ? top : PYTHON_AT_END;
	if (vm->linkage == PYTHON_FRAME_OBJECT)
		c->more[0] = top && !current;
	return STOP_NONE;
}

/* The next frame to look at, of this thread's state at first. */
static inline int py_ready(struct walk *w, const struct walk_cursor *c)
{
	int stop = c->at ? STOP_NONE : python_open(w);

	return !stop && c->at == PYTHON_AT_END ? PY_EXHAUSTED : stop;
}

/*
 * Does this state, whose innermost frame is given, have any frames? In 3.15 a state begins with a frame that stands for
 * no function, which may be the only one.
 */
static inline bool py_has_frames(struct walk *w, const struct python_vm *vm, u64 frame)
{
	u64 previous;
	u8 owner;

	if (!frame || vm->linkage != PYTHON_NO_CFRAME)
		return frame;
	return !walk_read(w, &previous, sizeof(previous), frame + vm->f_previous) || previous ||
	       !walk_read(w, &owner, sizeof(owner), frame + vm->f_entry) || owner < PYTHON_OWNER_NONE;
}

/*
 * Looks at one thread state, or interpreter, of the lists. scratch[0] is an interpreter, scratch[1] the next of its
 * states (0: no more of them); both are advanced. STOP_NONE: it is this thread's and has frames, and the walk goes on
 * there. PY_EXHAUSTED: it is not. Otherwise the lists have ended.
 */
WALK_GLOBAL int python_other_state(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 *interp, *state, at, thread, frame;

	WALK_CHECK(w);
	interp = &w->scratch[0];
	state = &w->scratch[1];
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c)
		return STOP_VM_BROKEN;
	at = *state;
	if (!at)
		return walk_read(w, interp, 8, *interp + vm->interp_next) && *interp &&
		                       walk_read(w, state, 8, *interp + vm->interp_threads)
		               ? PY_EXHAUSTED
		               : STOP_VM_ABSENT;
	if (!walk_read(w, &thread, sizeof(thread), at + vm->ts_thread_id) ||
	        !walk_read(w, &frame, sizeof(frame), at + vm->ts_frame) || !walk_read(w, state, 8, at + vm->ts_next))
		return STOP_VM_ABSENT;
	if (thread != w->thread_pointer || at == c->more[1] || !py_has_frames(w, vm, frame))
		return PY_EXHAUSTED;
	c->at = frame;
	c->more[1] = at;
	return STOP_NONE;
}

/*
 * A thread that runs one interpreter within a call of another has a state in each. Goes on at the frames of the next
 * state that has any. The lists are long if there are many threads, but few threads get here.
 */
WALK_GLOBAL int python_other(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	int found = PY_EXHAUSTED;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c)
		return STOP_VM_BROKEN;
	if (!(vm->linkage == PYTHON_FRAME_OBJECT && c->more[0]) && vm->interpreters &&
	        walk_read(w, &w->scratch[0], 8, vm->interpreters) && w->scratch[0] &&
	        walk_read(w, &w->scratch[1], 8, w->scratch[0] + vm->interp_threads))
		for (i = 0; i < PY_STATES_MAX && found == PY_EXHAUSTED; i++)
			found = python_other_state(w);
	if (!found)
		return STOP_NONE;
	return c->more[1] ? STOP_VM_BROKEN : STOP_VM_ABSENT;
}

/* Begins with a native frame whose _PyCFrame leads to its Python frames. */
static inline int py_own_by_cframe(struct walk *w, const struct python_vm *vm, struct walk_cursor *c, u64 cfa)
{
	bool torn = w->region.part >= PYTHON_TORN;

	if (w->region.part != PYTHON_EVAL && !torn)
		return PY_NOT_OURS;
	c->more[0] = cfa - vm->entry_below;
	c->more[1] = torn && w->leaf;
	if (!walk_read(w, &c->at, sizeof(c->at), cfa - vm->cframe_below + vm->cf_frame))
		return STOP_STACK_ABSENT;
	return STOP_NONE;
}

static inline u64 py_entry_below(const struct walk *w, const struct python_vm *vm)
{
	u32 part = w->region.part;

	return part < PYTHON_INLINED ? vm->entry_below : vm->inlined_below[part % PYTHON_PLACES];
}

/*
 * The same without _PyCFrame. A native frame that is no longer linked has handed over to what its entry frame follows.
 */
static inline int py_own_by_thread(struct walk *w, const struct python_vm *vm, struct walk_cursor *c, u64 cfa)
{
	u64 outer;
	int stop;

	if (w->region.part == PYTHON_ENTER)
		return PY_NOT_OURS;
	c->more[0] = cfa - py_entry_below(w, vm);
	if (!w->leaf && !vm->calls_late)
		return py_ready(w, c);
	if (!walk_read(w, &outer, sizeof(outer), c->more[0] + vm->f_previous))
		return STOP_STACK_ABSENT;
	if (!outer)
		outer = PYTHON_AT_END;
	if (w->region.part == PYTHON_LINK) {
		(void)python_open(w); /* who awaits what is found by the thread state; the frames are without it */
		c->at = outer;
		return PY_NOT_OURS;
	}
	stop = c->at ? STOP_NONE : python_open(w);
	if (!stop && c->at == outer)
		return PY_NOT_OURS;
	return stop ? stop : py_ready(w, c);
}

/* Begins with a native frame that runs one frame object, if it has linked it and not yet handed over to its caller's.
 */
static inline int py_own_object(struct walk *w, const struct python_vm *vm, struct walk_cursor *c)
{
	return w->region.part == PYTHON_ENTER ? PY_NOT_OURS : py_ready(w, c);
}

/* Begins with a native frame. PY_NOT_OURS: no Python frame belongs to it. */
WALK_GLOBAL int python_own(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = py_cursor(w, vm);
	if (!c)
		return STOP_VM_BROKEN;
	if (vm->linkage == PYTHON_FRAME_OBJECT)
		return py_own_object(w, vm, c);
	stop = native_cfa(w);
	if (!stop && vm->linkage == PYTHON_NO_CFRAME)
		stop = py_own_by_thread(w, vm, c, w->scratch[0]);
	else if (!stop)
		stop = py_own_by_cframe(w, vm, c, w->scratch[0]);
	return stop;
}

#endif
