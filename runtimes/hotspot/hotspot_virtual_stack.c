/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of a virtual thread without a carrier. Its innermost chunk is copied and walked by the Java walker as if
 * its frames had been returned to (hotspot_frames.h). Afterwards the chunk in the target must still equal the copy. The
 * other chunks do not change as long as that does not.
 */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "hotspot_virtual.h"
#include "unwind.h"
#include "walk.h"

#define VS_FROZEN 0x4a00u /* HS_FROZEN of hotspot_frames.h: cursor 0 */
#define COPY_MAX  (1u << 20)
#define KEY       2 /* of no thread */

struct copied {
	struct memory memory;      /* what this is to others */
	struct memory *now, *code; /* the heap as it is now; code may be as old as the search */
	u64 code_low, code_high;
	u64 at, size;
	u8 *bytes;
};

static bool read_copied(struct memory *m, void *dst, size_t size, uint64_t addr)
{
	const struct copied *c = (const struct copied *)m;

	if (addr - c->at >= c->size || size > c->size - (addr - c->at))
		return memory_read(addr >= c->code_low && addr < c->code_high ? c->code : c->now, dst, size, addr);
	memcpy(dst, c->bytes + (addr - c->at), size);
	return true;
}

struct start {
	const struct hotspot_vm *vm;
	const struct hotspot_parked *parked;
};

/* At the barrier, as if a chunk before had been left whose parent is the continuation's tail. */
static void start(const void *ctx, struct walk *w)
{
	const struct start *s = ctx;
	const struct hotspot_frozen *f = &s->vm->frozen;

	w->reg[REG_PC] = s->vm->return_barrier;
	w->valid = 1u << REG_PC | 1u << REG_SP;
	w->vm_state = VS_FROZEN;
	w->ncursors = 1;
	w->cursor[0] =
	        (struct walk_cursor){.key = KEY, .more = {s->parked->cont + f->tail - f->parent, 0, s->parked->cont}};
}

/* All of it in one go, with its state before and behind it: what thaws it has changed the state first. */
static bool read_chunk(struct memory *m, const struct hotspot_parked *parked, u8 *bytes, u64 size)
{
	u32 before, after;
	const struct memory_piece pieces[] = {
	        {&before, parked->state_at, 4}, {bytes, parked->chunk, size}, {&after, parked->state_at, 4}};

	return memory_read_pieces(m, pieces, 3) == 3 && before == parked->state && after == parked->state;
}

bool hotspot_parked_stack(struct hotspot_instance *instance, const struct runtime_process *p, struct memory *m,
        const struct hotspot_parked *parked, struct frame *frames, u32 max, u32 *n, u32 *stop)
{
	const struct hotspot_vm *vm =
	        instance->nclaims ? arena_at(p->arena, instance->claims[0].config, sizeof(*vm)) : NULL;
	const struct start s = {vm, parked};
	struct copied c = {.memory.read = read_copied, .now = p->memory, .code = m, .at = parked->chunk};
	cleanup(free) u8 *bytes = NULL;
	u32 words;

	*n = 0;
	if (!vm || !vm->frozen.stack || !memory_read(p->memory, &words, 4, parked->chunk + vm->frozen.size))
		return false;
	c.code_low = vm->cache_low;
	c.code_high = vm->cache_high;
	c.size = vm->frozen.stack + words * 8ull;
	c.size = c.size < COPY_MAX ? c.size : COPY_MAX;
	c.bytes = bytes = malloc(2 * c.size);
	if (!bytes || !read_chunk(p->memory, parked, bytes, c.size))
		return false;
	*stop = unwind_task(p, &c.memory, start, &s, frames, max, n);
	return *n && read_chunk(p->memory, parked, bytes + c.size, c.size) && !memcmp(bytes, bytes + c.size, c.size);
}
