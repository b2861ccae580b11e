/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A native process made of fake memory: a stack and code in pages that can be absent, functions with CFI rules of the
 * test's choice, and the walk over them. Reads can be made to fail.
 */
#ifndef YRT_NATIVE_FAKE_H
#define YRT_NATIVE_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "cfi/cfi.h"
#include "driver.h"
#include "process/module.h"

#define FAKE_PAGE      4096u
#define FAKE_PAGES     24u
#define FAKE_BYTES     (FAKE_PAGES * FAKE_PAGE)
#define FAKE_STACK     0x7ff000000000ull
#define FAKE_CODE      0x400000ull
#define FAKE_FUNCTIONS 16u
#define FAKE_FRAMES    512u
#define FAKE_RETURN    0x10u       /* return addresses lie here in their functions, behind a call */
#define FAKE_FAR       0x40000000u /* from a function on: no code that is known */

struct fake {
	struct memory memory;
	u8 stack[FAKE_BYTES], code[FAKE_BYTES];
	bool absent[FAKE_PAGES], no_code;
	u32 reads, fail, failures; /* reads so far; the first one that fails and how many do */
	struct arena *arena;
	struct region region[FAKE_FUNCTIONS];
	u32 nregions, placed;
	struct frame frames[FAKE_FRAMES];
	u32 max;
	struct walk_cache *caches; /* or NULL */
	struct walk walk;
};

/* All pages of the stack that a read touches must be there. */
static inline const u8 *fake_at(struct fake *f, u64 addr, u64 size)
{
	u64 at = addr - FAKE_STACK;

	if (!f->no_code && addr >= FAKE_CODE && size <= FAKE_BYTES && addr - FAKE_CODE <= FAKE_BYTES - size)
		return f->code + (addr - FAKE_CODE);
	if (addr < FAKE_STACK || !size || size > FAKE_BYTES || at > FAKE_BYTES - size)
		return NULL;
	for (u64 page = at / FAKE_PAGE; page <= (at + size - 1) / FAKE_PAGE; page++)
		if (f->absent[page])
			return NULL;
	return f->stack + at;
}

static inline bool fake_read(struct memory *mem, void *dst, size_t size, uint64_t addr)
{
	struct fake *f = (struct fake *)mem;
	const u8 *from = fake_at(f, addr, size);
	u32 i = f->reads++;

	if (!from || i - f->fail < f->failures)
		return false;
	memcpy(dst, from, size);
	return true;
}

static inline void fake_put(struct fake *f, u64 addr, u64 value)
{
	memcpy(f->stack + (addr - FAKE_STACK), &value, sizeof(value));
}

/* The return address is at CFA - 8, all else as it was. */
static inline struct cfi_rule fake_rule(u8 kind, u8 reg, s32 off)
{
	struct cfi_rule rule = {
	        .kind = kind, .cfa_reg = reg, .cfa_off = off, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = CFI_SAME;
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}

static inline u32 fake_table(struct fake *f, u64 start, const struct cfi_rule *rule)
{
	struct cfi_entry entry = {.addr = start, .rule = *rule};
	struct cfi *cfi;
	u32 *tables, table;

	if (cfi_from_entries(&entry, 1, start, start + FAKE_PAGE, &cfi) || modules_place(f->arena, cfi, &tables))
		abort();
	table = tables[0];
	free(tables);
	cfi_destroy(cfi);
	return table;
}

/* The call of a function, which returns at FAKE_RETURN, is a direct one of this address. */
static inline void fake_call(struct fake *f, u64 function, u64 to)
{
	u8 *at = f->code + (function - FAKE_CODE) + FAKE_RETURN;
	s32 distance = (s32)(to - (function + FAKE_RETURN));

	at[-5] = 0xe8;
	memcpy(at - 4, &distance, sizeof(distance));
}

/* A function of one page, under one rule (NULL: no table) and module number; returns the start of its code. */
static inline u64 fake_function(struct fake *f, const struct cfi_rule *rule)
{
	u32 i = f->nregions++;
	u64 start = FAKE_CODE + i * FAKE_PAGE;

	f->region[i] = (struct region){.start = start,
	        .end = start + FAKE_PAGE,
	        .origin = start,
	        .module = i + 1,
	        .table = rule ? fake_table(f, start, rule) : 0};
	fake_call(f, start, start + FAKE_FAR);
	return start;
}

static inline struct fake *fake_create(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	if (!f || arena_create(NULL, &f->arena) || arena_alloc(f->arena, sizeof(f->region), &f->placed))
		abort();
	f->memory.read = fake_read;
	f->max = FAKE_FRAMES;
	return f;
}

static inline void fake_destroy(struct fake *f)
{
	arena_destroy(f->arena);
	free(f);
}

/* Sets f->walk up with these registers (all of them hold). */
static inline void fake_start(struct fake *f, const u64 reg[ARCH_NREGS])
{
	memcpy(arena_at(f->arena, f->placed, sizeof(f->region)), f->region, sizeof(f->region));
	f->reads = 0;
	memset(&f->walk, 0, sizeof(f->walk));
	memcpy(f->walk.reg, reg, sizeof(f->walk.reg));
	f->walk.valid = (1u << ARCH_NREGS) - 1;
	f->walk.leaf = 1;
	f->walk.max_frames = f->max;
	f->walk.regions = f->placed;
	f->walk.nregions = f->nregions;
	f->walk.target =
	        (struct walk_target){.memory = &f->memory, .arena = f->arena, .frames = f->frames, .caches = f->caches};
}

/* Walks to the end. STOP_NONE: it would have gone on beyond any bound. */
static inline int fake_walk(struct fake *f, const u64 reg[ARCH_NREGS])
{
	int stop = STOP_NONE;

	fake_start(f, reg);
	for (u32 i = 0; i < walk_steps_max(&f->walk) && stop == STOP_NONE; i++)
		stop = walk_step(&f->walk);
	return walk_resume(&f->walk, walk_end(&f->walk, (u32)stop), false);
}

#endif
