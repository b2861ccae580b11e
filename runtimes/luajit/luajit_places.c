/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where snapshots begin to hold, for builds that do not store it (before 2021-03): from the code. A guard leaves a
 * trace by a jump to the stub of its exit (lj_asm_x86.h: push of the low byte of its number, then a short jump). That
 * number is the one of the snapshot to which the guard goes back. Between two guards a snapshot begins behind a call
 * rather than elsewhere, because LuaJIT makes one after something that it cannot undo.
 */
#include "luajit_trace.h"

#define PUSH_BYTE  0x6a
#define CALLS_MAX  64
#define GUARD_SIZE 16 /* a load, a comparison and the jump of a guard */

struct places {
	struct luajit_trace *trace;
	struct memory *mem;
	u32 placed;           /* snapshots whose place is known */
	u32 from;             /* end of the last guard */
	u32 calls[CALLS_MAX]; /* ends of those since */
	u32 ncalls;
};

/* The target of a 32-bit relative operand. */
static u64 target_of(const struct luajit_trace *t, u32 operand)
{
	s32 distance = (s32)((u32)t->bytes[operand] | (u32)t->bytes[operand + 1] << 8 |
	                     (u32)t->bytes[operand + 2] << 16 | (u32)t->bytes[operand + 3] << 24);

	return t->code + operand + 4 + (u64)(s64)distance;
}

static bool is_inside(const struct luajit_trace *t, u64 addr)
{
	return addr - t->code < t->code_size;
}

/* The operand of the jump or call at `at`, 0 if there is none. */
static u32 jump_at(const struct luajit_trace *t, u32 at)
{
	const u8 *b = t->bytes + at;
	u32 room = t->code_size - at;

	if (room >= 6 && b[0] == 0x0f && (b[1] & 0xf0) == 0x80)
		return at + 2;
	return room >= 5 && b[0] == 0xe9 ? at + 1 : 0;
}

/* The number of the exit that a guard's jump goes to; false: it goes elsewhere. */
static bool exit_of(const struct places *p, u32 operand, u32 *ret)
{
	u64 target = target_of(p->trace, operand);
	u8 stub[3];
	u32 number;

	if (is_inside(p->trace, target) || !memory_read(p->mem, stub, sizeof(stub), target) || stub[0] != PUSH_BYTE ||
	        (stub[2] != 0xeb && stub[2] != PUSH_BYTE))
		return false;
	number = stub[1];
	while (number + 1 < p->placed) /* the low byte of it: exits come in order */
		number += 256;
	*ret = number;
	return number < p->trace->nsnapshots;
}

/* The end of the call at `at`: of a function by its distance, or by a register; 0: there is none. */
static u32 call_at(const struct places *p, u32 at)
{
	const u8 *b = p->trace->bytes + at;
	u32 room = p->trace->code_size - at;
	u8 byte;

	if (room >= 2 && b[0] == 0xff && (b[1] & 0xf8) == 0xd0)
		return at + 2;
	if (room < 5 || b[0] != 0xe8 || is_inside(p->trace, target_of(p->trace, at + 1)))
		return 0;
	return memory_read(p->mem, &byte, 1, target_of(p->trace, at + 1)) ? at + 5 : 0;
}

/* Places snapshots up to `last`, whose first guard is at `guard`: behind calls while there are any, then evenly. */
static void place_until(struct places *p, u32 last, u32 guard)
{
	struct luajit_snapshot *s = p->trace->snapshots;
	u32 from = p->from, end = guard > from + GUARD_SIZE ? guard - GUARD_SIZE : from, used = 0, left;

	while (p->placed <= last && used < p->ncalls)
		s[p->placed++].place = from = p->calls[used++];
	end = end > from ? end : from;
	left = last + 1 - p->placed;
	for (u32 i = 1; p->placed <= last; i++)
		s[p->placed++].place = from + (u32)((u64)(end - from) * i / left);
}

/* The loop begins here: so does the last snapshot of what precedes it. */
static void place_loop(struct places *p, u32 loop_ref, u32 at)
{
	struct luajit_snapshot *s = p->trace->snapshots;
	u32 last = p->placed - 1;

	while (last + 1 < p->trace->nsnapshots && s[last + 1].ref <= loop_ref)
		last++;
	if (last >= p->placed) {
		place_until(p, last, at);
		s[last].place = at;
	}
	p->from = at;
	p->ncalls = 0;
}

void luajit_trace_place(struct luajit_trace *t, struct memory *mem, u32 loop_ref, u32 loop)
{
	struct places p = {.trace = t, .mem = mem, .placed = 1};
	u32 operand, number, end;

	t->snapshots[0].place = 0;
	for (u32 at = 0; at < t->code_size; at = end ? end : at + 1) {
		if (loop_ref && loop && at >= loop) {
			place_loop(&p, loop_ref, loop);
			loop = 0;
		}
		operand = jump_at(t, at);
		end = operand ? 0 : call_at(&p, at);
		if (end && p.ncalls < CALLS_MAX)
			p.calls[p.ncalls++] = end;
		if (!operand || !exit_of(&p, operand, &number))
			continue;
		if (number >= p.placed)
			place_until(&p, number, at);
		end = operand + 4;
		p.from = end;
		p.ncalls = 0;
	}
	place_until(&p, t->nsnapshots - 1, t->code_size);
}
