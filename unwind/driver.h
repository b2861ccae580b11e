/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The driver: for each frame, which region is the program counter in, and who steps. Included once by whoever walks: the
 * BPF programs (probes/) and the native walk (unwind/unwind.c).
 */
#ifndef YRT_DRIVER_H
#define YRT_DRIVER_H

#include "walk.h"

#define REGIONS_SEARCH_STEPS 13 /* 2^13 > REGIONS_MAX */

#define RUNTIME(id, name) WALK_STEP int name##_step(struct walk *w);
#include "../runtimes/list.h"
#undef RUNTIME

/* Finds the region of pc and copies it to w->region. The regions of a process lie in one slab. */
WALK_GLOBAL int walk_locate(struct walk *w, u64 pc)
{
	const struct region *region;
	const u8 *slab;
	u32 lo = 0, hi, i;

	WALK_CHECK(w);
	hi = w->nregions;
	slab = walk_slab(w, w->regions);
	if (!slab || !hi)
		return STOP_NO_PROCESS;
	for (i = 0; i < REGIONS_SEARCH_STEPS && hi > lo && hi - lo > 1; i++) {
		u32 mid = lo + (hi - lo) / 2;

		region = slab_at(slab, w->regions + (u64)mid * sizeof(*region));
		if (region->start <= pc)
			lo = mid;
		else
			hi = mid;
	}
	region = slab_at(slab, w->regions + (u64)lo * sizeof(*region));
	if (pc < region->start || pc >= region->end)
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

/* How many steps a walk may take: several steps may belong to one frame, or one step push several. */
static inline u32 walk_steps_max(const struct walk *w)
{
	return w->max_frames + 64;
}

#endif
