/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The driver: for each frame, which region is the program counter in, and who steps. Included once by whoever walks: the
 * BPF programs (probes/) and the native walk (unwind/unwind.c).
 */
#ifndef YRT_DRIVER_H
#define YRT_DRIVER_H

#include "find_region.h"
#include "walk.h"

#define RUNTIME(id, name) WALK_STEP int name##_step(struct walk *w);
#include "../runtimes/list.h"
#undef RUNTIME

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
	if (!region)
		return w->leaf || !w->nframes ? STOP_NO_REGION : STOP_BAD_RETADDR;
	w->region = *region;
	return STOP_NONE;
}

/* One step: STOP_NONE to be called again. */
static inline int walk_step(struct walk *w)
{
	u64 pc = walk_pc(w);
	int stop;

	if (pc < w->region.start || pc >= w->region.end) {
		stop = walk_locate(w, pc);
		if (stop)
			return stop;
	}
	switch (w->region.runtime) {
#define RUNTIME(id, name)                                                                                              \
	case id:                                                                                                       \
		return name##_step(w);
#include "../runtimes/list.h"
#undef RUNTIME
	default:
		return native_step(w, 0);
	}
}

/* The reason for a stack that a walk ended for: one that lacks frames of a runtime is not complete. */
static inline u32 walk_end(const struct walk *w, u32 stop)
{
	if (stop == STOP_NONE)
		return STOP_DEPTH;
	return w->lost && stop_is_complete(stop) ? w->lost : stop;
}

/* How many steps a walk may take: several steps may belong to one frame, or one step push several. */
static inline u32 walk_steps_max(const struct walk *w)
{
	return w->max_frames + 64;
}

#endif
