/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>

#include "cfi_internal.h"

/* Where struct sigcontext keeps these, counted from r8; the kernel's <asm/sigcontext.h>. */
static const struct {
	u8 reg;
	s32 offset;
} sigcontext[] = {
        {DWREG_R8, 0},
        {DWREG_R12, 32},
        {DWREG_R13, 40},
        {DWREG_R14, 48},
        {DWREG_R15, 56},
        {DWREG_RBP, 80},
        {DWREG_RBX, 88},
        {DWREG_RSP, 120},
        {DWREG_RIP, 128},
};

/* All registers lie in a struct sigcontext above rsp: the return from a signal handler. */
static bool is_signal(const struct cfi_state *s)
{
	s32 at = s->saved[DWREG_R8].offset;

	if (s->saved[DWREG_R8].how != HOW_BASE || s->saved[DWREG_RIP].how != HOW_BASE)
		return false;
	for (size_t i = 0; i < sizeof(sigcontext) / sizeof(sigcontext[0]); i++) {
		const struct cfi_saved *saved = &s->saved[sigcontext[i].reg];

		if (saved->how != HOW_BASE || saved->reg != REG_SP ||
		        (s64)saved->offset != (s64)at + sigcontext[i].offset)
			return false;
	}
	return s->cfa.kind == CFI_DEREF && s->cfa.reg == REG_SP && s->cfa.offset == s->saved[DWREG_RSP].offset &&
	       !s->cfa.add;
}

struct cfi_rule cfi_bare_rule(enum cfi_kind kind)
{
	return (struct cfi_rule){.kind = (u8)kind, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};
}

static void rule_clear(struct cfi_rule *rule, u8 kind)
{
	*rule = cfi_bare_rule(kind);
}

static s16 slot_at(s64 offset, u32 base)
{
	if (offset % 8 || offset / 8 > INT16_MAX / 2 || offset / 8 <= INT16_MIN / 2 + 1)
		return CFI_UNDEFINED;
	return cfi_slot((s32)offset, base);
}

static s16 slot_of(const struct cfi_state *state, const struct cfi_saved *saved, struct cfi_rule *rule)
{
	switch (saved->how) {
	case HOW_UNSPECIFIED:
	case HOW_SAME:
		return CFI_SAME;
	case HOW_OFFSET:
		return slot_at(saved->offset, 0);
	case HOW_BASE:
		if (state->cfa.kind == CFI_REG && state->cfa.reg == saved->reg)
			return slot_at((s64)saved->offset - state->cfa.offset, 0);
		if (rule->slot_reg == CFI_NO_REG)
			rule->slot_reg = saved->reg;
		return rule->slot_reg == saved->reg ? slot_at(saved->offset, 1) : CFI_UNDEFINED;
	default:
		return CFI_UNDEFINED;
	}
}

/* False: the caller's pc cannot be found. */
static bool set_return(const struct cfi_state *state, const struct cfi_saved *ra, struct cfi_rule *rule)
{
	rule->slot[ARCH_SLOT_RA] = CFI_UNDEFINED;
	if (ra->how == HOW_REGISTER) {
		rule->ra_reg = ra->reg;
		return true;
	}
	if (ra->how != HOW_OFFSET && ra->how != HOW_BASE)
		return false;
	rule->slot[ARCH_SLOT_RA] = slot_of(state, ra, rule);
	return rule->slot[ARCH_SLOT_RA] != CFI_UNDEFINED;
}

/* A row's stack pointer is its CFA. longjmp() and setcontext() say otherwise, for some instructions. */
static bool stack_is_cfa(const struct cfi_state *state)
{
	u8 how = state->saved[REG_SP].how;

	return how == HOW_UNSPECIFIED || how == HOW_SAME || how == HOW_UNDEFINED;
}

/*
 * glibc's longjmp(): the stack pointer to be is in one register already, the rest lies in a buffer at another. GHC's
 * StgRun(): all is above the stack pointer, which is its CFA.
 */
static bool is_jump(const struct cfi_state *state)
{
	return state->saved[REG_SP].how == HOW_REGISTER && state->cfa.kind == CFI_REG;
}

/* The same with the stack pointer to be as CFA. */
static struct cfi_state with_stack_as_cfa(const struct cfi_state *jump)
{
	struct cfi_state state = *jump;
	s32 offset;

	for (u32 i = 0; i < ARCH_NREGS; i++) {
		struct cfi_saved *saved = &state.saved[i];

		if (saved->how != HOW_OFFSET)
			continue;
		if (__builtin_add_overflow(saved->offset, jump->cfa.offset, &offset))
			saved->how = HOW_LOST;
		else
			*saved = (struct cfi_saved){.how = HOW_BASE, .reg = jump->cfa.reg, .offset = offset};
	}
	state.cfa =
	        (struct cfi_cfa){.kind = CFI_REG, .reg = jump->saved[REG_SP].reg, .offset = jump->saved[REG_SP].offset};
	state.saved[REG_SP].how = HOW_SAME;
	return state;
}

/*
 * gcc's __builtin_eh_return(), by which libgcc's unwinder goes to a landing pad: all registers are those of the
 * function that catches, its stack pointer will be rcx + 8, and the word at rcx is where it goes on. The rows still
 * have the slots that the registers were restored from, counted from this CFA, where they are not (gcc 4 to 15,
 * ix86_expand_epilogue()). The landing pad may be the first byte of its piece of code.
 */
static bool is_eh_return(const struct cfi_state *state, const struct cfi_saved *ra)
{
	u8 fp = state->saved[REG_FP].how;

	return state->cfa.kind == CFI_REG && state->cfa.reg == DWREG_RCX && state->cfa.offset == 8 &&
	       ra->how == HOW_OFFSET && ra->offset == -8 && (fp == HOW_UNSPECIFIED || fp == HOW_SAME);
}

static void rule_eh_return(struct cfi_rule *rule)
{
	*rule = cfi_plain_rule(CFI_REG);
	rule->cfa_reg = DWREG_RCX;
	rule->flags = CFI_SIGNAL_FRAME;
}

/*
 * OCaml 5's runtime says 'S' of the functions that change between OCaml's stacks and C's, as debuggers expect no order
 * of stacks there. But these are called: the return address is right below the CFA.
 */
static u16 flags_of(const struct cfi_cie *cie, const struct cfi_rule *rule)
{
	bool called = rule->ra_reg == CFI_NO_REG && rule->slot[ARCH_SLOT_RA] == cfi_slot(-8, 0);

	return cie->signal && !called ? CFI_SIGNAL_FRAME : 0;
}

void cfi_rule_of(const struct cfi_state *state, const struct cfi_cie *cie, struct cfi_rule *ret)
{
	const struct cfi_saved *ra = &state->saved[cie->return_column];
	struct cfi_state jump;

	if (is_jump(state)) {
		jump = with_stack_as_cfa(state);
		return cfi_rule_of(&jump, cie, ret);
	}
	if (ra->how == HOW_UNDEFINED)
		return rule_clear(ret, CFI_ROOT);
	if (is_signal(state)) {
		rule_clear(ret, CFI_SIGNAL);
		ret->cfa_reg = REG_SP;
		ret->cfa_off = state->saved[DWREG_R8].offset;
		ret->flags = CFI_SIGNAL_FRAME;
		return;
	}
	if (is_eh_return(state, ra))
		return rule_eh_return(ret);
	rule_clear(ret, state->cfa.kind);
	if (state->cfa.kind == CFI_NONE || state->cfa.kind == CFI_UNSUPPORTED || !stack_is_cfa(state) ||
	        !set_return(state, ra, ret))
		return rule_clear(ret, CFI_UNSUPPORTED);
	ret->cfa_reg = state->cfa.reg;
	ret->cfa_off = state->cfa.offset;
	ret->cfa_add = state->cfa.add;
	ret->index_reg = state->cfa.index;
	ret->cfa_between = state->cfa.between;
	ret->flags = flags_of(cie, ret);
#define SLOT(i, reg) ret->slot[i] = slot_of(state, &state->saved[reg], ret);
	ARCH_SAVED_REGS(SLOT)
#undef SLOT
}

struct cfi_rule cfi_plain_rule(enum cfi_kind kind)
{
	struct cfi_rule rule = cfi_bare_rule(kind);

	rule.cfa_reg = REG_SP;
	rule.cfa_off = 8;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = CFI_SAME;
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}
