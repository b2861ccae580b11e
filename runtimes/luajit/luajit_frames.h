/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What the Lua stack is made of: lj_obj.h, lj_frame.h of LuaJIT 2.1. A frame is two words with 64-bit references
 * (GC64): the function, tagged, at base - 16, the link at base - 8; without, both are halves of the word at base - 8.
 */
#ifndef YRT_LUAJIT_FRAMES_H
#define YRT_LUAJIT_FRAMES_H

#include "luajit.h"

#define LJ_FRAMES_A_STEP 32 /* Lua frames that one step follows */
#define LJ_UNLINKED_MAX  4  /* cframes without Lua frames in a row (lua_cpcall, trace exit), enough in practice */
#define LJ_FRAMES_PUSH   (-2)

#define LJ_ALWAYS_INLINE static inline __attribute__((always_inline)) /* BPF has five arguments */

#define LJ_FFID_C     1 /* an ordinary C function; above: builtins; 0: Lua */
#define LJ_GCT_THREAD 6 /* ~LJ_TTHREAD */
#define LJ_GCT_FUNC   8 /* ~LJ_TFUNC */

/* GC64: the upper 17 bits of a slot are a tag, which no link has */
#define LJ_TAG_SHIFT  47
#define LJ_TAG_FUNC   (~(u64)LJ_GCT_FUNC & 0x1ffff)
#define LJ_TAG_THREAD (~(u64)LJ_GCT_THREAD & 0x1ffff)
#define LJ_GC_POINTER ((1ull << LJ_TAG_SHIFT) - 1)
/* else the upper half of a value is a tag from here on, or belongs to a number */
#define LJ_TAG32_MIN 0xfff00000u

#define LJ_LINK_BOTTOM       (~0ull)     /* nil */
#define LJ_LINK_BOTTOM32     0xfffffff9u /* the tag of a thread */
#define LJ_CONT_FFI_CALLBACK 1

#define LJ_WORDS        8  /* room for an object's head, a power of two for the verifier */
#define LJ_OBJECT_BYTES 48 /* read of it: covers all that is needed of a GCfunc or a cframe */

/* The cursor in use. */
static inline struct walk_cursor *lj_cursor(struct walk *w)
{
	u32 i = w->vm_state - 1;

	WALK_BARRIER(i);
	return &w->cursor[i & (WALK_CURSORS - 1)];
}

static inline u64 lj_word_at(const u64 *words, u32 offset)
{
	return words[(offset >> 3) & (LJ_WORDS - 1)];
}

static inline u8 lj_byte_at(const u64 *words, u32 offset)
{
	return (u8)(lj_word_at(words, offset) >> (offset & 7) * 8);
}

static inline u64 lj_half(u64 word, u32 offset)
{
	return (u32)(word >> (offset & 4) * 8);
}

static inline u64 lj_ref_at(const struct luajit_vm *vm, const u64 *words, u32 offset)
{
	u64 word = lj_word_at(words, offset);

	return vm->gc64 ? word : lj_half(word, offset);
}

/* Words of a frame: function and link. */
static inline u32 lj_frame_words(const struct luajit_vm *vm)
{
	return vm->gc64 ? 2 : 1;
}

/* The function and the link of the frame whose link lies at `at`. */
LJ_ALWAYS_INLINE bool lj_read_frame(struct walk *w, const struct luajit_vm *vm, u64 at, u64 *slot, u64 *link)
{
	if (!walk_vm(w, at, link))
		return false;
	if (vm->gc64)
		return walk_vm(w, at - 8, slot);
	*slot = (u32)*link;
	*link >>= 32;
	return true;
}

/* Is this a link, and not a value? */
static inline bool lj_is_link(const struct luajit_vm *vm, u64 link)
{
	return vm->gc64 ? link >> LJ_TAG_SHIFT == 0 : link < LJ_TAG32_MIN;
}

static inline bool lj_may_be_function(const struct luajit_vm *vm, u64 slot)
{
	return vm->gc64 ? slot >> LJ_TAG_SHIFT == LJ_TAG_FUNC : slot != 0;
}

#endif
