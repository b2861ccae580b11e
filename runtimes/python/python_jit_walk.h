/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Part of python_walk.c: the way out of code that CPython makes at run time, by its JIT compiler or as trampolines of
 * -X perf.
 */
#ifndef YRT_PYTHON_JIT_WALK_H
#define YRT_PYTHON_JIT_WALK_H

#include "python_frames.h"

/*
 * Goes to the loop that called 3.14's stub, whose return address is at `at` of the stack. The loop's frame has a frame
 * pointer.
 */
WALK_GLOBAL int python_leave_stub(struct walk *w, const struct python_vm *vm, u64 at)
{
	const u32 regs[] = {DWREG_RBX, DWREG_R12, DWREG_R13, DWREG_R14, DWREG_R15, REG_PC};
	u32 i;

	WALK_CHECK(w);
	WALK_CHECK(vm);
	for (i = 0; i < PYTHON_JIT_STUB_WORDS; i++)
		if (!walk_stack(w, at + 8 + 8 * i, &w->reg[regs[i]]))
			return STOP_STACK_ABSENT;
	w->reg[REG_SP] = at + 8 + 8 * PYTHON_JIT_STUB_WORDS;
	w->reg[REG_FP] = w->reg[REG_SP] + vm->jit_locals;
	w->valid = ARCH_SAVED_MASK | 1u << REG_SP | 1u << REG_PC;
	return STOP_NONE;
}

/* Stubs are at the start of pages. Where they are not, only those that the maps show are found. */
static inline bool py_may_be_stub(const struct python_vm *vm, u64 addr)
{
	return (addr & (WALK_PAGE - 1)) == PYTHON_JIT_STUB_BACK || (addr >= vm->jit_start && addr < vm->jit_end);
}

/* Is this word of the stack the return address of compiled code? Then moves to what called it. PY_NOT_OURS: it is not.
 */
WALK_GLOBAL int python_jit_word(struct walk *w, u64 at)
{
	const struct python_vm *vm;
	u64 word, code;

	WALK_CHECK(w);
	vm = walk_arena(w, w->region.vm);
	if (!vm)
		return STOP_ARENA;
	if (!walk_stack(w, at, &word))
		return STOP_STACK_ABSENT;
	w->leaf = 0;
	if (!vm->jit_return)
		return vm->jit_locals && py_may_be_stub(vm, word) && walk_read(w, &code, sizeof(code), word) &&
		                       code == PYTHON_JIT_STUB
		               ? python_leave_stub(w, vm, at)
		               : PY_NOT_OURS;
	if (word != vm->jit_return)
		return PY_NOT_OURS;
	w->reg[REG_PC] = word;
	w->reg[REG_SP] = at + 8;
	w->valid &= 1u << REG_FP | 1u << REG_SP | 1u << REG_PC;
	return STOP_NONE;
}

/* How many registers 3.14's stub has on the stack at this offset into it. */
static inline u64 py_stub_depth(u64 offset)
{
	if (offset < 9)
		return offset / 2;
	return offset <= PYTHON_JIT_STUB_BACK ? 5 : (PYTHON_JIT_STUB_END - 1 - offset) / 2;
}

/* Out of 3.14's stub itself. PY_NOT_OURS: it is not there. */
WALK_GLOBAL int python_jit_stub(struct walk *w)
{
	u64 offset, at, code, pc;

	WALK_CHECK(w);
	offset = w->reg[REG_PC] & (WALK_PAGE - 1);
	if (!w->leaf || offset >= PYTHON_JIT_STUB_END || !walk_read(w, &code, sizeof(code), w->reg[REG_PC] - offset) ||
	        code != PYTHON_JIT_STUB_PUSH)
		return PY_NOT_OURS;
	at = w->reg[REG_SP] + 8 * py_stub_depth(offset);
	if (!walk_stack(w, at, &pc))
		return STOP_STACK_ABSENT;
	w->reg[REG_PC] = pc;
	w->reg[REG_SP] = at + 8;
	w->valid &= 1u << REG_FP | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	return STOP_NONE;
}

/* Compiled code has no unwind information; the stack shows where it was called, and the loop's frame there leads to its
 * frames. */
WALK_GLOBAL int python_jit(struct walk *w)
{
	u32 i, leaf;
	int stop;

	WALK_CHECK(w);
	leaf = w->leaf;
	stop = python_jit_stub(w);
	for (i = 0; i < PYTHON_JIT_WORDS && stop == PY_NOT_OURS; i++)
		stop = python_jit_word(w, w->reg[REG_SP] + 8 * i);
	if (!stop)
		return STOP_NONE;
	w->leaf = leaf;
	if (w->region.part == PYTHON_JIT_LATE)
		return leaf ? STOP_NO_REGION : STOP_BAD_RETADDR;
	return native_step(w, 0);
}

/* Does a trampoline at these bytes of its code have a word on its stack? Not before push or sub, and not before ret. */
static inline bool py_has_word(u32 code)
{
	u8 first = (u8)code;

	return first != 0xf3 && first != 0x55 && first != 0xc3 && (code & 0xffffff) != 0xec8348;
}

/*
 * The kind of trampoline that a walk is in, in memory that held no code when the maps were read; 0: none. They begin at
 * least 16 bytes apart, with endbr64 or without, and are recognised by call *%rcx and the release of their word behind
 * it.
 */
WALK_GLOBAL int python_late_trampoline(struct walk *w)
{
	u64 code[2], call;

	WALK_CHECK(w);
	if (!walk_read(
	            w, code, sizeof(code), w->leaf ? w->reg[REG_PC] & ~15ull : w->reg[REG_PC] - PYTHON_TRAMPOLINE_CALL))
		return 0;
	call = !w->leaf ? code[0] : (u32)code[0] == PYTHON_ENDBR64 ? code[1] : code[0] >> 32 | code[1] << 32;
	if ((u32)call == PYTHON_TRAMPOLINE_POP)
		return PYTHON_TRAMPOLINE_FP;
	return (call & PYTHON_TRAMPOLINE_MASK) == PYTHON_TRAMPOLINE_ADD ? PYTHON_TRAMPOLINE : 0;
}

/* Out of a trampoline of -X perf. It has no frame: the Python function that it is called for has one. */
WALK_GLOBAL int python_trampoline_step(struct walk *w, u32 part)
{
	u64 at, pc;
	u32 code = 0;

	WALK_CHECK(w);
	at = w->reg[REG_SP];
	if (w->leaf && !walk_read(w, &code, sizeof(code), w->reg[REG_PC]))
		return STOP_VM_ABSENT;
	if (!w->leaf || py_has_word(code)) {
		if (part == PYTHON_TRAMPOLINE_FP) {
			if (!walk_stack(w, at, &w->reg[REG_FP]))
				return STOP_STACK_ABSENT;
			w->valid |= 1u << REG_FP;
		}
		at += 8;
	}
	if (!walk_stack(w, at, &pc))
		return STOP_STACK_ABSENT;
	w->reg[REG_PC] = pc;
	w->reg[REG_SP] = at + 8;
	w->valid = (w->valid & ARCH_SAVED_MASK) | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	return STOP_NONE;
}

#endif
