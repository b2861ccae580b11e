/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "shared/record.h"

static struct walk *new_plain_walk(
        const struct process_entry *entry, struct arena *arena, struct memory *mem, struct frame *frames, u32 max)
{
	struct walk *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->max_frames = max;
	w->regions = entry->regions;
	w->nregions = entry->nregions;
	w->target = (struct walk_target){.memory = mem, .arena = arena, .frames = frames};
	return w;
}

static struct walk *new_walk(const struct process *p, struct memory *mem, struct frame *frames, u32 max)
{
	struct walk *w = new_plain_walk(&p->entry, p->modules->arena, mem, frames, max);

	if (!w)
		return NULL;
	if (!p->modules->caches)
		p->modules->caches = calloc(WALK_CACHES, sizeof(*p->modules->caches));
	memcpy(w->resume, p->entry.resume, sizeof(w->resume));
	w->target.caches = p->modules->caches;
	return w;
}

/* Takes the true return address for the one that a return probe put there. */
static int pass_return_probe(struct walk *w, const struct return_probes *probes)
{
	for (u32 i = 0; probes && !w->leaf && i < probes->n && i < RETURN_PROBES_KEPT; i++)
		if (probes->probe[i].at == w->reg[REG_SP] - sizeof(u64)) {
			w->reg[REG_PC] = probes->probe[i].address;
			return STOP_NONE;
		}
	return STOP_RETURN_PROBE;
}

enum stop_reason unwind_stack(
        const struct process *p, const struct unwind_registers *regs, struct frame *frames, u32 max, u32 *n)
{
	struct walk *w = new_walk(p, p->memory, frames, max);
	int stop = STOP_NONE;

	*n = 0;
	if (!w)
		return STOP_ARENA;
	memcpy(w->reg, regs->reg, sizeof(w->reg));
	w->valid = (1u << ARCH_NREGS) - 1;
	w->leaf = !regs->called;
	w->thread_pointer = regs->thread_pointer;
	do {
		for (u32 i = 0; i < walk_steps_max(w) && stop == STOP_NONE; i++) {
			stop = walk_step(w);
			if (stop == STOP_RETURN_PROBE)
				stop = pass_return_probe(w, regs->probes);
		}
		stop = walk_resume(w, walk_end(w, (u32)stop), false);
	} while (stop == STOP_NONE);
	*n = w->nframes;
	free(w);
	return (enum stop_reason)stop;
}

enum stop_reason unwind_task(const struct runtime_process *p, struct memory *mem,
        void (*start)(const void *ctx, struct walk *w), const void *ctx, struct frame *frames, u32 max, u32 *n)
{
	struct walk *w = new_plain_walk(p->entry, p->arena, mem, frames, max);
	int stop = STOP_NONE;

	*n = 0;
	if (!w)
		return STOP_ARENA;
	start(ctx, w);
	for (u32 i = 0; i < walk_steps_max(w) && stop == STOP_NONE; i++)
		stop = walk_step(w);
	*n = w->nframes;
	stop = (int)walk_end(w, (u32)stop);
	free(w);
	return (enum stop_reason)stop;
}

/* Is a copied stack all that the code at the program counter needs? */
static int deferred_step(struct walk *w)
{
	u64 pc = walk_pc(w);
	int stop = pc < w->region.start || pc >= w->region.end ? walk_locate(w, pc) : STOP_NONE;
	const struct runtime_ops *ops = w->region.runtime ? runtime_by_id(w->region.runtime) : NULL;

	if (stop)
		return stop;
	return w->region.runtime && !(ops && ops->deferrable && w->region.vm) ? STOP_VM_ABSENT : walk_step(w);
}

/*
 * Has a walk come to the frame that a runtime said? Its frame pointer, or else its stack pointer, is the one there, and
 * the code is of the same part: the frame pointer alone stays the same in functions further in that do not use it.
 */
static bool is_resumed(struct walk *w, const struct deferred_record *from, const struct region *there)
{
	const struct region *here = &w->region;

	return there->start && w->nframes && here->runtime == there->runtime && here->part == there->part &&
	       here->vm == there->vm &&
	       (from->fp ? walk_has(w, REG_FP) && w->reg[REG_FP] == from->fp : w->reg[REG_SP] == from->sp);
}

/* Where a runtime said that the first walk went on; start 0: nowhere. */
static struct region resumed_region(struct walk *w, const struct deferred_record *from)
{
	struct region r = {0};

	if (from->resume && !walk_locate(w, from->pc) && w->region.runtime)
		r = w->region;
	w->region.start = w->region.end = 0;
	return r;
}

static bool is_guessed(const struct walk *w, const struct deferred_record *from)
{
	return from->pc && !from->resume && w->reg[REG_PC] == from->pc && w->reg[REG_SP] == from->sp &&
	       (!from->fp || (walk_has(w, REG_FP) && w->reg[REG_FP] == from->fp));
}

enum stop_reason unwind_again(const struct process *p, const struct deferred_record *from, u32 size, struct memory *mem,
        struct frame *frames, u32 max, struct unwind_end *end)
{
	struct walk *w = new_walk(p, mem, frames, max);
	enum guess_found found = GUESS_MISSED;
	struct region there;
	int stop = STOP_NONE;

	*end = (struct unwind_end){.found = GUESS_MISSED};
	if (!w)
		return STOP_ARENA;
	memcpy(w->reg, from->reg, sizeof(w->reg));
	w->valid = from->valid;
	w->leaf = from->leaf;
	w->single = 1; /* is_guessed() */
	w->thread_pointer = from->thread_pointer;
	there = resumed_region(w, from);
	for (u32 i = 0; i < walk_steps_max(w) && stop == STOP_NONE && found == GUESS_MISSED; i++) {
		stop = deferred_step(w);
		if (stop == STOP_NONE && w->reg[REG_SP] - from->addr > size)
			stop = STOP_STACK_ABSENT;
		if (stop == STOP_NONE && is_guessed(w, from))
			found = w->flags & FRAME_GUESS ? GUESS_REPEATED : GUESS_PROVED;
		if (stop == STOP_VM_ABSENT && is_resumed(w, from, &there))
			found = w->flags & FRAME_GUESS ? GUESS_REPEATED : GUESS_PROVED;
	}
	*end = (struct unwind_end){.nframes = w->nframes, .found = found, .pc = w->reg[REG_PC]};
	stop = (int)(found == GUESS_MISSED ? walk_end(w, (u32)stop) : w->lost);
	free(w);
	return (enum stop_reason)stop;
}
