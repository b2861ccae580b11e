/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The driver: for each frame it finds the region of the program counter and calls the region's walker. Included once by
 * each program that walks: the BPF programs (probes/) and the native walk (unwind/unwind.c).
 */
#ifndef YRT_DRIVER_H
#define YRT_DRIVER_H

#include "find_region.h"
#include "walk.h"

#define RUNTIME(id, name) WALK_STEP int name##_step(struct walk *w);
#define RESUMES(id, name) WALK_STEP int name##_resume(struct walk *w);
#include "../runtimes/list.h"
#undef RESUMES
#undef RUNTIME

/* Is it code that the process made itself, and has replaced since it was looked at? */
static inline bool is_replaced(const struct walk *w, const struct region *r)
{
	return r->start < w->changed_end && r->end > w->changed_start && !r->module && !r->runtime;
}

/* Copies the region of pc to w->region. */
WALK_GLOBAL int walk_locate(struct walk *w, u64 pc)
{
	const struct region *region;
	const u8 *slab;

	WALK_CHECK(w);
	slab = walk_slab(w, w->regions);
	if (!slab || !w->nregions)
		return STOP_NO_PROCESS;
	region = find_region(w, slab, pc);
	/* copy_thread() since 5.12 gives neither to a thread that runs in the kernel only, as io_uring's do. */
	if (!region && !pc && !w->reg[REG_SP])
		return STOP_ROOT;
	if (!region)
		return w->leaf || !w->nframes ? STOP_NO_REGION : STOP_BAD_RETADDR;
	if (is_replaced(w, region))
		return STOP_NO_REGION;
	if (region->probed)
		return STOP_RETURN_PROBE;
	w->region = *region;
	return STOP_NONE;
}

static inline __attribute__((always_inline)) int walk_step_by(struct walk *w)
{
	switch (w->region.runtime) {
#define RUNTIME(id, name)                                                                                              \
	case id:                                                                                                       \
		return WALK_HAS_RUNTIME(id) ? name##_step(w) : STOP_NO_WALKER;
#include "../runtimes/list.h"
#undef RUNTIME
	default:
		return native_step(w, 0);
	}
}

/* One step: STOP_NONE to be called again. */
static inline __attribute__((always_inline)) int walk_step(struct walk *w)
{
	u64 pc = walk_pc(w);
	int stop;

	if (pc < w->region.start || pc >= w->region.end) {
		stop = walk_locate(w, pc);
		if (stop)
			return stop;
	}
	w->others |= w->region.runtime;
	stop = walk_step_by(w);
	if (w->region.runtime && !stop && !w->lost)
		w->proof.guessed = 0; /* its frames are there: what led here was right */
	return stop;
}

static inline __attribute__((always_inline)) int walk_resume_by(struct walk *w, u32 runtime)
{
	switch (runtime) {
#define RUNTIME(id, name)
#define RESUMES(id, name)                                                                                              \
	case id:                                                                                                       \
		return WALK_HAS_RUNTIME(id) ? name##_resume(w) : STOP_VM_UNKNOWN;
#include "../runtimes/list.h"
#undef RESUMES
#undef RUNTIME
	default:
		return STOP_VM_UNKNOWN;
	}
}

/*
 * The end of a walk, for this reason. If it was lost among native frames, a runtime may know its own innermost native
 * frame: then the walk goes on there (STOP_NONE), behind a frame that stands for the missing ones. Otherwise the reason
 * for which the stack ends; frames that were only guessed are dropped. exact: 1: only by a runtime that makes guesses
 * needless; else 0. Inlined: BPF's chain of calls is as long as it may be.
 */
static inline __attribute__((always_inline)) int walk_resume(struct walk *w, u32 stop, u32 exact)
{
	struct region_resume by;
	u64 sp;
	u32 i, any = walk_launder(w, exact) ^ 1;

	if (!stop_is_lost(stop))
		return (int)stop;
	walk_take_back(w);
	sp = w->reg[REG_SP];
	if (w->resumes >= WALK_RESUMES)
		return (int)stop;
	w->resumes++;
	w->others = 1;
	w->vm_state = 0;
	for (i = 0; i < PROCESS_RESUMES; i++) {
		by = w->resume[i];
		by.runtime &= (u16) - (u16)(by.exact | any); /* no branch: the verifier would follow both */
		w->region.start = w->region.end = 0;
		w->region.vm = by.vm;
		if (walk_resume_by(w, by.runtime) || w->reg[REG_SP] < sp)
			continue;
		if (!walk_push(w, frame_where(FRAME_GAP, RUNTIME_NATIVE, 0, 0), stop))
			return STOP_DEPTH;
		w->flags = 0;
		w->leaf = 0;
		w->lost = w->lost ? w->lost : STOP_RESUMED;
		return STOP_NONE;
	}
	return (int)stop;
}

/* The stop reason of a stack: one that lacks frames of a runtime is not complete. */
static inline u32 walk_end(const struct walk *w, u32 stop)
{
	if (stop == STOP_NONE)
		return STOP_DEPTH;
	return w->lost && stop_is_complete(stop) ? w->lost : stop;
}

/* The maximum number of steps of a walk: several steps may belong to one frame, and one step may push several. */
static inline u32 walk_steps_max(const struct walk *w)
{
	return w->max_frames + 64;
}

#endif
