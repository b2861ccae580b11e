/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_proof.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cleanup.h"
#include "code/insn.h"

#define REACH     (32u << 10) /* bytes of a function */
#define ALIGNMENT 16u
#define TAILS_MAX 16
#define VIA_MAX   4 /* functions that go on by a jump, one after the other */

/* Of the stack at an instruction. BARE: as at the beginning; GUESSED: FRAMED, unless a jump says otherwise. */
enum frame_state {
	UNKNOWN,
	BARE,
	PUSHED,
	FRAMED,
	GUESSED,
};

struct sweep {
	const u8 *code; /* from start on */
	u64 start, size;
	u64 pc; /* of interest; offsets from start, as are those below */
	bool returned;
	u8 *notes;    /* enum frame_state at targets of jumps */
	u64 farthest; /* of them */
	u64 end;
	u64 doubt;    /* behind a call that may not return: another function may begin here; 0: nowhere */
	u64 guessed;  /* where a stretch began that nothing had reached then */
	u64 block;    /* the one that has pc */
	bool at_pc;   /* its frame is there, */
	bool depends; /* if something leads to that stretch */
	bool switches, broken;
	bool anywhere; /* goes on by a jump through a register or a word */
	u64 tails[TAILS_MAX];
	u32 ntails;
};

static bool is_prologue(const u8 *code, size_t size)
{
	static const u8 endbr[] = {0xf3, 0x0f, 0x1e, 0xfa}, frame[] = {0x55, 0x48, 0x89, 0xe5},
	                other[] = {0x55, 0x48, 0x8b, 0xec};

	if (size >= 8 && !memcmp(code, endbr, sizeof(endbr)))
		code += sizeof(endbr);
	else if (size < 4)
		return false;
	return !memcmp(code, frame, sizeof(frame)) || !memcmp(code, other, sizeof(other));
}

static void note(struct sweep *s, u64 at, enum frame_state state, u64 target)
{
	u64 to = target - s->start;

	if (to < s->size) {
		if (state == FRAMED || to > at)
			s->farthest = MAX(s->farthest, to);
		s->broken |= s->notes[to] && s->notes[to] != state && s->notes[to] != GUESSED;
		s->broken |= s->notes[to] == GUESSED && state != FRAMED;
		s->notes[to] = (u8)state;
	} else if (state == FRAMED) {
		s->end = s->doubt ? s->doubt : s->end; /* a part that is elsewhere, if it is this function's */
	}
	if (state == BARE && s->ntails < TAILS_MAX)
		s->tails[s->ntails++] = target;
}

/* The state behind an instruction; UNKNOWN: it does not go on, or is not this function's. */
static enum frame_state step(struct sweep *s, u64 at, enum frame_state state, const struct insn *in)
{
	u64 next = s->start + at + in->size;
	bool framed = state == FRAMED || state == GUESSED;

	switch (in->kind) {
	case INSN_PUSH_FP:
		s->broken |= framed && !s->doubt;
		s->end = framed ? s->doubt : s->end;
		return framed ? UNKNOWN : PUSHED;
	case INSN_SET_FP:
		s->broken |= state != PUSHED;
		return FRAMED;
	case INSN_POP_FP:
		s->broken |= !framed;
		s->doubt = 0;
		return BARE;
	case INSN_RETURN:
		s->broken |= state != BARE && !s->doubt;
		s->end = framed && s->doubt ? s->doubt : s->end;
		return UNKNOWN;
	case INSN_JUMP:
	case INSN_JUMP_IF:
		note(s, at, framed ? FRAMED : state, next + (u64)in->imm);
		return in->kind == INSN_JUMP ? UNKNOWN : state;
	case INSN_JUMP_INDIRECT:
		s->switches |= framed;
		s->anywhere |= !framed;
		s->end = framed && s->doubt ? s->doubt : s->end;
		return UNKNOWN;
	case INSN_TRAP:
		return UNKNOWN;
	default:
		s->broken |= in->writes_fp || (state == PUSHED && (in->writes_sp || in->kind != INSN_OTHER));
		if (framed && in->kind == INSN_CALL && !s->doubt && (next & (ALIGNMENT - 1)) == 0)
			s->doubt = at + in->size;
		return state;
	}
}

/* Does another function begin behind one that does not go on? Linkers fill up with int3, which compilers do not. */
static bool ends_at(const struct sweep *s, u64 at)
{
	return at > s->farthest || s->code[at] == 0xcc ||
	       ((s->start + at) % ALIGNMENT == 0 && is_prologue(s->code + at, s->size - at));
}

static void look_at_pc(struct sweep *s, u64 at, enum frame_state state, const struct insn *in)
{
	bool here = s->returned ? at + in->size == s->pc && (in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT)
	                        : at == s->pc;

	if (!here)
		return;
	s->at_pc = state == FRAMED || state == GUESSED;
	s->depends = state == GUESSED;
	s->block = s->guessed;
}

/* One pass over a function; its jumps forward say where it ends. */
static void sweep(struct sweep *s, u64 *left)
{
	enum frame_state state = BARE;
	u64 at = 0;
	struct insn in;

	s->end = s->size;
	while (at < s->end && !s->broken) {
		enum frame_state noted = s->notes[at];

		if (noted && noted != GUESSED) {
			s->broken |= state == GUESSED ? noted != FRAMED : state && state != noted;
			state = noted;
			s->doubt = 0;
		} else if (!state) {
			if (ends_at(s, at))
				break;
			state = GUESSED;
			s->guessed = at;
		}
		if (state == GUESSED)
			s->notes[at] = GUESSED;
		if (state == FRAMED && (s->start + at) % ALIGNMENT == 0 && is_prologue(s->code + at, s->size - at))
			break; /* behind a call that does not return */
		in = insn_decode(s->code + at, s->size - at);
		if (in.kind == INSN_BAD || !*left) {
			s->broken = true;
			break;
		}
		--*left;
		look_at_pc(s, at, state, &in);
		state = step(s, at, state, &in);
		at += in.size;
	}
	s->end = MIN(s->end, at);
}

/* Looks at the function that begins at start; false: that cannot be read. notes: REACH bytes. */
static bool look(struct sweep *s, struct image *img, u64 start, u64 pc, bool returned, u8 *code, u64 *left)
{
	u64 size = 0;

	for (u32 i = 0; i < img->nsegments; i++)
		if (start - img->segments[i].vaddr < img->segments[i].filesz)
			size = MIN(img->segments[i].filesz - (start - img->segments[i].vaddr), REACH);
	if (!size || !image_read(img, code, size, start))
		return false;
	memset(code + REACH, 0, REACH);
	*s = (struct sweep){.code = code,
	        .notes = code + REACH,
	        .start = start,
	        .size = size,
	        .pc = pc - start,
	        .returned = returned};
	sweep(s, left);
	return true;
}

/* Did a jump lead to the stretch that has pc, before pc? If nothing does, it is a case of a switch. */
static bool is_reached(const struct sweep *s)
{
	return s->switches || memchr(s->notes + s->block, FRAMED, s->pc - s->block + !s->returned);
}

static bool has_frame(struct image *img, u64 start, u64 pc, bool returned, u8 *code, u64 *left)
{
	struct sweep s;

	return start <= pc && pc - start < REACH && look(&s, img, start, pc, returned, code, left) && !s.broken &&
	       s.at_pc && (!s.depends || is_reached(&s)) && s.pc < s.end + returned;
}

/* The nearest prologue before pc; 0: none. */
static u64 find_start(struct image *img, u64 pc, u8 *code)
{
	u64 reach = MIN(pc, REACH), from, size;

	do { /* the segment may begin in between */
		from = (pc - reach) & ~(u64)(ALIGNMENT - 1);
		size = MIN(pc - from, REACH);
		reach /= 2;
	} while (!image_read(img, code, size, from) && reach >= ALIGNMENT);
	if (reach < ALIGNMENT)
		return 0;
	for (u64 at = size & ~(u64)(ALIGNMENT - 1);; at -= ALIGNMENT) {
		if (at < size && is_prologue(code + at, size - at))
			return from + at;
		if (!at)
			return 0;
	}
}

/* Does the function at `from` go on to `to` by a jump, at once or through others? */
static bool goes_on(struct image *img, u64 from, u64 to, u32 via, u8 *code, u64 *left)
{
	struct sweep s;

	if (!look(&s, img, from, from, false, code, left))
		return false;
	if (s.anywhere)
		return true;
	for (u32 i = 0; i < s.ntails; i++)
		if (s.tails[i] == to)
			return true;
	for (u32 i = 0; via && i < s.ntails; i++)
		if (s.tails[i] - from >= s.end && goes_on(img, s.tails[i], to, via - 1, code, left))
			return true;
	return false;
}

static bool calls_indirectly(const u8 *code)
{
	for (u32 i = 1; i < 7; i++)
		if (code[i] == 0xff && (code[i + 1] & 0x38) == 0x10)
			return true;
	return false;
}

bool frame_proof_holds(struct frame_place pc, bool returned, struct frame_place caller, u64 *left)
{
	cleanup(free) u8 *code = malloc(2 * REACH);
	u64 start, called;
	u8 before[8];
	s32 distance;

	if (!code || !image_read(caller.img, before, sizeof(before), caller.addr - sizeof(before)))
		return false;
	memcpy(&distance, before + 4, sizeof(distance));
	called = caller.addr + (u64)(s64)distance;
	if (before[3] == 0xe8 && caller.img == pc.img && has_frame(pc.img, called, pc.addr, returned, code, left))
		return true;
	start = find_start(pc.img, pc.addr, code);
	if (!start || !has_frame(pc.img, start, pc.addr, returned, code, left))
		return false;
	return calls_indirectly(before) ||
	       (before[3] == 0xe8 && goes_on(caller.img, called, start, VIA_MAX, code, left));
}
