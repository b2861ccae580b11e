/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The step of ordinary code: by compiled CFI rows, by frame pointer where there are none. */
#include "native_guess.h"

#define SIMPLE_FRAMES 8 /* in one step: the verifier looks at each round */

static inline u64 reg_get(const struct walk *w, u32 reg)
{
	WALK_BARRIER(reg);
	return reg < ARCH_NREGS ? w->reg[reg] : 0;
}

/* Restores one saved register from where the rule says. False: unreadable. */
static inline bool restore(struct walk *w, u32 reg, s16 slot, u64 cfa, u64 base)
{
	if (slot == CFI_SAME)
		return true;
	if (slot == CFI_UNDEFINED) {
		w->valid &= ~(1u << reg);
		return true;
	}
	w->valid |= 1u << reg;
	return walk_stack(w, (slot & 1 ? base : cfa) + (s64)(slot >> 1) * 8, &w->reg[reg]);
}

/* Are all registers that a callee may save as this says? Lost in Go's functions, the same in many small ones of C. */
static inline bool are_all(const struct cfi_rule *rule, s16 slot)
{
	const u32 *pair = (const u32 *)rule->slot, both = 0x10001u * (u16)slot;

	return pair[0] == both && pair[1] == both && pair[2] == both;
}

static inline bool restore_all(struct walk *w, const struct cfi_rule *rule, u64 cfa, u64 base)
{
	if (are_all(rule, CFI_UNDEFINED)) {
		w->valid &= ~ARCH_SAVED_MASK;
		return true;
	}
#define RESTORE(i, reg)                                                                                                \
	if (!restore(w, reg, rule->slot[i], cfa, base))                                                                \
		return false;
	ARCH_SAVED_REGS(RESTORE)
#undef RESTORE
	return true;
}

WALK_GLOBAL int restore_at(struct walk *w, u64 at, u32 reg)
{
	WALK_CHECK(w);
	WALK_BARRIER(reg);
	return reg < ARCH_NREGS && walk_stack(w, at, &w->reg[reg]);
}

/* The kernel's signal frame holds all registers, as struct sigcontext of <asm/sigcontext.h> orders them. */
WALK_GLOBAL int step_signal(struct walk *w, u64 at)
{
	static const u8 order[ARCH_NREGS] = {DWREG_R8, DWREG_R9, DWREG_R10, DWREG_R11, DWREG_R12, DWREG_R13, DWREG_R14,
	        DWREG_R15, DWREG_RDI, DWREG_RSI, DWREG_RBP, DWREG_RBX, DWREG_RDX, DWREG_RAX, DWREG_RCX, DWREG_RSP,
	        DWREG_RIP};

	WALK_CHECK(w);
	for (u32 i = 0; i < ARCH_NREGS; i++)
		if (!restore_at(w, at + i * 8, order[i]))
			return STOP_STACK_ABSENT;
	w->valid = (1u << ARCH_NREGS) - 1;
	w->leaf = 1;
	w->flags = 0;
	return STOP_NONE;
}

/* A register whose value is where the pointer at `at` of the stack leads. */
WALK_GLOBAL int restore_pointed(struct walk *w, u64 at, u32 reg)
{
	u64 slot;

	WALK_CHECK(w);
	WALK_BARRIER(reg);
	if (reg >= ARCH_NREGS)
		return false;
	w->valid &= ~(1u << reg);
	if (!walk_stack(w, at, &slot) || !walk_stack(w, slot, &w->reg[reg]))
		return false;
	w->valid |= 1u << reg;
	return true;
}

/* libgcc's unwinder is about to go on where its context says. */
WALK_GLOBAL int step_context(struct walk *w, u64 at)
{
	u64 cfa, pc;
	int stop;

	WALK_CHECK(w);
	if (!walk_stack(w, at + CFI_CONTEXT_CFA, &cfa) || !walk_stack(w, at + CFI_CONTEXT_CFA + 8, &pc))
		return STOP_STACK_ABSENT;
#define POINTED(i, reg) restore_pointed(w, at + (reg)*8ull, reg);
	ARCH_SAVED_REGS(POINTED)
#undef POINTED
	stop = enter_caller(w, cfa, pc, false);
	w->leaf = 1;
	w->flags = 0;
	return stop;
}

WALK_GLOBAL int find_cfa(struct walk *w, const struct cfi_rule *rule, u64 *ret)
{
	u64 base;

	WALK_CHECK(w);
	WALK_CHECK(rule);
	WALK_CHECK(ret);
	base = reg_get(w, rule->cfa_reg) + (s64)rule->cfa_off;
	/*
	 * A callee without any rule for a register that the ABI lets it clobber mostly did not: assembly by hand relies
	 * on that (libcrypto keeps its CFA in rax across calls of its own). Near the stack pointer it is taken, as a
	 * guess if the callee's code does not prove it.
	 */
	w->flags = 0;
	if (!walk_has(w, rule->cfa_reg)) {
		if (base - w->reg[REG_SP] > GUESS_FRAME_MAX)
			return STOP_REG_LOST;
		w->flags = rule->flags & CFI_KEPT ? 0 : FRAME_GUESS;
	}
	*ret = base;
	if (rule->kind == CFI_REG)
		return STOP_NONE;
	if (rule->kind == CFI_PLT)
		base += (w->reg[REG_PC] & 15) >= (u32)rule->cfa_add ? 8 : 0;
	if (rule->kind == CFI_INDEXED) {
		if (!walk_has(w, rule->index_reg))
			return STOP_REG_LOST;
		base += reg_get(w, rule->index_reg) * 8;
	}
	if (rule->kind == CFI_DEREF_TWICE) {
		if (!walk_stack(w, base, &base))
			return STOP_STACK_ABSENT;
		base += (s64)rule->cfa_between;
	}
	if (rule->kind == CFI_DEREF || rule->kind == CFI_DEREF_TWICE || rule->kind == CFI_INDEXED) {
		if (!walk_stack(w, base, &base))
			return STOP_STACK_ABSENT;
		base += (s64)rule->cfa_add;
	}
	*ret = base;
	return STOP_NONE;
}

/*
 * Is the return address right below the CFA, which is at a known distance above the stack pointer or the frame pointer,
 * and from which registers are saved, too? So say most rows of compiled code.
 */
static inline bool is_simple(const struct cfi_rule *rule)
{
	const u32 *ways = (const u32 *)rule, *last = (const u32 *)&rule->slot[ARCH_SLOT_RA]; /* with the flags, none */
	u32 either = (REG_SP ^ REG_FP) << 8;

	_Static_assert(REG_FP == (REG_SP & REG_FP), "their numbers differ by a bit");
	return (*ways & ~either) == (CFI_REG | REG_FP << 8 | CFI_NO_REG << 16 | (u32)CFI_NO_REG << 24) &&
	       *last == (u16)cfi_slot(-8, 0);
}

/*
 * Restores one saved register from the window, where word i is the return address. False: it is not there. No call: a
 * return costs as much as this does where the kernel guards against its misprediction.
 */
static inline __attribute__((always_inline)) bool restore_near(struct walk *w, u32 reg, s16 slot, u64 i)
{
	u64 at = i + 1 + (u64)(s64)(slot >> 1);

	if (slot == CFI_SAME)
		return true;
	w->valid &= ~(1u << reg);
	if (slot == CFI_UNDEFINED)
		return true;
	WALK_BARRIER(at);
	if (slot & 1 || at >= i || at >= WALK_WINDOW_WORDS)
		return false;
	w->valid |= 1u << reg;
	w->reg[reg] = w->stack.word[at];
	return true;
}

WALK_GLOBAL int restore_all_near(struct walk *w, const struct cfi_rule *rule, u64 i)
{
	WALK_CHECK(w);
	WALK_CHECK(rule);
#define RESTORE(k, reg)                                                                                                \
	if (!restore_near(w, reg, rule->slot[k], i))                                                                   \
		return false;
	ARCH_SAVED_REGS(RESTORE)
#undef RESTORE
	return true;
}

/*
 * Leaves the frame at reg[REG_PC], which was pushed, by its simple rule, at this arena offset; then goes on through
 * those that follow in the same region, as long as their rules are simple and the window has what these need. So most
 * of a walk is this code, and what its frames share is looked up once. False: the first is not that simple, and is as
 * it was.
 */
WALK_GLOBAL int step_simple(struct walk *w, u32 rule_offset)
{
	const struct cfi_rule *rule;
	const u8 *slab;

	WALK_CHECK(w);
	slab = walk_slab(w, w->region.table);
	if (!slab)
		return false;
	for (u32 i = 0; i < SIMPLE_FRAMES; i++) {
		u64 cfa, word, at, fp = w->reg[REG_FP];
		u32 valid = w->valid;

		rule = slab_at(slab, rule_offset);
		cfa = (rule->cfa_reg == REG_FP ? fp : w->reg[REG_SP]) + (s64)rule->cfa_off;
		if (!walk_has(w, rule->cfa_reg) || cfa <= w->reg[REG_SP])
			return i;
		if (!window_has(&w->stack, cfa - 8, &word)) {
			if (i || !walk_stack_load(w, cfa - 8))
				return i;
			word = 0;
		}
		if (are_all(rule, CFI_UNDEFINED)) {
			w->valid &= ~ARCH_SAVED_MASK;
		} else if (!are_all(rule, CFI_SAME) && !restore_all_near(w, rule, word)) {
			w->reg[REG_FP] = fp; /* of the others only the caller's value is needed */
			w->valid = valid;
			return i;
		}
		if (i && !walk_push_here(w, frame_where(FRAME_NATIVE, RUNTIME_NATIVE, FRAME_RETADDR, w->reg[REG_PC]),
		                 w->region.module))
			return i;
		if (!window_word(&w->stack, word, &w->reg[REG_PC]))
			return i;
		w->reg[REG_SP] = cfa;
		w->valid = (w->valid & ARCH_SAVED_MASK) | 1u << REG_SP | 1u << REG_PC;
		w->leaf = 0;
		w->flags = 0;
		at = w->reg[REG_PC] - ARCH_CALL_BACK;
		if (w->region.runtime || w->single || at < w->region.start || at >= w->region.end)
			break;
		rule_offset = find_rule_at((const struct slab *)slab, w->region.table, at - w->region.origin);
		if (!rule_offset || !is_simple(slab_at(slab, rule_offset)))
			break;
	}
	return true;
}

/*
 * May the caller, which goes on at pc with this CFA, be on a stack that lies below? C that OCaml 5 calls is on the
 * thread's stack, above OCaml's: the caller's is where a word says, or a register that calls preserve. A fiber's caller
 * is where its record says. The frame pointer leads to the part of a stack before (-fsplit-stack), or to the stack from
 * which a function was called on one of its own; but there it may also be lost: more has to fit.
 */
static inline __attribute__((always_inline)) bool may_change_stack(
        struct walk *w, const struct cfi_rule *rule, u64 pc, u64 cfa)
{
	bool by_word = rule->kind == CFI_DEREF || rule->kind == CFI_DEREF_TWICE;
	bool by_fp = !by_word && rule->cfa_reg == REG_FP;

	if (by_fp && return_slot(w, pc - ARCH_CALL_BACK) == SLOT_ROOT)
		return !(rule->flags & CFI_FROM_CODE);
	if (by_fp && (rule->flags & CFI_FROM_CODE || !has_caller(w, pc, cfa)))
		return false;
	return (by_word || rule->cfa_reg != REG_SP) && behind_call(w, pc);
}

static inline int step_rule(struct walk *w, const struct cfi_rule *rule)
{
	u64 cfa, pc, base = walk_has(w, rule->slot_reg) ? reg_get(w, rule->slot_reg) : 0; /* 0: unreadable */
	int stop = find_cfa(w, rule, &cfa);
	s16 ra = rule->slot[ARCH_SLOT_RA];

	if (stop)
		return stop;
	if (rule->ra_reg != CFI_NO_REG) {
		if (!walk_has(w, rule->ra_reg))
			return STOP_REG_LOST;
		pc = reg_get(w, rule->ra_reg);
	} else if (!walk_stack(w, (ra & 1 ? base : cfa) + (s64)(ra >> 1) * 8, &pc)) {
		return STOP_STACK_ABSENT;
	}
	if (rule->flags & CFI_FROM_CODE && !is_returned_to(w, pc))
		return step_frame_pointer(w); /* V8's builtins: frames whose size depends on what runs */
	if (!restore_all(w, rule, cfa, base))
		return STOP_STACK_ABSENT;
	if (cfa < w->reg[REG_SP] && may_change_stack(w, rule, pc, cfa))
		w->reg[REG_SP] = 0;
	stop = enter_caller(w, cfa, pc,
	        rule->ra_reg != CFI_NO_REG || rule->cfa_reg != REG_SP || (cfa == w->reg[REG_SP] && behind_call(w, pc)));
	w->leaf = rule->flags & CFI_SIGNAL_FRAME;
	if (rule->flags & CFI_OWN_STACK && stop == STOP_NONE &&
	        !walk_push(w, frame_where(FRAME_GAP, RUNTIME_NATIVE, 0, 0), STOP_OWN_STACK))
		return STOP_DEPTH;
	return stop;
}

/* Moves to the caller by the rule of the region at pc. */
static inline int leave_frame(struct walk *w, u64 pc)
{
	const struct cfi_rule *rule;
	const u8 *slab;
	u32 offset;

	if (!w->region.table)
		return step_frame_pointer(w);
	slab = walk_slab(w, w->region.table);
	offset = slab ? find_rule_at((const struct slab *)slab, w->region.table, pc - w->region.origin) : 0;
	if (!offset)
		return STOP_ARENA;
	rule = slab_at(slab, offset);
	if (is_simple(rule) && step_simple(w, offset))
		return STOP_NONE;
	if (rule->kind == CFI_NEWBORN && w->leaf && !w->reg[REG_RESULT])
		return STOP_ROOT;
	if (rule->kind == CFI_BEFORE_SIGNAL && !w->leaf)
		return step_signal(w, w->reg[REG_SP] + (s64)rule->cfa_add);
	switch (rule->kind) {
	case CFI_REG:
	case CFI_NEWBORN:
	case CFI_BEFORE_SIGNAL:
	case CFI_DEREF:
	case CFI_DEREF_TWICE:
	case CFI_PLT:
	case CFI_INDEXED:
		return step_rule(w, rule);
	case CFI_SIGNAL:
		return step_signal(w, w->reg[REG_SP] + (s64)rule->cfa_off);
	case CFI_CONTEXT:
		return walk_has(w, rule->cfa_reg) ? step_context(w, reg_get(w, rule->cfa_reg) + (s64)rule->cfa_off)
		                                  : STOP_REG_LOST;
	case CFI_ROOT:
		return STOP_ROOT;
	case CFI_NONE:
		return step_frame_pointer(w);
	default:
		return STOP_CFI_UNSUPPORTED;
	}
}

WALK_STEP int native_cfa(struct walk *w)
{
	const struct cfi_rule *rule;
	u32 flags;
	int stop;

	WALK_CHECK(w);
	flags = w->flags;
	rule = w->region.table ? find_rule(w, &w->region, walk_pc(w)) : NULL;
	if (!rule || rule->kind != CFI_REG)
		return STOP_NO_CFI;
	stop = find_cfa(w, rule, &w->scratch[0]);
	w->flags = flags;
	return stop;
}

WALK_STEP int native_called(struct walk *w, u64 addr)
{
	WALK_CHECK(w);
	return behind_call(w, addr);
}

WALK_STEP int native_step(struct walk *w, u32 frame_flags)
{
	u64 pc;

	WALK_CHECK(w);
	pc = walk_pc(w);
	frame_flags |= w->flags | (w->leaf ? 0 : FRAME_RETADDR);
	if (!(frame_flags & NATIVE_NO_FRAME) &&
	        !walk_push_here(
	                w, frame_where(FRAME_NATIVE, RUNTIME_NATIVE, frame_flags, w->reg[REG_PC]), w->region.module))
		return STOP_DEPTH;
	return leave_frame(w, pc);
}
