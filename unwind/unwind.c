/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum stop_reason unwind_stack(const struct process *p, const struct unwind_registers *regs, struct frame *frames, u32 max,
	u32 *n)
{
	struct walk *w = calloc(1, sizeof(*w));
	int stop = STOP_NONE;

	*n = 0;
	if (!w)
		return STOP_ARENA;
	if (!p->modules->memos)
		p->modules->memos = calloc(WALK_MEMOS, sizeof(*p->modules->memos));
	memcpy(w->reg, regs->reg, sizeof(w->reg));
	w->valid = (1u << ARCH_NREGS) - 1;
	w->leaf = 1;
	w->thread_pointer = regs->thread_pointer;
	w->max_frames = max;
	w->regions = p->entry.regions;
	w->nregions = p->entry.nregions;
	w->target = (struct walk_target){ .memory = p->memory, .arena = p->modules->arena, .frames = frames,
		.memos = p->modules->memos };
	for (u32 i = 0; i < walk_steps_max(w) && stop == STOP_NONE; i++)
		stop = walk_step(w);
	*n = w->nframes;
	stop = (int)walk_end(w, (u32)stop);
	free(w);
	return (enum stop_reason)stop;
}
