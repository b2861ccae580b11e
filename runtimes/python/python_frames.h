/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the parts of the Python walker share: words of what was read, and pushing a frame. */
#ifndef YRT_PYTHON_FRAMES_H
#define YRT_PYTHON_FRAMES_H

#include "walk.h"
#include "python.h"

#define PY_WINDOW 1024 /* bytes of a data stack that are read at once, to the beginning of the window */
#define PY_ALONE  (WALK_WINDOW_WORDS / 2) /* words of the window from here on: what was read by itself */

/* WALK_SCRATCH_WORDS is a power of two: offsets of the configuration are masked, not believed. */
static inline u64 py_word_at(const u64 *words, u32 offset)
{
	return words[(offset >> 3) & (WALK_SCRATCH_WORDS - 1)];
}

static inline u32 py_half_at(const u64 *words, u32 offset)
{
	return (u32)(py_word_at(words, offset) >> (offset & 4) * 8);
}

static inline struct walk_cursor *py_cursor(struct walk *w, const struct python_vm *vm)
{
	u32 i = walk_cursor(w, vm->code_type);

	if (i >= WALK_CURSORS)
		return NULL;
	WALK_BARRIER(i);
	return &w->cursor[i & (WALK_CURSORS - 1)];
}

/* A word of the interpreter frame that begins at word i of the window. */
static inline u64 py_frame_word(const struct walk *w, u64 i, u32 offset)
{
	return w->vm.word[(i + (offset >> 3)) & (WALK_WINDOW_WORDS - 1)];
}

static inline u32 py_frame_half(const struct walk *w, u64 i, u32 offset)
{
	return (u32)(py_frame_word(w, i, offset) >> (offset & 4) * 8);
}

static inline u8 py_frame_byte(const struct walk *w, u64 i, u32 offset)
{
	return (u8)(py_frame_word(w, i, offset) >> (offset & 7) * 8);
}

/* Pushes the frame of a code object of which this is known. */
static inline __attribute__((always_inline)) int py_push_known(struct walk *w, u64 code, u64 facts, u64 pos)
{
	if (!facts)
		return STOP_NONE;
	if (pos >= PYTHON_NO_POS || pos > (u32)facts)
		pos = PYTHON_NO_POS;
	if (!walk_push_here(w, frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, code),
	            python_detail((u32)(facts >> PYTHON_COOKIE_BITS), (u32)pos)))
		return STOP_DEPTH;
	return STOP_NONE;
}

/*
 * Reads what is pushed of a code object to c->more[5], c->more[6]: its cookie in the upper half, its number of code
 * units, if that can be known, in the lower one; 0: it is a shim, which is not pushed. vm, c: those of w.
 */
WALK_STEP int python_read_code(struct walk *w, const struct python_vm *vm, struct walk_cursor *c, u64 code);

/*
 * The same, read if need be. The code object of the frame before is known: as long as the walk lasts, its frame keeps
 * it alive, so this is the same one.
 */
static inline __attribute__((always_inline)) int py_push(
        struct walk *w, const struct python_vm *vm, struct walk_cursor *c, u64 code, u64 pos)
{
	int stop = STOP_NONE;

	if (code != c->more[5] || !c->more[6])
		stop = python_read_code(w, vm, c, code);
	return stop ? stop : py_push_known(w, code, c->more[6], pos);
}

/*
 * Called where the Python frames of a native frame end with the coroutine of the running task: pushes the coroutines of
 * the tasks that await it, in python_frames_walk.c. STOP_DEPTH: there was no room. Another reason: some are missing.
 */
WALK_STEP int python_awaiters(struct walk *w);

#endif
