/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Part of hotspot_walk.c: frames of a virtual thread that are both on the stack and in a chunk, because they are being
 * frozen: by doYield, or as the thread is preempted (24 on; continuationFreezeThaw.cpp: preempt_epilog() lets the VM
 * return to the stub cont_preempt). The first cursor notes with which frame the chunk will begin.
 */
#ifndef YRT_HOTSPOT_FREEZE_WALK_H
#define YRT_HOTSPOT_FREEZE_WALK_H

#include "walk.h"
#include "hotspot.h"
#include "hotspot_find_walk.h"

#define YIELD_FRAME  16      /* bytes of Continuation.doYield's */
#define RESUMES_MAX  512     /* bytes between a native method's call of the VM and where it resumes */
#define LAST_JAVA_PC 8       /* behind _last_Java_sp (javaFrameAnchor.hpp) */
#define NOTED        1u      /* in the key of the cursor, beside the JavaThread */
#define NOTED_FRAMES 0xffffu /* in a place, beside rbp: how many frames */

static inline bool hs_may_note(const struct walk *w)
{
	return !w->ncursors || (w->ncursors == 1 && w->cursor[0].key == (w->reg[DWREG_R15] | NOTED));
}

/*
 * Notes the frame that the chunk will begin with, once it has the frames of this stack: the innermost Java frame if the
 * thread is preempted at a monitor or in Object.wait() (24 on), else the caller of doYield, when doYield has been left.
 */
WALK_GLOBAL int hotspot_note(struct walk *w, u32 left)
{
	struct walk_cursor *c = &w->cursor[0];
	u64 place;

	WALK_CHECK(w);
	place = w->reg[REG_FP] << 16 | (w->nframes & NOTED_FRAMES);
	walk_cursor(w, w->reg[DWREG_R15] | NOTED);
	if (!left) {
		c->at = w->leaf ? 0 : w->reg[REG_PC];
		c->more[0] = place;
		c->more[1] = w->hash;
	} else if (!c->more[2]) {
		c->more[2] = w->reg[REG_PC];
		c->more[3] = place;
		c->more[4] = w->hash;
	}
	return 0;
}

/* Is the noted frame, with this pc and place, the innermost frame of the chunk, which has its pc and rbp below sp? */
WALK_GLOBAL u32 hotspot_is_noted(struct walk *w, u64 sp, u32 place_at, u64 noted, u32 near)
{
	const struct hotspot_vm *vm;
	u64 pc, fp, bcp, bcp_noted, place;

	WALK_CHECK(w);
	vm = hs_vm_here(w);
	if (!vm || !noted || !walk_read(w, &pc, 8, sp - 8))
		return 0;
	if (pc - vm->interpreter_low >= vm->interpreter_size || noted - vm->interpreter_low >= vm->interpreter_size)
		return pc - noted + near <= 2ull * near;
	place = w->cursor[0].more[place_at & 3];
	return walk_read(w, &fp, 8, sp - 16) && walk_read(w, &bcp, 8, sp - 16 + fp * 8 - vm->bcp) &&
	       walk_read(w, &bcp_noted, 8, (place >> 16) - vm->bcp) && bcp == bcp_noted;
}

/*
 * FLAG_PREEMPTED of the chunk in scratch (stackChunkOop.hpp, 24 on): it has all frames of the thread. Set by
 * preempt_epilog() when they are frozen, and taken back by thaw_slow() before it thaws one.
 */
static inline bool hs_is_preempted(const struct walk *w, const struct hotspot_frozen *f)
{
	return f->flags && w->scratch[(f->flags >> 3) & (WALK_SCRATCH_WORDS - 1)] >> (f->flags & 7) * 8 & 1 << 6;
}

/*
 * Which of the two is it? 0: none; else 1 + its place in the cursor. A preempted frame resumes where the JavaThread
 * says (_last_Java_pc), not where it has called the VM from; frozen: it does not say so any more, but both are in one
 * wrapper of a native method.
 */
WALK_GLOBAL u32 hotspot_noted(struct walk *w, u64 sp, u32 frozen)
{
	const struct hotspot_vm *vm;
	const struct walk_cursor *c = &w->cursor[0];
	u64 resumes;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm)
		return 0;
	if (hs_is_preempted(w, &vm->frozen))
		return 1;
	if (hotspot_is_noted(w, sp, 3, c->more[2], 0))
		return 4;
	if (hotspot_is_noted(w, sp, 0, c->at, frozen ? RESUMES_MAX : 0))
		return 1;
	if (!c->at || !walk_read(w, &resumes, 8, w->reg[DWREG_R15] + vm->frozen.last_java_sp + LAST_JAVA_PC))
		return 0;
	return hotspot_is_noted(w, sp, 0, resumes, 0);
}

/*
 * If the chunk already has the stack's frames, with its innermost frame at sp, the frames walked so far are dropped,
 * and walked in the chunk instead. frozen: the JavaThread says that it has no frames any more. The VM sets that before
 * it copies them (slow) or after (fast).
 */
WALK_GLOBAL int hotspot_frozen_twice(struct walk *w, u64 sp, u32 frozen)
{
	const struct walk_cursor *c = &w->cursor[0];
	u32 i;

	WALK_CHECK(w);
	if (!w->ncursors || c->key != (w->reg[DWREG_R15] | NOTED)) {
		w->lost = frozen ? STOP_VM_FROZEN : w->lost;
		return 0;
	}
	i = hotspot_noted(w, sp, frozen);
	if (!i)
		return 0;
	i = i == 1 ? 0 : 3;
	w->nframes = c->more[i] & NOTED_FRAMES;
	w->hash = c->more[i + 1];
	return 0;
}

/*
 * At the innermost frame of Java. If it runs, the VM may have just returned to it, and it is yet to jump to
 * cont_preempt (interp_masm_x86.cpp: call_VM_preemptable(); sharedRuntime_x86_64.cpp: generate_native_wrapper()).
 */
static inline void hs_note_once(struct walk *w)
{
	const struct hotspot_vm *vm;

	if (w->ncursors || !walk_has(w, DWREG_R15))
		return;
	vm = hs_vm(w);
	if (vm && vm->frozen.stack)
		hotspot_note(w, false);
}

#endif
