/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What tells a caller from any other address, and where callers are guessed: code without unwind information. Part of
 * native_walk.c.
 */
#ifndef YRT_NATIVE_GUESS_H
#define YRT_NATIVE_GUESS_H

#include "find_region.h"
#include "find_rule.h"
#include "walk.h"

#define SCAN_WORDS      64          /* of the stack that are searched for a return address */
#define GUESS_FRAME_MAX (64u << 10) /* a frame whose register may be lost is believed to be no larger */

/*
 * The caller's registers after a step to pc with this stack pointer: what a callee may clobber is lost. A frame's CFA
 * lies above the callee's stack pointer, or the walk would never end; but a leaf may have nothing on the stack: its
 * return address is in a register, or its CFA is its caller's stack pointer (the JVM's interpreter is entered so), or
 * it has popped its return address, which is still there below (OCaml 4's calls of C).
 */
static inline int enter_caller(struct walk *w, u64 cfa, u64 pc, bool may_be_empty)
{
	if (cfa < w->reg[REG_SP] || (cfa == w->reg[REG_SP] && !(may_be_empty && w->leaf)))
		return STOP_NO_PROGRESS;
	w->reg[REG_SP] = cfa;
	w->reg[REG_PC] = pc;
	w->valid = (w->valid & ARCH_SAVED_MASK) | 1u << REG_SP | 1u << REG_PC;
	w->leaf = 0;
	return STOP_NONE;
}

/*
 * Is addr in known code, behind a call instruction? Code that can not be read (a forked child has not touched its page
 * yet) gives the benefit of the doubt. Forms: e8 rel32; ff /2 with 2 to 7 bytes.
 */
WALK_GLOBAL int behind_call(struct walk *w, u64 addr)
{
	const struct region *region;
	const u8 *slab;
	u8 code[8];

	WALK_CHECK(w);
	slab = walk_slab(w, w->regions);
	region = slab ? find_region(w, slab, addr - ARCH_CALL_BACK) : NULL;
	if (!region || region->unmapped)
		return false;
	if (!walk_read(w, code, sizeof(code), addr - sizeof(code)) || code[3] == 0xe8)
		return true;
	for (u32 i = 1; i < 7; i++)
		if (code[i] == 0xff && (code[i + 1] & 0x38) == 0x10)
			return true;
	return false;
}

/* What return_slot() gives of a frame whose return address is at no known distance above the stack pointer. */
#define SLOT_NOT_DESCRIBED 1 /* nothing but its code, if at all, or it is a VM's own code */
#define SLOT_BY_REGISTERS  2 /* by another register */
#define SLOT_SIGNAL        3 /* it is what a signal handler returns to */
#define SLOT_ROOT          4 /* it has none */

/* How far above the stack pointer a frame at addr has its return address. */
WALK_GLOBAL int return_slot(struct walk *w, u64 addr)
{
	const struct region *region;
	const struct cfi_rule *rule;
	const u8 *slab;
	s32 slot;

	WALK_CHECK(w);
	slab = walk_slab(w, w->regions);
	region = slab ? find_region(w, slab, addr) : NULL;
	if (!region || !region->table || region->runtime)
		return SLOT_NOT_DESCRIBED;
	rule = find_rule_here(w, region, addr);
	if (!rule || rule->kind == CFI_NONE || rule->flags & CFI_FROM_CODE)
		return SLOT_NOT_DESCRIBED;
	if (rule->kind == CFI_SIGNAL || rule->kind == CFI_BEFORE_SIGNAL)
		return SLOT_SIGNAL;
	if (rule->kind == CFI_ROOT)
		return SLOT_ROOT;
	slot = rule->slot[ARCH_SLOT_RA];
	if (rule->kind != CFI_REG || rule->cfa_reg != REG_SP || rule->ra_reg != CFI_NO_REG || slot & 1)
		return SLOT_BY_REGISTERS;
	slot = rule->cfa_off + (slot >> 1) * 8;
	return slot % 8 ? SLOT_BY_REGISTERS : slot;
}

/* Can a function return to pc? Behind a call, and to what a signal handler returns to. */
static inline __attribute__((always_inline)) bool is_returned_to(struct walk *w, u64 pc)
{
	return behind_call(w, pc) || return_slot(w, pc - ARCH_CALL_BACK) == SLOT_SIGNAL;
}

/*
 * Can what returns to pc have called code that nothing describes? Not by a direct call of code with a rule, unless that
 * went on by a jump.
 */
static inline __attribute__((always_inline)) bool calls_unknown(struct walk *w, u64 pc)
{
	s32 code[2];

	return !walk_read(w, code, sizeof(code), pc - sizeof(code)) || (u32)code[0] >> 24 != 0xe8 ||
	       return_slot(w, pc + (u64)(s64)code[1]) == SLOT_NOT_DESCRIBED;
}

/*
 * Can a frame that goes on at pc with this stack pointer be a caller? By its own rule, its return address can be one,
 * too. True where the rule takes more than the stack pointer, or the stack cannot be read.
 */
static inline __attribute__((always_inline)) bool has_caller(struct walk *w, u64 pc, u64 sp)
{
	s32 slot = return_slot(w, pc - ARCH_CALL_BACK);

	if (slot % 8)
		return true;
	return !walk_stack(w, sp + (u64)(s64)slot, &pc) || is_returned_to(w, pc);
}

enum scanned {
	SCAN_NONE,
	SCAN_JUMPED, /* if what was called there went on to here by a jump */
	SCAN_CALLED,
	SCAN_ABSENT
};

/*
 * Could the word at `at` of the stack be the return address? Notes the first that could after a jump. One word in a
 * function that the verifier checks once: in a loop it would look at all of it for each round.
 */
WALK_GLOBAL int scan_word(struct walk *w, u64 at)
{
	u64 pc;

	WALK_CHECK(w);
	if (!walk_stack(w, at, &pc))
		return SCAN_ABSENT;
	if (!behind_call(w, pc) || !has_caller(w, pc, at + 8))
		return SCAN_NONE;
	if (calls_unknown(w, pc))
		return SCAN_CALLED;
	if (!w->jumped)
		w->jumped = at;
	return SCAN_JUMPED;
}

/* Takes the word at `at` of the stack for the return address. */
static inline int take_word(struct walk *w, u64 at)
{
	u64 pc;

	if (!walk_stack(w, at, &pc))
		return STOP_STACK_ABSENT;
	walk_guesses(w);
	w->valid = 0;
	w->flags = FRAME_GUESS;
	return enter_caller(w, at + 8, pc, false);
}

/* Does rbp lead to a frame, whose return address this is? */
static inline __attribute__((always_inline)) bool is_framed(struct walk *w, u64 *next, u64 *pc)
{
	u64 fp = w->reg[REG_FP];

	return walk_has(w, REG_FP) && fp >= w->reg[REG_SP] && fp - w->reg[REG_SP] <= GUESS_FRAME_MAX &&
	       walk_stack(w, fp, next) && walk_stack(w, fp + 8, pc) && behind_call(w, *pc);
}

/*
 * Without CFI: the System V ABI lets rbp chain frames. It marks the outermost one by 0, too, but so does code that
 * keeps its data there: only rows identify a root.
 *
 * Code of a JIT that keeps no frame pointer (PCRE's, an FFI's callbacks) leaves rbp to a function further out: then it
 * was not this code that was called there. The first word above the stack pointer that could be a return address is
 * taken for it, and not one that an earlier call has left in the frame. What the frame saved is lost.
 */
WALK_GLOBAL int step_frame_pointer(struct walk *w)
{
	u64 fp, pc, next, at;
	int found = SCAN_NONE;
	u32 framed, n;

	WALK_CHECK(w);
	fp = next = w->reg[REG_FP];
	at = pc = w->reg[REG_SP];
	framed = is_framed(w, &next, &pc);
	n = !framed ? SCAN_WORDS : calls_unknown(w, pc) ? 0 : (u32)(fp - at + 7) / 8;
	framed = walk_launder(w, framed);
	n = walk_launder(w, n);
	w->jumped = 0;
	for (u32 i = 0; i < SCAN_WORDS && i < n && found < SCAN_CALLED; i++, at += 8)
		found = scan_word(w, at);
	if (found == SCAN_ABSENT)
		return STOP_STACK_ABSENT;
	if (found == SCAN_CALLED)
		return take_word(w, at - 8);
	if (!framed)
		return w->jumped ? take_word(w, w->jumped) : STOP_NO_CFI;
	walk_guesses(w);
	w->reg[REG_FP] = next;
	w->valid = 1u << REG_FP;
	w->flags = FRAME_GUESS | FRAME_CHAINED;
	return enter_caller(w, fp + 16, pc, false);
}

#endif
