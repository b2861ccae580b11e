/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Part of hotspot_walk.c: where a walk continues that was lost in native code called by Java. A thread that leaves Java
 * stores its last Java frame in its JavaThread (JavaFrameAnchor; runtime/javaFrameAnchor.hpp, 8 to 28). The JavaThread
 * is the one in the VM's list whose OSThread has this thread's pthread_t (glibc and musl: the thread pointer). The
 * result of the last search is cached, and checked before it is used. Threads without a JavaThread are not cached, as
 * they may attach later.
 */
#ifndef YRT_HOTSPOT_RESUME_WALK_H
#define YRT_HOTSPOT_RESUME_WALK_H

#include "walk.h"
#include "hotspot.h"
#include "hotspot_find_walk.h"

#define THREADS_A_SEEK 64
#define SEEKS_MAX      64
#define SEEK_ON        (-1)          /* not among the threads seen so far */
#define ANCHOR_FAR     (64ull << 20) /* bytes above the stack pointer; an anchor beyond is of another stack */
#define CACHE_THREAD   0x2545f4914f6cdd1dull

/*
 * Places in scratch: the next thread of the list (or, in an array, where it is read from), how many are left, and the
 * JavaThread.
 */
#define SCRATCH_THREAD 0
#define SCRATCH_LEFT   1

static inline bool hs_is_this_thread(struct walk *w, const struct hotspot_vm *vm, u64 thread)
{
	u64 osthread, id;

	return thread && walk_read(w, &osthread, 8, thread + vm->anchor.osthread) && osthread &&
	       walk_read(w, &id, 8, osthread + vm->anchor.pthread_id) && id == w->thread_pointer;
}

/* Is it the next thread of the list? */
WALK_GLOBAL int hotspot_seek_next(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 at, thread;

	WALK_CHECK(w);
	vm = hs_vm_here(w);
	if (!vm)
		return STOP_ARENA;
	at = thread = w->scratch[SCRATCH_THREAD];
	if (!w->scratch[SCRATCH_LEFT] || !at)
		return STOP_VM_UNKNOWN;
	if (vm->anchor.threads && !walk_read(w, &thread, 8, at))
		return STOP_VM_ABSENT;
	if (hs_is_this_thread(w, vm, thread)) {
		w->scratch[SCRATCH_THREAD] = thread;
		return STOP_NONE;
	}
	if (!vm->anchor.threads && !walk_read(w, &at, 8, thread + vm->anchor.next))
		return STOP_VM_ABSENT;
	w->scratch[SCRATCH_THREAD] = vm->anchor.threads ? at + 8 : at;
	w->scratch[SCRATCH_LEFT]--;
	return SEEK_ON;
}

WALK_GLOBAL int hotspot_seek_thread(struct walk *w)
{
	int stop = SEEK_ON;

	WALK_CHECK(w);
	for (u32 i = 0; i < THREADS_A_SEEK && stop == SEEK_ON; i++)
		stop = hotspot_seek_next(w);
	return stop;
}

/* The beginning of the list, to scratch. */
static inline bool hs_first_thread(struct walk *w, const struct hotspot_vm *vm)
{
	u64 list;
	u32 length = THREADS_A_SEEK * SEEKS_MAX;

	if (!walk_read(w, &list, 8, vm->anchor.list) || !list)
		return false;
	if (vm->anchor.threads && (!walk_read(w, &length, 4, list + vm->anchor.length) ||
	                                  !walk_read(w, &list, 8, list + vm->anchor.threads)))
		return false;
	w->scratch[SCRATCH_THREAD] = list;
	w->scratch[SCRATCH_LEFT] = length;
	return true;
}

/* This thread's JavaThread, to scratch. */
WALK_GLOBAL int hotspot_own_thread(struct walk *w)
{
	const struct hotspot_vm *vm;
	struct walk_cache *memo;
	int stop = SEEK_ON;
	u64 key;

	WALK_CHECK(w);
	vm = hs_vm(w);
	if (!vm || !vm->anchor.list || !w->thread_pointer)
		return STOP_VM_UNKNOWN;
	key = walk_mix(walk_mix(CACHE_THREAD, w->thread_pointer), w->region.vm);
	memo = walk_cache(w, (u32)(key >> 32));
	if (memo && memo->key == key) {
		w->scratch[SCRATCH_THREAD] = memo->value;
		if (hs_is_this_thread(w, vm, w->scratch[SCRATCH_THREAD]))
			return STOP_NONE;
	}
	if (!hs_first_thread(w, vm))
		return STOP_VM_UNKNOWN;
	for (u32 i = 0; i < SEEKS_MAX && stop == SEEK_ON; i++)
		stop = hotspot_seek_thread(w);
	memo = walk_cache(w, (u32)(key >> 32));
	if (!stop && memo) {
		memo->key = key;
		memo->value = w->scratch[SCRATCH_THREAD];
	}
	return stop;
}

/*
 * The stack pointer of the anchor if it is above this one; 0: it is not, or not known. While the thread runs Java it is
 * 0.
 */
WALK_GLOBAL u64 hotspot_anchor_above(struct walk *w, u64 sp)
{
	const struct hotspot_vm *vm;
	u64 at;

	WALK_CHECK(w);
	if (hotspot_own_thread(w))
		return 0;
	vm = hs_vm(w);
	if (!vm || !walk_read(w, &at, 8, w->scratch[SCRATCH_THREAD] + vm->anchor.sp))
		return 0;
	return !(at & 7) && at > sp && at - sp < ANCHOR_FAR ? at : 0;
}

/* Has a guess led past the last frame of Java? Up to there it is not believed. */
static inline bool hs_guess_skips(struct walk *w)
{
	u64 sp;

	if (!w->proof.guessed || w->resumes >= WALK_RESUMES)
		return false;
	sp = hotspot_anchor_above(w, w->proof.sp);
	return sp && sp < w->reg[REG_SP];
}

/* If the anchor has no program counter, the frame's is below its stack pointer (JavaFrameAnchor::make_walkable()). */
WALK_STEP int hotspot_resume(struct walk *w)
{
	const struct hotspot_vm *vm;
	u64 thread, sp, pc, fp;

	WALK_CHECK(w);
	sp = hotspot_anchor_above(w, w->reg[REG_SP]);
	vm = hs_vm(w);
	thread = w->scratch[SCRATCH_THREAD];
	if (!sp || !vm || !walk_read(w, &pc, 8, thread + vm->anchor.pc) ||
	        !walk_read(w, &fp, 8, thread + vm->anchor.fp))
		return STOP_VM_UNKNOWN;
	if ((!pc && !walk_stack(w, sp - 8, &pc)) || !hs_may_call(vm, pc))
		return STOP_VM_UNKNOWN;
	w->reg[REG_PC] = pc;
	w->reg[REG_SP] = sp;
	w->reg[REG_FP] = fp;
	w->valid = 1u << REG_SP | 1u << REG_PC | (fp ? 1u << REG_FP : 0);
	return STOP_NONE;
}

#endif
