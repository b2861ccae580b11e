/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Part of hotspot_walk.c: what the code around a leaf's program counter has done to the stack pointer so far. */
#ifndef YRT_HOTSPOT_PROLOGUE_WALK_H
#define YRT_HOTSPOT_PROLOGUE_WALK_H

#include "walk.h"
#include "hotspot.h"

#define CODE_BEFORE    16
#define CODE_BYTES     (WALK_SCRATCH_WORDS * 8)
#define CODE_AFTER     (CODE_BYTES - CODE_BEFORE)
#define PROLOGUE_AFTER 16 /* behind frame_complete there is none but that of C1's code for on-stack replacement */
#define TAIL_STEPS     6

/* Where the caller of a compiled frame is, from the leaf's stack pointer. */
#define FRAME_WHOLE       0 /* the frame stands */
#define FRAME_NONE_YET    1 /* nothing but the return address, at rsp */
#define FRAME_RBP         2 /* rbp and the return address */
#define FRAME_RBP_UNSAVED 3 /* it stands, but rbp is in its register */
#define TAIL_RETURNS      (-1)

static inline u64 hs_code_begin(const struct walk *w, const struct hotspot_vm *vm, u64 blob)
{
	return vm->code_begin.size == 8 ? hs_field(w, vm->code_begin) : blob + hs_field(w, vm->code_begin);
}

/* The machine code around the leaf's pc: byte i, counted from pc. */
static inline u32 hs_byte(const struct walk *w, u32 i)
{
	return ((const u8 *)w->scratch)[(CODE_BEFORE + i) & (CODE_BYTES - 1)];
}

static inline u32 hs_half(const struct walk *w, u32 i)
{
	return hs_byte(w, i) | hs_byte(w, i + 1) << 8 | hs_byte(w, i + 2) << 16 | hs_byte(w, i + 3) << 24;
}

/* Is `sub rsp, size` at i? */
static inline bool hs_makes_room(const struct walk *w, u32 i, u32 size)
{
	if (hs_byte(w, i) != 0x48 || hs_byte(w, i + 2) != 0xec)
		return false;
	return hs_byte(w, i + 1) == 0x83 ? hs_byte(w, i + 3) == size
	                                 : hs_byte(w, i + 1) == 0x81 && hs_half(w, i + 3) == size;
}

/* mov [rsp + x], rbp */
static inline bool hs_saves_rbp(const struct walk *w, u32 i)
{
	return hs_byte(w, i) == 0x48 && hs_byte(w, i + 1) == 0x89 && (hs_byte(w, i + 2) & 0x3f) == 0x2c &&
	       hs_byte(w, i + 3) == 0x24;
}

/* mov [rsp + x], some register, at pc */
static inline bool hs_saves(const struct walk *w)
{
	return (hs_byte(w, 0) & 0xfb) == 0x48 && hs_byte(w, 1) == 0x89 && (hs_byte(w, 2) & 7) == 4 &&
	       hs_byte(w, 3) == 0x24;
}

/* mov rbp, rsp, in both forms */
static inline bool hs_sets_fp(const struct walk *w, u32 i)
{
	return hs_byte(w, i) == 0x48 && ((hs_byte(w, i + 1) == 0x8b && hs_byte(w, i + 2) == 0xec) ||
	                                        (hs_byte(w, i + 1) == 0x89 && hs_byte(w, i + 2) == 0xe5));
}

/* push rbp, or that and mov rbp, rsp, just before i: of calls that align the stack, and slow paths, sub rsp has none.
 */
static inline bool hs_is_pushed(const struct walk *w, u32 i)
{
	return hs_byte(w, i - 1) == 0x55 || (hs_byte(w, i - 4) == 0x55 && hs_sets_fp(w, i - 3));
}

/* Is only a touch of the stack further down (mov [rsp - x], eax) between pc and the push before i? */
static inline bool hs_begins(const struct walk *w, u32 i)
{
	u32 push = hs_byte(w, i - 1) == 0x55 ? i - 1 : i - 4;

	return !push || (push == 7 && hs_byte(w, 0) == 0x89 && hs_byte(w, 1) == 0x84 && hs_byte(w, 2) == 0x24);
}

#define PROLOGUE_NOT_HERE (-1)
#define PROLOGUE_OVER     (-2)

/* What the prologue still has to do, if its rest has `sub rsp` at i. left: see hotspot_prologue(). */
WALK_GLOBAL int hotspot_prologue_at(struct walk *w, u32 i, u32 frame, u32 left)
{
	WALK_CHECK(w);
	if (i >= (left ? left : PROLOGUE_AFTER))
		return PROLOGUE_OVER;
	if (hs_makes_room(w, i, frame - 16) && hs_is_pushed(w, i)) {
		if (!i || (i == 3 && hs_sets_fp(w, 0)))
			return FRAME_RBP;
		if (left || hs_begins(w, i))
			return FRAME_NONE_YET;
	}
	if (left && hs_makes_room(w, i, frame - 8))
		return FRAME_NONE_YET;
	return PROLOGUE_NOT_HERE;
}

/*
 * How far the prologue has come. left: bytes of code from pc to its end; 0: pc is behind it, but may be in the one for
 * on-stack replacement.
 */
WALK_GLOBAL int hotspot_prologue(struct walk *w, u32 left, u32 frame)
{
	int state = PROLOGUE_NOT_HERE;

	WALK_CHECK(w);
	for (u32 i = 0; i < CODE_AFTER - 8 && state == PROLOGUE_NOT_HERE; i++)
		state = hotspot_prologue_at(w, i, frame, left);
	if (state >= 0)
		return state;
	if (left && frame == 16 && hs_byte(w, 0) == 0x55)
		return FRAME_NONE_YET;
	return left && hs_saves_rbp(w, 0) ? FRAME_RBP_UNSAVED : FRAME_WHOLE;
}

/*
 * The length of the instruction at i if it may be between the end of a frame and ret: polls of all versions, checks of
 * a pending exception. 0: it may not.
 */
static inline u32 hs_tail_length(const struct walk *w, u32 i)
{
	u32 a = hs_byte(w, i), b = hs_byte(w, i + 1), c = hs_byte(w, i + 2);

	if (a == 0x49 && b == 0x3b && c == 0xa7) /* cmp rsp, [r15 + x] */
		return 7;
	if (a == 0x49 && b == 0x3b && c == 0x67)
		return 4;
	if (a == 0x0f && (b == 0x87 || b == 0x85)) /* ja, jne */
		return 6;
	if (a == 0x77 || a == 0x75 || a == 0x74)
		return 2;
	if (a == 0x85 && b == 0x05) /* test [rip + x], eax */
		return 6;
	if (a == 0x4d && b == 0x8b && c == 0x97) /* mov r10, [r15 + x] */
		return 7;
	if (a == 0x4d && b == 0x8b && c == 0x57)
		return 4;
	if (a == 0x49 && b == 0xba) /* mov r10, imm */
		return 10;
	if ((a == 0x41 || a == 0x45) && b == 0x85 && (c == 0x02 || c == 0x12)) /* test [r10], eax or r10d */
		return 3;
	if (a == 0x49 && b == 0x83 && c == 0x7f) /* cmp [r15 + x], 0 */
		return 5;
	if (a == 0x49 && ((b == 0x83 && c == 0xbf) || (b == 0x81 && c == 0x7f)))
		return 8;
	if (a == 0x49 && b == 0x81 && c == 0xbf)
		return 11;
	if (a == 0x41 && b == 0xf6 && c == 0x47) /* test [r15 + x], imm8 */
		return 5;
	if (a == 0x41 && b == 0xf6 && c == 0x87)
		return 8;
	if (a == 0x4c && b == 0x8d && c == 0x15) /* lea r10, [rip + x] */
		return 7;
	if (a == 0x4d && b == 0x89 && c == 0x97) /* mov [r15 + x], r10 */
		return 7;
	return 0;
}

/*
 * Is there a return, or the jump of a poll that found something to do (behind mov [r15 + x], r10), or of a method with
 * ReservedStackAccess (jb behind cmp rsp, [r15 + x]; macroAssembler_x86.cpp: reserved_stack_check())?
 */
static inline bool hs_returns(const struct walk *w, u32 i)
{
	u32 a = hs_byte(w, i), before = hs_byte(w, i - 7) | hs_byte(w, i - 6) << 8 | hs_byte(w, i - 5) << 16;

	if (a == 0x72 || (a == 0x0f && hs_byte(w, i + 1) == 0x82))
		return before == 0xa73b49;
	return a == 0xc3 || (a == 0xe9 && before == 0x97894d);
}

/* add rsp, size, just before i */
static inline bool hs_took_room(const struct walk *w, u32 i, u32 size)
{
	if (hs_byte(w, i - 4) == 0x48 && hs_byte(w, i - 3) == 0x83 && hs_byte(w, i - 2) == 0xc4)
		return hs_byte(w, i - 1) == size;
	return hs_byte(w, i - 7) == 0x48 && hs_byte(w, i - 6) == 0x81 && hs_byte(w, i - 5) == 0xc4 &&
	       hs_half(w, i - 4) == size;
}

/*
 * Does a jump at i lead out of a method whose frame is gone? This is how a method leaves an exception to a stub: add
 * rsp, frame - 16; pop rbp; jmp.
 */
static inline bool hs_leaves(const struct walk *w, u32 i, u32 frame)
{
	return hs_byte(w, i) == 0xe9 && hs_byte(w, i - 1) == 0x5d &&
	       (frame == 16 || hs_took_room(w, i - 1, frame - 16));
}

/* Out of line, because what the verifier knows of i would multiply: hs_tail_length(), or TAIL_RETURNS. */
WALK_GLOBAL int hotspot_tail(struct walk *w, u32 i)
{
	WALK_CHECK(w);
	return hs_returns(w, i) ? TAIL_RETURNS : (int)hs_tail_length(w, i);
}

/* Is the code at pc all that is left of an epilogue, or of a poll's stub, once rsp is back? */
WALK_GLOBAL int hotspot_epilogue(struct walk *w, u32 frame)
{
	u32 i = 0;
	int state = FRAME_NONE_YET, length;

	WALK_CHECK(w);
	if (hs_byte(w, 0) == 0x5d || hs_byte(w, 0) == 0xc9) { /* pop rbp, leave */
		if (hs_byte(w, 0) == 0xc9)
			return FRAME_WHOLE;
		state = FRAME_RBP;
		i = 1;
	}
	if (hs_leaves(w, i, frame))
		return state;
	for (u32 n = 0; n < TAIL_STEPS; n++) {
		length = hotspot_tail(w, i);
		if (length == TAIL_RETURNS)
			return state;
		if (!length)
			break;
		i += (u32)length;
	}
	return FRAME_WHOLE;
}

/* How much of its frame the leaf has. left: bytes up to where the frame is complete. */
WALK_GLOBAL int hotspot_leaf(struct walk *w, u32 left, u32 frame)
{
	int state;

	WALK_CHECK(w);
	if (!walk_read(w, w->scratch, CODE_BYTES, w->reg[REG_PC] - CODE_BEFORE))
		return FRAME_WHOLE;
	if (left > CODE_AFTER - 8)
		return FRAME_NONE_YET;
	state = hotspot_prologue(w, left, frame);
	if (state)
		return state;
	return hotspot_epilogue(w, frame);
}

#endif
