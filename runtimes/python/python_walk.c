/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* From a native frame of the eval loop to the Python frames that it runs. */
#include "python_frames.h"
#include "python_own_walk.h"

#define PY_FRAMES_A_STEP 32
#define PY_FRAMES_A_RUN  2 /* behind the one that is looked at closely */
#define PY_RUNS_A_STEP   8
#define PY_FRAMES_DONE   (-1)        /* besides stop reasons: all frames of the native frame were pushed */
#define PY_SWITCHING     0x67726e6cu /* vm_mark: greenlet's module was called by what follows */
#define PY_NEAR          (16u << 10) /* a frame so far below the window is on the same data stack */

/*
 * From 3.9 on a generator's throw() puts its frame on the chain while it throws into what the generator delegates to,
 * but does not run it: no native frame of the loop belongs to it. A generator that runs keeps what it interrupted
 * handling (gi_exc_state.previous_item, at outer; 0: it is none); one that is only thrown through does not.
 */
static inline int py_is_thrown_through(struct walk *w, u64 outer, bool *ret)
{
	u64 item = 1;

	if (outer && !walk_read(w, &item, sizeof(item), outer))
		return STOP_VM_ABSENT;
	*ret = !item;
	return STOP_NONE;
}

/* The innermost frame of the walk, and its caller's. */
static inline void py_note(struct walk_cursor *c, u64 at)
{
	if (!c->more[3])
		c->more[3] = at;
	else if (!c->more[4])
		c->more[4] = at;
}

WALK_STEP int python_read_code(struct walk *w, const struct python_vm *vm, struct walk_cursor *c, u64 code)
{
	struct python_identity id;
	u64 *words;
	u32 head;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	words = w->scratch;
	head = vm->ob_type;
	c->more[6] = 0;
	if (!walk_read(w, words, PYTHON_OBJECT_BYTES, code + head))
		return STOP_VM_ABSENT;
	if (words[0] != vm->code_type)
		return STOP_VM_BROKEN;
	id.code = py_word_at(words, vm->co_code - head);
	id.consts = py_word_at(words, vm->co_consts - head);
	id.names = py_word_at(words, vm->co_names - head);
	id.filename = py_word_at(words, vm->co_filename - head);
	id.name = py_word_at(words, vm->co_name - head);
	id.firstlineno = py_half_at(words, vm->co_firstlineno - head);
	c->more[5] = code;
	if (id.firstlineno || id.code > PYTHON_SHIM_UNITS)
		c->more[6] = python_detail(python_cookie(&id), id.code < PYTHON_NO_POS ? (u32)id.code : PYTHON_NO_POS);
	return STOP_NONE;
}

/* The one frame object of a native frame; or one before that which has none. */
WALK_GLOBAL int python_object(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	u64 *words, code, pos, gen;
	bool thrown = false;
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
	py_note(c, c->at);
	code = py_word_at(words, vm->f_code - vm->ob_type);
	lasti = py_half_at(words, vm->f_instr - vm->ob_type);
	c->at = py_word_at(words, vm->f_previous - vm->ob_type);
	if (!c->at)
		c->at = PYTHON_AT_END;
	pos = vm->lasti_bytes == 2 ? lasti / 2 : lasti;
	if (lasti >> 31) /* not begun */
		pos = PYTHON_NO_POS;
	gen = vm->gen_outer ? py_word_at(words, vm->f_gen - vm->ob_type) : 0;
	stop = py_is_thrown_through(w, gen ? gen + vm->gen_outer : 0, &thrown);
	if (!stop)
		stop = py_push(w, vm, c, code, pos);
	if (stop || !thrown)
		return stop ? stop : PY_FRAMES_DONE;
	return c->at == PYTHON_AT_END ? PY_EXHAUSTED : STOP_NONE;
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

/*
 * Fills the window so that it ends with the frame at `at`: those that called it lie below. Not beyond its page: before
 * a data stack there may be none, and a read that fails costs as much as ten frames.
 */
static inline bool py_window_load(struct walk *w, u64 at, u64 *ret)
{
	u64 len = (at & (WALK_PAGE - 1)) + PYTHON_FRAME_BYTES;

	if (len > PY_WINDOW)
		len = PY_WINDOW;
	WALK_BARRIER(len);
	len &= 2 * PY_WINDOW - 8;
	w->vm.len = 0;
	w->vm.start = at + PYTHON_FRAME_BYTES - len;
	if (!walk_fill(w, w->vm.word, (u32)len, w->vm.start))
		return false;
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
	vm = walk_arena_here(w, w->region.vm);
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
 * end of both says nothing: then the link that was taken decides.
 */
static inline __attribute__((always_inline)) bool py_is_exposed(
        struct walk *w, const struct python_vm *vm, const struct walk_cursor *c)
{
	u64 previous;

	if (vm->linkage == PYTHON_ENTRY_FLAG || !walk_stack(w, c->more[0] + vm->f_previous, &previous))
		return false;
	if (previous)
		return c->at == previous;
	return c->at == PYTHON_AT_END && (vm->linkage == PYTHON_ENTRY_FRAME || python_exposed(w));
}

/* 3.11: is this frame the last one of its native frame? A generator's that is thrown through has the flag of its last
 * run. */
static inline int py_is_last_by_flag(struct walk *w, const struct python_vm *vm, u64 at, u64 i, bool *ret)
{
	bool generator = py_frame_byte(w, i, vm->f_entry + 1) == PYTHON_OWNER_GENERATOR, thrown = false;
	int stop;

	if (!py_frame_byte(w, i, vm->f_entry)) {
		*ret = false;
		return STOP_NONE;
	}
	stop = py_is_thrown_through(w, generator && vm->gen_outer ? at - vm->gen_outer : 0, &thrown);
	*ret = !thrown;
	return stop;
}

/* One frame further. PY_FRAMES_DONE: it was the last one of this native frame. vm, c: those of w. */
WALK_GLOBAL int python_one(struct walk *w, const struct python_vm *vm, struct walk_cursor *c)
{
	u64 code, instr, at, i, tlbc;
	int found, stop = STOP_NONE;
	bool last;

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
	py_note(c, at);
	if (vm->linkage == PYTHON_ENTRY_FLAG)
		stop = py_is_last_by_flag(w, vm, at, i, &last);
	else
		last = py_frame_byte(w, i, vm->f_entry) >= PYTHON_OWNER_NONE;
	if (stop)
		return stop;
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
	stop = py_push(w, vm, c, code, (instr - at) / 2);
	if (stop)
		return stop;
	if (last || (w->vm_mark == PY_SWITCHING && py_is_exposed(w, vm, c)))
		return PY_FRAMES_DONE;
	return c->at == PYTHON_AT_END ? STOP_VM_BROKEN : STOP_NONE;
}

/*
 * Pushes those of the next frames that are whole in the window and have nothing special, as most do, without a call for
 * each: a return costs as much as the rest where the kernel guards against its misprediction. What it stops at is for
 * python_one().
 */
WALK_GLOBAL int python_run(struct walk *w, const struct python_vm *vm, struct walk_cursor *c)
{
	u64 at, i, code, pos;
	u32 n, special;
	int stop = STOP_NONE;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	WALK_CHECK(c);
	if (w->vm_mark == PY_SWITCHING || (vm->linkage != PYTHON_NO_CFRAME && c->more[1]))
		return STOP_NONE;
	special = vm->linkage == PYTHON_ENTRY_FLAG ? 1 : PYTHON_OWNER_NONE;
	for (n = 0; n < PY_FRAMES_A_RUN && !stop; n++) {
		at = c->at;
		if (at == c->more[0] || !py_in_window(w, at, &i) || py_frame_byte(w, i, vm->f_entry) >= special ||
		        (vm->co_tlbc && py_frame_half(w, i, vm->f_tlbc)))
			break;
		c->more[2] = at;
		py_note(c, at);
		code = py_frame_word(w, i, vm->f_code) & ~7ull;
		pos = (py_frame_word(w, i, vm->f_instr) - code - vm->bytecode) / 2;
		at = py_frame_word(w, i, vm->f_previous);
		c->at = at ? at : PYTHON_AT_END;
		stop = py_push(w, vm, c, code, pos);
		if (!stop && !at)
			stop = STOP_VM_BROKEN;
	}
	return stop;
}

/* Some frames further. */
WALK_GLOBAL int python_frames(struct walk *w)
{
	const struct python_vm *vm;
	struct walk_cursor *c;
	int stop = STOP_NONE;
	u32 i;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	c = py_cursor(w, vm);
	if (!c)
		return STOP_VM_BROKEN;
	for (i = 0; i < PY_RUNS_A_STEP && !stop; i++) {
		stop = vm->linkage == PYTHON_FRAME_OBJECT ? python_object(w) : python_one(w, vm, c);
		if (!stop && vm->linkage != PYTHON_FRAME_OBJECT)
			stop = python_run(w, vm, c);
	}
	return stop;
}

/* Is this thread the one that holds the lock? The state that took it last has its pthread_self(), the thread pointer.
 */
WALK_GLOBAL int python_holds(struct walk *w, const struct python_vm *vm, u64 gil)
{
	u64 lock[2], thread;

	WALK_CHECK(w);
	WALK_CHECK(vm);
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
		return python_holds(w, vm, vm->gil) ? FRAME_LOCK : 0;
	at = vm->interpreters;
	for (i = 0; i < PYTHON_GILS_MAX; i++) {
		if (!walk_read(w, &interp, sizeof(interp), at) || !interp ||
		        !walk_read(w, &gil, sizeof(gil), interp + vm->interp_gil))
			return 0;
		if (python_holds(w, vm, gil))
			return FRAME_LOCK;
		at = interp + vm->interp_next;
	}
	return 0;
}

#include "python_jit_walk.h"

/* 3.11, 3.12: has this thread no Python frame at all? No native frame of the loop has shown it. */
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

/* Out of a bytecode's function that has no frame yet, or no more, or one that the file does not describe: then the
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

#include "python_resume_walk.h"

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
