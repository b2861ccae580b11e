/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Out of Java's code: compiled methods by the frame size in their header, interpreted ones by rbp, stubs by rows
 * (hotspot_stubs.h). README.md describes the shapes of frames.
 */
#include "walk.h"
#include "hotspot.h"
#include "hotspot_find_walk.h"
#include "hotspot_freeze_walk.h"
#include "hotspot_prologue_walk.h"

#define FRAME_MAX   (1u << 20) /* bytes; larger ones are not believed */
#define MOVED_MAX   16         /* words */
#define BCP_OF_8    56         /* hotspot_vm.bcp */
#define SAVED_MAX   96         /* words: all registers of 16 and of 32 bytes, arguments */
#define SAVED_SP    40         /* pusha of 8 notes rsp below itself, then moves it (macroAssembler_x86.cpp) */
#define SAVED_JUST  11         /* words: where the note lies when rsp was moved just now, and from r15 on */
#define LEAF_STANDS (-1)
#define HS_CALLED   (1u << 31)

/*
 * vm_state when a frame of Java has been left whose caller's stack pointer is this: the next step is at that caller if
 * it still is. Frames of other kinds may come between, and other runtimes find 0.
 */
static inline u32 hs_called(u64 cfa)
{
	return HS_CALLED | (u32)(cfa >> 3 & (HS_CALLED - 1));
}

/* Moves to the caller at pc. fp: where its rbp was saved, 0: it is still in the register. */
static inline int hs_arrive(struct walk *w, u64 cfa, u64 pc, u64 fp)
{
	if (fp && !walk_stack(w, fp, &w->reg[REG_FP]))
		return STOP_STACK_ABSENT;
	w->reg[REG_SP] = cfa;
	w->reg[REG_PC] = pc;
	w->valid = (w->valid | (fp ? 1u << REG_FP : 0)) & (1u << REG_FP | 1u << DWREG_R15);
	w->valid |= 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	w->flags = 0;
	w->vm_state = hs_called(cfa);
	return STOP_NONE;
}

/* The same, by the return address below cfa. */
WALK_GLOBAL int hotspot_return(struct walk *w, u64 cfa, u64 fp)
{
	u64 pc;

	WALK_CHECK(w);
	if (cfa <= w->reg[REG_SP] || cfa - w->reg[REG_SP] > FRAME_MAX)
		return STOP_NO_PROGRESS;
	return walk_stack(w, cfa - 8, &pc) ? hs_arrive(w, cfa, pc, fp) : STOP_STACK_ABSENT;
}

static inline bool hs_push_stub(struct walk *w, u32 flags)
{
	u32 all = flags | w->flags | (w->leaf ? 0 : FRAME_RETADDR);

	return walk_push(
	        w, frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, all, w->reg[REG_PC]), hotspot_detail(HOTSPOT_STUB, 0));
}

/* Is pc a handler for deoptimisation of the nmethod in w->vm.word? */
static inline bool hs_is_deopt(const struct walk *w, const struct hotspot_vm *vm, u64 blob, u64 pc)
{
	u64 base = vm->deopt.size == 8 ? 0 : blob;

	return pc == base + hs_field(w, vm->deopt) || (vm->deopt_mh.size && pc == base + hs_field(w, vm->deopt_mh));
}

/* The frame of a method that was deoptimised returns to a handler; where it was is in a slot of its own. */
static inline int hs_original_pc(struct walk *w, const struct hotspot_vm *vm, u64 blob)
{
	if (w->leaf || !hs_is_deopt(w, vm, blob, w->reg[REG_PC]))
		return STOP_NONE;
	return walk_stack(w, w->reg[REG_SP] + hs_field(w, vm->orig_pc), &w->reg[REG_PC]) ? STOP_NONE
	                                                                                 : STOP_STACK_ABSENT;
}

/* The leaf has called the next instruction, to have its address on the stack. */
static inline bool hs_deoptimises(const struct walk *w, const struct hotspot_vm *vm, u64 blob)
{
	u64 base = vm->deopt.size == 8 ? 0 : blob, pc = w->reg[REG_PC];

	return pc - base - hs_field(w, vm->deopt) - 1 < 15 ||
	       (vm->deopt_mh.size && pc - base - hs_field(w, vm->deopt_mh) - 1 < 15);
}

/* Each caller of compiled code is in the code cache. */
static inline bool hs_may_call(const struct hotspot_vm *vm, u64 pc)
{
	return pc > vm->cache_low && pc < vm->cache_high;
}

/* hotspot_frames.h */
static inline bool hs_is_frozen(const struct walk *w);
WALK_GLOBAL int hotspot_yielded(struct walk *w);
WALK_GLOBAL int hotspot_leave_frozen(struct walk *w, u64 cfa);

/* Did they begin i words above the stack pointer? Then as hotspot_pushed(); -1: the stack can not be read there. */
WALK_GLOBAL int hotspot_pushed_at(struct walk *w, u32 i)
{
	u64 slot, value;

	WALK_CHECK(w);
	slot = w->reg[REG_SP] + (u64)i * 8;
	if (!walk_stack(w, slot, &value))
		return -1;
	if (value != slot + SAVED_SP)
		return 0;
	if (!(i == SAVED_JUST && w->leaf && hs_saves(w)) &&
	        !(walk_stack(w, slot - SAVED_JUST * 8, &value) && value == w->reg[DWREG_R15]))
		return 0;
	return (int)i + SAVED_SP / 8;
}

/*
 * Code of JDK 8 that has pushed all registers, and more (C1 around Math.pow): how many words ago. 0: it has not. What
 * was never written, or an interpreted caller's frame, may hold such an address too: r15, the thread, is pushed last,
 * or the leaf is pushing.
 */
WALK_GLOBAL int hotspot_pushed(struct walk *w)
{
	int words = 0;

	WALK_CHECK(w);
	for (u32 i = 0; i < SAVED_MAX && !words; i++)
		words = hotspot_pushed_at(w, i);
	return words > 0 ? words : 0;
}

/*
 * Wrappers of native methods and the intrinsics of method handles have no handler for deoptimisation: 0, or where it is
 * an address that of the blob, to which an offset of 0 was added (seen in 17.0.15).
 */
static inline __attribute__((always_inline)) bool hs_is_native(
        const struct walk *w, const struct hotspot_vm *vm, u64 blob)
{
	u64 handler = hs_field(w, vm->deopt);

	return vm->deopt.size && (!handler || (vm->deopt.size == 8 && handler == blob));
}

#include "hotspot_callers_walk.h"

/* The caller of a compiled leaf whose code begins here; LEAF_STANDS: its frame is like any other. */
WALK_GLOBAL int hotspot_leave_leaf(struct walk *w, u64 code)
{
	const struct hotspot_vm *vm;
	u64 sp, frame, offset, complete;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	sp = w->reg[REG_SP];
	frame = hs_field(w, vm->frame_size) * 8;
	offset = w->reg[REG_PC] - code;
	complete = hs_signed(w, vm->frame_complete);
	stop = frame == YIELD_FRAME ? hotspot_yielded(w) : LEAF_STANDS;
	if (stop != LEAF_STANDS)
		return stop;
	if (hs_deoptimises(w, vm, w->scratch[0]))
		return hotspot_return(w, sp + 8 + frame, sp + 8 + frame - 16);
	if (frame < 16)
		return LEAF_STANDS;
	switch (hotspot_leaf(w, offset < complete && complete < 0x8000 ? complete - offset : 0, frame)) {
	case FRAME_NONE_YET:
		return hotspot_return(w, sp + 8, 0);
	case FRAME_RBP:
		return hotspot_return(w, sp + 16, sp);
	case FRAME_RBP_UNSAVED:
		return hotspot_return(w, sp + frame, 0);
	default:
		return LEAF_STANDS;
	}
}

/* The caller of compiled code whose frame stands, on the stack or in the heap. exact: nothing lies below it on the
 * stack. */
static inline int hs_leave_standing(struct walk *w, const struct hotspot_vm *vm, u64 blob, bool exact)
{
	u64 frame = hs_field(w, vm->frame_size) * 8, cfa = w->reg[REG_SP] + frame, pc;
	int stop;

	if (frame > FRAME_MAX)
		return STOP_VM_BROKEN;
	if (frame < 16)
		return hotspot_leave_frameless(w, blob - vm->block_size);
	if (hs_is_frozen(w))
		return hotspot_leave_frozen(w, cfa);
	if (exact && walk_stack(w, cfa - 8, &pc) && hs_may_call(vm, pc))
		stop = hs_arrive(w, cfa, pc, cfa - 16);
	else
		stop = hotspot_leave_moved(w, blob - vm->block_size, (u32)frame);
	if (stop == LEAF_STANDS)
		stop = hotspot_leave_guessed(w);
	if (frame == YIELD_FRAME && hs_may_note(w))
		hotspot_note(w, true);
	return stop;
}

/* exact: what this has called was a frame of Java, which ended at the stack pointer. */
static inline int hs_compiled(struct walk *w, const struct hotspot_vm *vm, bool exact)
{
	u64 blob = w->scratch[0], code = hs_code_begin(w, vm, blob), where;
	int stop = hs_original_pc(w, vm, blob);

	if (stop)
		return stop;
	where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, w->flags | (w->leaf ? 0 : FRAME_RETADDR), blob);
	if (!walk_push(w, where, hotspot_nmethod(hs_field(w, vm->compile_id), w->reg[REG_PC] - code)))
		return STOP_DEPTH;
	stop = w->leaf ? hotspot_leave_leaf(w, code) : LEAF_STANDS;
	return stop == LEAF_STANDS ? hs_leave_standing(w, vm, blob, exact) : stop;
}

/* Code in a heap of code that there are no rows for (yet). */
static inline int hs_unknown(struct walk *w, const struct hotspot_vm *vm)
{
	s64 frame = hs_signed(w, vm->frame_size) * 8;

	if (!hs_push_stub(w, 0))
		return STOP_DEPTH;
	if (!w->leaf && frame >= 16)
		return hotspot_return(w, w->reg[REG_SP] + frame, w->reg[REG_SP] + frame - 16);
	return native_step(w, NATIVE_NO_FRAME);
}

WALK_GLOBAL int hotspot_heap(struct walk *w, u32 exact)
{
	const struct hotspot_vm *vm;
	u64 segment;
	int stop;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	segment = (walk_pc(w) - vm->low) >> (vm->log2_segment & 63);
	if (!hs_recall(w, vm, segment)) {
		stop = hotspot_find(w, segment);
		if (stop)
			return stop;
	}
	return hs_field(w, vm->kind) == vm->kind_nmethod ? hs_compiled(w, vm, exact) : hs_unknown(w, vm);
}

/*
 * Pushes an interpreted method. bcp: where its bytecode stands, 0 if it has none; r13: the same where that is in a
 * register, unless it is used for something else just now.
 */
WALK_GLOBAL int hotspot_method_at(struct walk *w, u64 method, u64 bcp, u64 r13)
{
	const struct hotspot_vm *vm;
	u64 constants, bci = HOTSPOT_NO_BCI, where;
	u16 size;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	if (!method || method & 7 || !walk_read(w, &constants, 8, method + vm->method_const) || !constants ||
	        constants & 7)
		return STOP_VM_BROKEN;
	if (bcp - constants - vm->const_size < HOTSPOT_NO_BCI)
		bci = bcp - constants - vm->const_size;
	if (r13 - constants - vm->const_size < HOTSPOT_NO_BCI &&
	        walk_read(w, &size, 2, constants + vm->const_code_size) && r13 - constants - vm->const_size < size)
		bci = r13 - constants - vm->const_size;
	where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, w->flags | (w->leaf ? 0 : FRAME_RETADDR), method);
	return walk_push(w, where, hotspot_method(0, bci, hotspot_method_cookie(constants))) ? STOP_NONE : STOP_DEPTH;
}

/* A frame whose method can not be determined is being made from a deoptimised one: its links stand already. */
static inline int hs_push_method(struct walk *w, u64 method, u64 bcp, u64 r13)
{
	int stop = hotspot_method_at(w, method, bcp, r13);

	if (stop != STOP_VM_BROKEN)
		return stop;
	return hs_push_stub(w, FRAME_APPROX) ? STOP_NONE : STOP_DEPTH;
}

#include "hotspot_frames.h"

/*
 * If doYield has left what was frozen, the stack pointer is at enterSpecial's frame. The JavaThread has that entry, but
 * for the last instructions, add rsp, x; pop rbp; ret (sharedRuntime_x86_64.cpp: continuation_enter_cleanup()).
 * LEAF_STANDS: it has not, or is behind the first of these.
 */
WALK_GLOBAL int hotspot_yielded(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 sp, entry, code;

	WALK_CHECK(w);
	vm = hs_vm(w);
	sp = w->reg[REG_SP];
	if (!vm || !vm->frozen.stack || !walk_read(w, &entry, 8, w->reg[DWREG_R15] + vm->frozen.cont_entry))
		return LEAF_STANDS;
	if (entry != sp && !(walk_read(w, &code, 8, w->reg[REG_PC]) && (code & 0xffff00ffffff) == 0xc35d00c48348))
		return LEAF_STANDS;
	return hs_enter_special(w, &vm->frozen, sp);
}

/* The interpreter with its frame at rbp (frame_x86.hpp: interpreter_frame_*_offset). */
WALK_GLOBAL int hotspot_interpreted(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 fp, sp, method, bcp = 0, sender, next, r13 = 0;
	int stop;

	WALK_CHECK(w);
	fp = w->reg[REG_FP];
	sp = w->reg[REG_SP];
	vm = hs_vm(w);
	if (!vm)
		return STOP_ARENA;
	if (!walk_has(w, REG_FP))
		return STOP_REG_LOST;
	if (fp < sp || fp - sp > FRAME_MAX)
		return STOP_VM_BROKEN;
	if (!walk_stack(w, fp - 24, &method) || !walk_stack(w, fp - vm->bcp, &bcp) || !walk_stack(w, fp - 8, &sender) ||
	        !walk_stack(w, fp, &next))
		return STOP_STACK_ABSENT;
	if (w->leaf) {
		method = sp > fp - 24 ? w->reg[DWREG_RBX] : method;
		sender = sp > fp - 8 ? w->reg[DWREG_R13] : sender;
		bcp = sp > fp - vm->bcp ? 0 : bcp;
		r13 = w->reg[DWREG_R13];
	}
	stop = hs_push_method(w, method, bcp, r13);
	if (stop)
		return stop;
	if (sender < fp + 16) /* a method handle's linker has popped its last argument: the caller is interpreted */
		sender = fp + 16;
	if (sender - fp > FRAME_MAX)
		return STOP_VM_BROKEN;
	w->reg[REG_SP] = fp;
	stop = hotspot_return(w, fp + 16, 0);
	w->reg[REG_FP] = next;
	w->reg[REG_SP] = sender;
	w->vm_state = hs_called(sender);
	return stop;
}

/* A method that is being entered, with its frame not yet there: it is in rbx. */
static inline int hs_entry(struct walk *w)
{
	int stop = w->leaf ? hs_push_method(w, w->reg[DWREG_RBX], 0, 0) : hs_push_stub(w, 0) ? STOP_NONE : STOP_DEPTH;

	if (w->reg[DWREG_R13] < w->reg[REG_SP]) /* see hotspot_interpreted() */
		w->reg[DWREG_R13] = w->reg[REG_SP];
	return stop ? stop : native_step(w, NATIVE_NO_FRAME);
}

/* A return of the interpreter has the caller's rsp in rbx or r11, a method handle's linker in r13: see
 * hotspot_interpreted(). */
static inline int hs_stub(struct walk *w)
{
	const struct hotspot_vm *vm = hs_vm(w);
	u64 sp = w->reg[REG_SP];

	if (!w->leaf && vm && vm->return_barrier == w->reg[REG_PC])
		return hotspot_barrier(w);
	if (!w->leaf && vm && vm->preempt && vm->preempt == w->reg[REG_PC]) {
		w->reg[REG_PC] = vm->return_barrier; /* the whole continuation is in the heap */
		return hotspot_barrier(w);
	}
	if (!hs_push_stub(w, 0))
		return STOP_DEPTH;
	if (w->leaf && vm && w->reg[REG_PC] - vm->preempt < vm->preempt_size)
		return hotspot_preempted(w);
	if (vm && w->reg[REG_PC] - vm->thaw <= vm->thaws_size)
		return hs_thaws(w, vm);
	if (w->leaf && w->reg[DWREG_RBX] == sp - 8)
		w->reg[DWREG_RBX] = sp;
	if (w->leaf && w->reg[DWREG_R11] == sp - 8)
		w->reg[DWREG_R11] = sp;
	if (w->leaf && w->reg[DWREG_R13] == sp - 8)
		w->reg[DWREG_R13] = sp;
	return native_step(w, NATIVE_NO_FRAME);
}

/*
 * A trap at a poll led here, into a safepoint's handler. The signal handler has left what will be its return address in
 * the JavaThread; the rows give everything else about the caller.
 */
static inline int hs_polled(struct walk *w)
{
	const struct hotspot_vm *vm = hs_vm(w);
	u64 pc;
	int stop;

	if (!vm)
		return STOP_ARENA;
	if (!hs_push_stub(w, 0))
		return STOP_DEPTH;
	if (!w->leaf || !walk_read(w, &pc, 8, w->reg[DWREG_R15] + vm->saved_pc) || !hs_may_call(vm, pc))
		return STOP_VM_BROKEN;
	stop = native_step(w, NATIVE_NO_FRAME);
	w->reg[REG_PC] = pc;
	return stop;
}

#include "hotspot_resume_walk.h"
#include "hotspot_awaited_walk.h"

WALK_STEP int hotspot_step(struct walk *w)
{
	u32 exact;

	WALK_CHECK(w);
	if (hs_guess_skips(w))
		return STOP_NO_CFI;
	hs_push_awaited_once(w);
	hs_note_once(w);
	exact = !w->leaf && w->vm_state == hs_called(w->reg[REG_SP]);
	if (w->vm_state & HS_CALLED)
		w->vm_state = 0;
	switch (w->region.part) {
	case HOTSPOT_HEAP:
		return hotspot_heap(w, exact);
	case HOTSPOT_INTERPRETER:
		return hs_is_frozen(w) ? hotspot_frozen_interpreted(w) : hotspot_interpreted(w);
	case HOTSPOT_ENTRY:
		return hs_entry(w);
	case HOTSPOT_POLLED:
		return hs_polled(w);
	default:
		return hs_stub(w);
	}
}
