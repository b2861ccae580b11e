/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* From a native frame of the eval loop to the Python frames that it runs. */
#include "python_frames.h"

#define PY_FRAMES_A_STEP 32
#define PY_FRAMES_A_LOOK 4    /* at the configuration */
#define PY_FRAMES_DONE   (-1) /* besides stop reasons: all frames of the native frame were pushed */
#define PY_NOT_OURS      (-2) /* the native frame has not linked its frames yet, or not any more */
#define PY_EXHAUSTED     (-3) /* the thread state leads to no frame of this native frame: it is another interpreter's */
#define PY_SWITCHING     0x67726e6cu /* vm_mark: greenlet's module was called by what follows */
#define PY_STATES_MAX    128         /* thread states and interpreters that are looked at then */
#define PY_LINKS_A_SEEK  16          /* looked at to find where a walk that was lost goes on */
#define PY_SEEKS_MAX     128
#define PY_STACK_MAX     (64ull << 20) /* a native frame so far above the stack pointer is not on the same stack */
#define PY_NEAR          (16u << 10)   /* a frame so far below the window is on the same data stack */

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

/* Up to 3.10 a thread's key leads to its first interpreter's state even while it runs another's; the GIL's holder is
 * known. */
static inline bool py_is_current(struct walk *w, const struct python_vm *vm, u64 *ts)
{
	u64 thread;

	return vm->current && w->thread_pointer && walk_read(w, ts, sizeof(*ts), vm->current) && *ts &&
	       walk_read(w, &thread, sizeof(thread), *ts + vm->ts_thread_id) && thread == w->thread_pointer;
}

/*
 * Starts on the frames of this thread, at what its thread state says is the current one. While a thread takes an
 * interpreter down it has no state for a moment: those that it has in others have its frames.
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

/* Does this state, that frame is the innermost of, have any? 3.15's begins with one that stands for no function, and is
 * the only one. */
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
 * Looks at one thread state, or interpreter, of the lists: scratch[0] is an interpreter, scratch[1] the next of its
 * states (0: no more of them), and both move on. If it is this thread's and has frames the walk goes on there:
 * STOP_NONE. PY_EXHAUSTED: it is not. Else the lists ended.
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
 * A thread that runs one interpreter within a call of another has a state in each. Goes on at the frame of the next one
 * that has any: the lists are long where threads are many, but few threads get here.
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

/* The same without _PyCFrame. A native frame that is not linked any more has handed over to what its entry frame
 * follows. */
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

/* The one frame object of a native frame. */
WALK_GLOBAL int python_object(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 *words, code, pos;
	u32 lasti;
	int stop;

	WALK_CHECK(w);
	words = w->scratch;
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = py_cursor(w, vm);
	if (!c)
		return STOP_VM_BROKEN;
	if (!walk_read(w, words, PYTHON_OBJECT_BYTES, c->at + vm->ob_type))
		return STOP_VM_ABSENT;
	if (words[0] != vm->frame_type)
		return STOP_VM_BROKEN;
	code = py_word_at(words, vm->f_code - vm->ob_type);
	lasti = py_half_at(words, vm->f_instr - vm->ob_type);
	c->at = py_word_at(words, vm->f_previous - vm->ob_type);
	if (!c->at)
		c->at = PYTHON_AT_END;
	pos = vm->lasti_bytes == 2 ? lasti / 2 : lasti;
	if (lasti >> 31) /* not begun */
		pos = PYTHON_NO_POS;
	stop = py_push(w, vm, code, pos);
	return stop ? stop : PY_FRAMES_DONE;
}

/* Where a thread's own bytecode of a code object begins, in scratch[0]: in an array, behind its length. 0: not known.
 */
WALK_GLOBAL int python_tlbc(struct walk *w, u64 code, u64 index)
{
	const struct python_vm *vm;
	u64 array;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	if (!walk_read(w, &array, sizeof(array), code + vm->co_tlbc) ||
	        !walk_read(w, w->scratch, sizeof(u64), array + 8 + 8 * index))
		w->scratch[0] = 0;
	return STOP_NONE;
}

static inline u64 py_register(const struct walk *w, u32 reg)
{
	WALK_BARRIER(reg);
	return reg < ARCH_NREGS ? w->reg[reg] : 0;
}

/* Is all of the frame at `at` in the window? Then *ret is its first word. */
static inline bool py_in_window(const struct walk *w, u64 at, u64 *ret)
{
	u64 offset = at - w->vm.start;

	if (at & 7 || offset >= WALK_WINDOW || offset + PYTHON_FRAME_BYTES > w->vm.len)
		return false;
	*ret = offset / 8;
	return true;
}

/* Fills the window so that it ends with the frame at `at`: those that called it lie below. Clipped at its page if that
 * fails. */
static inline bool py_window_load(struct walk *w, u64 at, u64 *ret)
{
	u64 end = at + PYTHON_FRAME_BYTES, page = at & ~(u64)(WALK_PAGE - 1);
	u32 len = PY_WINDOW;

	w->vm.len = 0;
	w->vm.start = end - PY_WINDOW;
	if (!walk_fill(w, w->vm.word, PY_WINDOW, w->vm.start)) {
		len = (u32)(end - page) & (PY_WINDOW - 8);
		w->vm.start = page;
		if (end - page >= PY_WINDOW || !walk_fill(w, w->vm.word, len, page))
			return false;
	}
	w->vm.len = len;
	return py_in_window(w, at, ret);
}

/*
 * Reads the frame at `at`. Returns at which word of the window it is then; -1: it is not readable. Frames of functions
 * lie one below the other on a data stack, those of generators each in its generator: a frame that is not near the
 * window is read by itself, and if it is a function's the next one is looked for below it.
 */
WALK_GLOBAL int python_load(struct walk *w, u64 at, u32 owner)
{
	u64 i;

	WALK_CHECK(w);
	if (w->vm.start - at < PY_NEAR && py_window_load(w, at, &i))
		return (int)i;
	if (!walk_read(w, &w->vm.word[PY_ALONE], PYTHON_FRAME_BYTES, at))
		return -1;
	if (w->vm.len > PY_WINDOW)
		w->vm.len = 0;
	if (!py_frame_byte(w, PY_ALONE, owner)) {
		w->vm.start = at;
		w->vm.len = 0;
	}
	return PY_ALONE;
}

/* The entry frame of this native frame, where it must be: on the native stack, in the window over that. Goes on to what
 * it follows. */
static inline bool py_entry(struct walk *w, const struct python_vm *vm, struct walk_cursor *c)
{
	u64 word, previous;

	if (c->more[1] && vm->linkage != PYTHON_NO_CFRAME)
		return false;
	if (!walk_stack(w, c->at + (vm->f_entry & ~7u), &word) ||
	        (u8)(word >> (vm->f_entry & 7) * 8) < PYTHON_OWNER_NONE ||
	        !walk_stack(w, c->at + vm->f_previous, &previous))
		return false;
	c->at = previous ? previous : PYTHON_AT_END;
	return true;
}

/*
 * Greenlet keeps the link that it took from a frame in the frame object that it made for it
 * (Greenlet::expose_frames()): is that the entry frame of this native frame? Of frames the word before the instruction
 * points to that object.
 */
WALK_GLOBAL int python_exposed(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 object;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	c = vm ? py_cursor(w, vm) : NULL;
	if (!c || !walk_read(w, &object, sizeof(object), c->more[2] + vm->f_instr - 8) || !object ||
	        !walk_read(w, w->scratch, PYTHON_OBJECT_BYTES, object))
		return 0;
	for (i = 0; i < PYTHON_OBJECT_BYTES / 8; i++)
		if (w->scratch[i] == c->more[0])
			return 1;
	return 0;
}

/*
 * While greenlet switches, its frames' links leave entry frames out, from 3.12 on (Greenlet::expose_frames() of
 * greenlet 3). Is what the last frame leads to the one that the entry frame of this native frame follows? Where the
 * thread state leads to the frames, not the native frame itself, they may be another greenlet's for a moment, and an
 * end of both says nothing: then the link that was taken tells.
 */
static inline bool py_is_exposed(struct walk *w, const struct python_vm *vm, const struct walk_cursor *c)
{
	u64 previous;

	if (vm->linkage == PYTHON_ENTRY_FLAG || !walk_stack(w, c->more[0] + vm->f_previous, &previous))
		return false;
	if (previous)
		return c->at == previous;
	return c->at == PYTHON_AT_END && (vm->linkage == PYTHON_ENTRY_FRAME || python_exposed(w));
}

/* One frame further. PY_FRAMES_DONE: it was the last one of this native frame. vm, c: those of w. */
WALK_GLOBAL int python_one(struct walk *w, const struct python_vm *vm, struct walk_cursor *c)
{
	u64 code, instr, at, i, tlbc;
	int found, stop;
	bool last;
	u8 entry;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	at = c->at;
	if (at == c->more[0] && vm->linkage != PYTHON_ENTRY_FLAG && py_entry(w, vm, c))
		return PY_FRAMES_DONE;
	if (!py_in_window(w, at, &i)) {
		found = python_load(w, at, vm->linkage == PYTHON_ENTRY_FLAG ? vm->f_entry + 1 : vm->f_entry);
		if (found < 0)
			return STOP_VM_ABSENT;
		i = (u64)found;
	}
	c->more[2] = at;
	entry = py_frame_byte(w, i, vm->f_entry);
	last = vm->linkage == PYTHON_ENTRY_FLAG ? entry : entry >= PYTHON_OWNER_NONE;
	code = py_frame_word(w, i, vm->f_code) & ~7ull;
	instr = py_frame_word(w, i, vm->f_instr);
	tlbc = vm->co_tlbc ? py_frame_half(w, i, vm->f_tlbc) : 0;
	c->at = py_frame_word(w, i, vm->f_previous);
	if (vm->linkage != PYTHON_NO_CFRAME && c->more[1]) {
		c->at = py_register(w, (u32)w->region.part - PYTHON_TORN);
		c->more[1] = 0;
	}
	if (!c->at)
		c->at = PYTHON_AT_END;
	if (last && vm->linkage != PYTHON_ENTRY_FLAG)
		return at == c->more[0]                  ? PY_FRAMES_DONE
		       : vm->linkage == PYTHON_NO_CFRAME ? PY_EXHAUSTED
		                                         : STOP_VM_BROKEN;
	at = code + vm->bytecode;
	if (tlbc) {
		stop = python_tlbc(w, code, tlbc);
		if (stop)
			return stop;
		at = w->scratch[0];
	}
	stop = py_push(w, vm, code, (instr - at) / 2);
	if (stop)
		return stop;
	if (last || (w->vm_mark == PY_SWITCHING && py_is_exposed(w, vm, c)))
		return PY_FRAMES_DONE;
	return c->at == PYTHON_AT_END ? STOP_VM_BROKEN : STOP_NONE;
}

/* Some frames further. */
WALK_GLOBAL int python_next(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	if (vm->linkage == PYTHON_FRAME_OBJECT)
		return python_object(w);
	c = py_cursor(w, vm);
	if (!c)
		return STOP_VM_BROKEN;
	for (i = 0; i < PY_FRAMES_A_LOOK && !stop; i++)
		stop = python_one(w, vm, c);
	return stop;
}

WALK_GLOBAL int python_frames(struct walk *w)
{
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	for (i = 0; i < PY_FRAMES_A_STEP / PY_FRAMES_A_LOOK && !stop; i++)
		stop = python_next(w);
	return stop;
}

/* Is this thread the one that holds the lock? The state that took it last has its pthread_self(), the thread pointer.
 */
static inline bool py_holds(struct walk *w, const struct python_vm *vm, u64 gil)
{
	u64 lock[2], thread;

	return walk_read(w, lock, sizeof(lock), gil + PYTHON_GIL_HOLDER) && (u32)lock[1] == 1 && lock[0] &&
	       walk_read(w, &thread, sizeof(thread), lock[0] + vm->ts_thread_id) && thread == w->thread_pointer;
}

/* FRAME_LOCK if this thread holds a GIL, and that was asked for. */
WALK_GLOBAL int python_lock(struct walk *w)
{
	const struct python_vm *vm;
	u64 at, interp, gil;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm || !vm->wants_lock || !w->thread_pointer)
		return 0;
	if (vm->gil)
		return py_holds(w, vm, vm->gil) ? FRAME_LOCK : 0;
	at = vm->interpreters;
	for (i = 0; i < PYTHON_GILS_MAX; i++) {
		if (!walk_read(w, &interp, sizeof(interp), at) || !interp)
			return 0;
		if (walk_read(w, &gil, sizeof(gil), interp + vm->interp_gil) && py_holds(w, vm, gil))
			return FRAME_LOCK;
		at = interp + vm->interp_next;
	}
	return 0;
}

/* To the loop that called 3.14's stub, whose return address is at `at` of the stack. The loop's frame has a frame
 * pointer. */
static inline int py_leave_stub(struct walk *w, const struct python_vm *vm, u64 at)
{
	const u32 regs[] = {DWREG_RBX, DWREG_R12, DWREG_R13, DWREG_R14, DWREG_R15, REG_PC};
	u32 i;

	for (i = 0; i < PYTHON_JIT_STUB_WORDS; i++)
		if (!walk_stack(w, at + 8 + 8 * i, &w->reg[regs[i]]))
			return STOP_STACK_ABSENT;
	w->reg[REG_SP] = at + 8 + 8 * PYTHON_JIT_STUB_WORDS;
	w->reg[REG_FP] = w->reg[REG_SP] + vm->jit_locals;
	w->valid = ARCH_SAVED_MASK | 1u << REG_SP | 1u << REG_PC;
	return STOP_NONE;
}

/* Stubs lie at the start of pages; where they are not as expected those are found that the maps told of. */
static inline bool py_may_be_stub(const struct python_vm *vm, u64 addr)
{
	return (addr & (WALK_PAGE - 1)) == PYTHON_JIT_STUB_BACK || (addr >= vm->jit_start && addr < vm->jit_end);
}

/* Is this word of the stack the return address of compiled code? Then moves to what called it. PY_NOT_OURS: it is not.
 */
WALK_GLOBAL int python_jit_word(struct walk *w, u64 at)
{
	const struct python_vm *vm;
	u64 word, code;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	if (!walk_stack(w, at, &word))
		return STOP_STACK_ABSENT;
	w->leaf = 0;
	if (!vm->jit_return)
		return vm->jit_locals && py_may_be_stub(vm, word) && walk_read(w, &code, sizeof(code), word) &&
		                       code == PYTHON_JIT_STUB
		               ? py_leave_stub(w, vm, at)
		               : PY_NOT_OURS;
	if (word != vm->jit_return)
		return PY_NOT_OURS;
	w->reg[REG_PC] = word;
	w->reg[REG_SP] = at + 8;
	w->valid &= 1u << REG_FP | 1u << REG_SP | 1u << REG_PC;
	return STOP_NONE;
}

/* How many registers 3.14's stub has on the stack at this offset into it. */
static inline u64 py_stub_depth(u64 offset)
{
	if (offset < 9)
		return offset / 2;
	return offset <= PYTHON_JIT_STUB_BACK ? 5 : (PYTHON_JIT_STUB_END - 1 - offset) / 2;
}

/* Out of 3.14's stub itself. PY_NOT_OURS: it is not there. */
WALK_GLOBAL int python_jit_stub(struct walk *w)
{
	u64 offset, at, code, pc;

	WALK_CHECK(w);
	offset = w->reg[REG_PC] & (WALK_PAGE - 1);
	if (!w->leaf || offset >= PYTHON_JIT_STUB_END || !walk_read(w, &code, sizeof(code), w->reg[REG_PC] - offset) ||
	        code != PYTHON_JIT_STUB_PUSH)
		return PY_NOT_OURS;
	at = w->reg[REG_SP] + 8 * py_stub_depth(offset);
	if (!walk_stack(w, at, &pc))
		return STOP_STACK_ABSENT;
	w->reg[REG_PC] = pc;
	w->reg[REG_SP] = at + 8;
	w->valid &= 1u << REG_FP | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	return STOP_NONE;
}

/* Compiled code has no unwind information; the stack tells where it was called, and the loop's frame there leads to its
 * frames. */
WALK_GLOBAL int python_jit(struct walk *w)
{
	u32 i, leaf;
	int stop;

	WALK_CHECK(w);
	leaf = w->leaf;
	stop = python_jit_stub(w);
	for (i = 0; i < PYTHON_JIT_WORDS && stop == PY_NOT_OURS; i++)
		stop = python_jit_word(w, w->reg[REG_SP] + 8 * i);
	if (!stop)
		return STOP_NONE;
	w->leaf = leaf;
	if (w->region.part == PYTHON_JIT_LATE)
		return leaf ? STOP_NO_REGION : STOP_BAD_RETADDR;
	return native_step(w, 0);
}

/* Has a trampoline, that is at these bytes of its code, a word on its stack? Not before push or sub, nor before ret. */
static inline bool py_has_word(u32 code)
{
	u8 first = (u8)code;

	return first != 0xf3 && first != 0x55 && first != 0xc3 && (code & 0xffffff) != 0xec8348;
}

/*
 * The trampoline that a walk is in where there was no code when the maps were read; 0: none. They begin 16 bytes apart
 * or more, with endbr64 or without, and are what calls *%rcx and then gives back its word.
 */
WALK_GLOBAL int python_late_trampoline(struct walk *w)
{
	u64 code[2], call;

	WALK_CHECK(w);
	if (!walk_read(
	            w, code, sizeof(code), w->leaf ? w->reg[REG_PC] & ~15ull : w->reg[REG_PC] - PYTHON_TRAMPOLINE_CALL))
		return 0;
	call = !w->leaf ? code[0] : (u32)code[0] == PYTHON_ENDBR64 ? code[1] : code[0] >> 32 | code[1] << 32;
	if ((u32)call == PYTHON_TRAMPOLINE_POP)
		return PYTHON_TRAMPOLINE_FP;
	return (call & PYTHON_TRAMPOLINE_MASK) == PYTHON_TRAMPOLINE_ADD ? PYTHON_TRAMPOLINE : 0;
}

/* Out of a trampoline of -X perf. It has no frame: the Python function that it is called for has one. */
WALK_GLOBAL int python_trampoline_step(struct walk *w, u32 part)
{
	u64 at, pc;
	u32 code = 0;

	WALK_CHECK(w);
	at = w->reg[REG_SP];
	if (w->leaf && !walk_read(w, &code, sizeof(code), w->reg[REG_PC]))
		return STOP_VM_ABSENT;
	if (!w->leaf || py_has_word(code)) {
		if (part == PYTHON_TRAMPOLINE_FP) {
			if (!walk_stack(w, at, &w->reg[REG_FP]))
				return STOP_STACK_ABSENT;
			w->valid |= 1u << REG_FP;
		}
		at += 8;
	}
	if (!walk_stack(w, at, &pc))
		return STOP_STACK_ABSENT;
	w->reg[REG_PC] = pc;
	w->reg[REG_SP] = at + 8;
	w->valid = (w->valid & ARCH_SAVED_MASK) | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	return STOP_NONE;
}

/* 3.11, 3.12: has this thread no Python frame at all? No native frame of the loop has told. */
static inline bool py_is_frameless(struct walk *w, const struct python_vm *vm)
{
	u64 at = py_slot(w, vm), frame;

	return at && walk_read(w, &at, sizeof(at), at) && walk_read(w, &at, sizeof(at), at + vm->ts_frame) &&
	       walk_read(w, &frame, sizeof(frame), at + vm->cf_frame) && !frame;
}

/*
 * A greenlet's stack begins in a function that never returns; the stack above it belongs to whoever started it, and may
 * have been given to others since. It begins where the chain of Python frames has ended.
 */
WALK_GLOBAL int python_greenlet(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	bool ended;
	int stop;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = py_cursor(w, vm);
	w->vm_mark = PY_SWITCHING;
	if (c && !c->at) { /* one that begins, or that ends, or is written in C, has none */
		if (vm->linkage == PYTHON_NO_CFRAME || vm->linkage == PYTHON_FRAME_OBJECT)
			(void)python_open(w);
		else if (py_is_frameless(w, vm))
			c->at = PYTHON_AT_END;
	}
	ended = c && c->at == PYTHON_AT_END;
	stop = native_step(w, 0);
	return ended && stop != STOP_DEPTH ? STOP_ROOT_RUNTIME : stop;
}

/* Out of a bytecode's function that has no frame yet, or no more, or one that the file does not tell of: then the
 * caller's frame pointer is on the stack. */
WALK_GLOBAL int python_bare(struct walk *w)
{
	u64 at, pc;

	WALK_CHECK(w);
	if (!w->leaf && w->region.part == PYTHON_BARE)
		return native_step(w, 0);
	at = w->reg[REG_SP] + 8 * ((u64)w->region.part - PYTHON_BARE);
	if (!walk_push(w,
	            frame_where(FRAME_NATIVE, RUNTIME_NATIVE, w->flags | (w->leaf ? 0 : FRAME_RETADDR), w->reg[REG_PC]),
	            w->region.module))
		return STOP_DEPTH;
	if (!walk_stack(w, at, &pc) || (w->region.part == PYTHON_BARE + 1 && !walk_stack(w, at - 8, &w->reg[REG_FP])))
		return STOP_STACK_ABSENT;
	w->reg[REG_PC] = pc;
	w->reg[REG_SP] = at + 8;
	w->valid = (w->valid & ARCH_SAVED_MASK) | (w->valid & 1u << REG_FP) | 1u << REG_SP | 1u << REG_PC;
	if (w->region.part == PYTHON_BARE + 1)
		w->valid |= 1u << REG_FP;
	w->leaf = 0;
	return STOP_NONE;
}

/*
 * The lowest _PyCFrame, or entry frame, of this thread that lies on the native stack above the stack pointer: 0 if
 * there is none. Those below it belong to what was walked. Some links further: where the next ones begin is in
 * scratch[0], at first 0.
 */
WALK_GLOBAL int python_seek(struct walk *w)
{
	const struct python_vm *vm;
	u64 at, link;
	u32 i;
	u8 owner;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	at = w->scratch[0];
	link = vm->linkage == PYTHON_NO_CFRAME ? vm->f_previous
	                                       : vm->cf_frame + 8; /* _PyCFrame.previous lies behind current_frame */
	for (i = 0; i < PY_LINKS_A_SEEK; i++) {
		if (!at || at == PYTHON_AT_END)
			return STOP_VM_UNKNOWN;
		w->scratch[0] = at;
		if (vm->linkage != PYTHON_NO_CFRAME)
			owner = PYTHON_OWNER_NONE;
		else if (!walk_read(w, &owner, sizeof(owner), at + vm->f_entry))
			return STOP_VM_ABSENT;
		if (owner >= PYTHON_OWNER_NONE && at - w->reg[REG_SP] < PY_STACK_MAX)
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
 * Where nothing tells where the loop's native frames are the thread state still has its Python frames: goes on in a
 * region of its own, which has no code, with what no native frame was found for.
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

/* One frame further by the thread state alone. Entry frames tell that there are native ones; up to 3.10 nothing tells,
 * but at the end there are. */
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

/* To the native frame of the loop that the thread state tells of: where its frame is tells its CFA, and where all is
 * linked one rule holds. */
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

WALK_STEP int python_step(struct walk *w)
{
	u32 part;
	int stop;

	WALK_CHECK(w);
	if (w->region.part == PYTHON_CHAIN)
		return python_chain(w);
	part = w->region.part == PYTHON_JIT_LATE ? (u32)python_late_trampoline(w) : w->region.part;
	if (part == PYTHON_TRAMPOLINE || part == PYTHON_TRAMPOLINE_FP)
		return python_trampoline_step(w, part);
	if (w->region.part >= PYTHON_BARE)
		return python_bare(w);
	if (w->region.part == PYTHON_JIT || w->region.part == PYTHON_JIT_LATE)
		return python_jit(w);
	if (w->region.part == PYTHON_GREENLET)
		return python_greenlet(w);
	stop = w->vm_state ? STOP_NONE : python_own(w);
	if (!stop)
		stop = python_frames(w);
	if (stop == PY_EXHAUSTED) {
		stop = python_other(w);
		if (!stop)
			stop = python_frames(w);
		if (stop == PY_EXHAUSTED)
			stop = STOP_VM_BROKEN;
	}
	if (stop == PY_FRAMES_DONE) {
		stop = python_awaiters(w);
		stop = stop ? stop : PY_FRAMES_DONE;
	}
	w->vm_state = !stop || stop == STOP_DEPTH;
	if (w->vm_state)
		return stop;
	if (stop > 0 && !w->lost)
		w->lost = stop;
	return native_step(w, FRAME_VM | (u32)python_lock(w));
}
