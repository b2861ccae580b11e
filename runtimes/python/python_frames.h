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

/* Pushes the frame of a code object. */
static inline __attribute__((always_inline)) int py_push(struct walk *w, const struct python_vm *vm, u64 code, u64 pos)
{
	u64 *words = w->scratch;
	struct python_identity id;
	u32 head = vm->ob_type, cookie;

	if (!walk_read(w, words, PYTHON_OBJECT_BYTES, code + head))
		return STOP_VM_ABSENT;
	if (words[0] != vm->code_type)
		return STOP_VM_BROKEN;
	id.code = py_word_at(words, vm->co_code - head);
	id.consts = py_word_at(words, vm->co_consts - head);
	id.names = py_word_at(words, vm->co_names - head);
	id.filename = py_word_at(words, vm->co_filename - head);
	id.name = py_word_at(words, vm->co_name - head);
	id.firstlineno = py_half_at(words, vm->co_firstlineno - head);
	if (!id.firstlineno && id.code <= PYTHON_SHIM_UNITS)
		return STOP_NONE;
	cookie = python_cookie(&id);
	if (pos >= PYTHON_NO_POS || pos > id.code)
		pos = PYTHON_NO_POS;
	if (!walk_push_here(w, frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, code), python_detail(cookie, pos)))
		return STOP_DEPTH;
	return STOP_NONE;
}

/*
 * Called where the Python frames of a native frame end with the coroutine of the running task: pushes the coroutines of
 * the tasks that await it, in python_frames_walk.c. STOP_DEPTH: there was no room. Another reason: some are missing.
 */
WALK_STEP int python_awaiters(struct walk *w);

#endif
