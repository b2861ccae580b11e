/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* lua_State and the running one of a global_State, as the walker reads them. */
#ifndef YRT_LUAJIT_THREAD_WALK_H
#define YRT_LUAJIT_THREAD_WALK_H

#include "luajit_frames.h"

#define LJ_THREAD_BYTES 96

struct lj_thread { /* of a lua_State */
	u64 base, stack, maxstack, cframe, g;
	bool steady; /* base is within the stack, which is not being reallocated */
};

static inline u64 lj_thread_word(const u64 *words, u32 offset)
{
	return words[(offset >> 3) & (WALK_SCRATCH_WORDS - 1)];
}

static inline u64 lj_thread_ref(const struct luajit_vm *vm, const u64 *words, u32 offset)
{
	u64 word = lj_thread_word(words, offset);

	return vm->gc64 ? word : lj_half(word, offset);
}

static inline int lj_read_thread(struct walk *w, const struct luajit_vm *vm, u64 l, struct lj_thread *ret)
{
	u64 *words = w->scratch;

	if (!walk_read(w, words, LJ_THREAD_BYTES, l))
		return STOP_VM_ABSENT;
	ret->base = lj_thread_word(words, vm->l_base);
	ret->stack = lj_thread_ref(vm, words, vm->l_stack);
	ret->maxstack = lj_thread_ref(vm, words, vm->l_maxstack);
	ret->cframe = lj_thread_word(words, vm->l_cframe) & LUAJIT_CFRAME_MASK;
	ret->g = lj_thread_ref(vm, words, vm->l_glref);
	if ((u8)(lj_thread_word(words, vm->l_gct) >> (vm->l_gct & 7) * 8) != LJ_GCT_THREAD)
		return STOP_VM_BROKEN;
	ret->steady = ret->base > ret->stack && ret->base <= ret->maxstack && !(ret->base & 7);
	return STOP_NONE;
}

/* global_State.cur_L and jit_base, which lie side by side. */
static inline bool lj_read_running(struct walk *w, const struct luajit_vm *vm, u64 g, u64 *l, u64 *jit_base)
{
	u64 *words = w->scratch;

	if (!walk_read(w, words, 16, g + vm->g_cur_l))
		return false;
	*l = vm->gc64 ? words[0] : (u32)words[0];
	*jit_base = vm->gc64 ? words[1] : words[0] >> 32;
	return true;
}

static inline bool lj_in_stack(const struct lj_thread *t, u64 base)
{
	return base > t->stack + 8 && base <= t->maxstack;
}

#endif
