/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_flow.h"

#include <stdlib.h>
#include <string.h>

#define CALL_CLOBBERED                                                                                                 \
	(1u << DWREG_RAX | 1u << DWREG_RCX | 1u << DWREG_RDX | 1u << DWREG_RSI | 1u << DWREG_RDI | 1u << DWREG_R8 |    \
	        1u << DWREG_R9 | 1u << DWREG_R10 | 1u << DWREG_R11)

static struct flow_value value(u8 kind, s32 offset)
{
	return (struct flow_value){.kind = kind, .offset = offset};
}

static bool same(struct flow_value a, struct flow_value b)
{
	return a.kind == b.kind && a.base == b.base && a.offset == b.offset;
}

static bool is_address(struct flow_value v)
{
	return v.kind == FLOW_CFA || v.kind == FLOW_BASE;
}

static struct flow_value add(struct flow_value v, s64 by)
{
	v.offset += (s32)by;
	return is_address(v) ? v : value(FLOW_LOST, 0);
}

/* Do both count from the same? */
static bool related(struct flow_value a, struct flow_value b)
{
	return is_address(a) && a.kind == b.kind && a.base == b.base;
}

struct flow_state flow_entry(void)
{
	struct flow_state s = {.known = true, .ra = value(FLOW_CFA, -8)};

	for (u32 i = 0; i < FLOW_REGS; i++)
		s.reg[i] = value(FLOW_REG, (s32)i);
	s.reg[DWREG_RSP] = value(FLOW_CFA, -8);
	return s;
}

struct flow_state flow_entry_r13(void)
{
	struct flow_state s = flow_entry();

	s.reg[DWREG_R13] = value(FLOW_CFA, 0);
	s.reg[DWREG_RSP] = s.ra = value(FLOW_BASE, 0);
	return s;
}

struct flow_state flow_framed(void)
{
	struct flow_state s = {.known = true, .ra = value(FLOW_BASE, 8), .cfa = value(FLOW_BASE, -8)};

	s.reg[DWREG_RBP] = s.saved[1] = value(FLOW_BASE, 0);
	s.reg[DWREG_R15] = value(FLOW_REG, DWREG_R15);
	return s;
}

struct flow_state flow_entry_unpushed(u32 reg)
{
	struct flow_state s = flow_entry();

	s.reg[DWREG_RSP] = value(FLOW_CFA, 0);
	if (reg < FLOW_REGS) {
		s.reg[reg] = value(FLOW_RA, 0);
		s.ra = value(FLOW_LOST, 0);
	}
	return s;
}

struct flow_state flow_entry_framed(u32 words)
{
	struct flow_state s = flow_entry();

	s.reg[DWREG_RSP] = value(FLOW_CFA, -8 * (s32)words);
	s.reg[DWREG_RBP] = s.saved[1] = value(FLOW_CFA, -16);
	return s;
}

static void set(struct flow_state *s, u8 reg, struct flow_value v)
{
	if (reg < FLOW_REGS)
		s->reg[reg] = v;
}

static void store(struct flow_state *s, struct flow_value at, u8 reg)
{
	struct flow_value v = reg < FLOW_REGS ? s->reg[reg] : value(FLOW_LOST, 0);
	u32 slot = v.kind == FLOW_REG ? arch_saved_slot((u8)v.offset) : ARCH_NSAVED;

	if (!is_address(at))
		return;
	if (v.kind == FLOW_RA)
		s->ra = at;
	if (v.kind == FLOW_CFA && !v.offset && !s->cfa.kind)
		s->cfa = at;
	if (slot < ARCH_NSAVED && !s->saved[slot].kind)
		s->saved[slot] = at;
}

static struct flow_value load(const struct flow_state *s, struct flow_value at)
{
	static const u8 regs[ARCH_NSAVED] = {DWREG_RBX, DWREG_RBP, DWREG_R12, DWREG_R13, DWREG_R14, DWREG_R15};

	if (is_address(at) && same(at, s->ra))
		return value(FLOW_RA, 0);
	if (is_address(at) && same(at, s->cfa))
		return value(FLOW_CFA, 0);
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		if (is_address(at) && same(at, s->saved[i]))
			return value(FLOW_REG, regs[i]);
	return value(FLOW_LOST, 0);
}

/* The JavaThread, to which r15 points, keeps where an exception was thrown. */
static void keep(struct flow_state *s, const struct flow_ins *in)
{
	if (in->dst == DWREG_R15 && in->src < FLOW_REGS && s->reg[in->src].kind == FLOW_RA)
		s->kept = in->value;
	else if (in->dst == DWREG_R15 && in->value == s->kept)
		s->kept = 0;
}

/* A frame pointer that is loaded from elsewhere on the stack is one that was kept with all registers. */
static void load_to(struct flow_state *s, const struct flow_ins *in)
{
	struct flow_value v = load(s, add(s->reg[in->src], in->value));

	if (in->src == DWREG_R15 && s->kept && in->value == s->kept)
		v = value(FLOW_RA, 0);
	if (in->dst == DWREG_RBP && in->src == DWREG_RSP && !v.kind && is_address(s->reg[in->dst]))
		return;
	set(s, in->dst, v);
}

/* What lies below rsp is there no more. */
static void forget_below(struct flow_state *s)
{
	struct flow_value sp = s->reg[DWREG_RSP];

	if (related(s->ra, sp) && s->ra.offset < sp.offset)
		s->ra = value(FLOW_LOST, 0);
	if (related(s->cfa, sp) && s->cfa.offset < sp.offset)
		s->cfa = value(FLOW_LOST, 0);
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		if (related(s->saved[i], sp) && s->saved[i].offset < sp.offset)
			s->saved[i] = value(FLOW_LOST, 0);
}

static void move_sp(struct flow_state *s, struct flow_value to)
{
	s->reg[DWREG_RSP] = to;
	if (is_address(to))
		forget_below(s);
}

static void pop(struct flow_state *s, u8 reg)
{
	struct flow_value at = s->reg[DWREG_RSP];

	set(s, reg, load(s, at));
	move_sp(s, add(at, 8));
}

static struct flow_value base_at(u64 addr)
{
	return (struct flow_value){.kind = FLOW_BASE, .base = (u16)addr};
}

static void push(struct flow_state *s, u8 reg, u64 addr)
{
	struct flow_value *sp = &s->reg[DWREG_RSP];

	*sp = add(is_address(*sp) ? *sp : base_at(addr), -8);
	store(s, *sp, reg);
}

/* Only where something else still gives the caller's rsp may rsp itself be lost: mostly it was aligned already. */
static void align(struct flow_state *s, u64 addr)
{
	for (u32 i = 0; i < FLOW_REGS; i++)
		if (i != DWREG_RSP && s->reg[i].kind == FLOW_CFA) {
			s->reg[DWREG_RSP] = base_at(addr);
			return;
		}
}

/* Frames are gone. r15 is the thread all the time. */
static void forget(struct flow_state *s)
{
	struct flow_value thread = s->reg[DWREG_R15];

	*s = (struct flow_state){.known = true, .start = s->start};
	s->reg[DWREG_R15] = thread;
}

/*
 * Deoptimisation builds frames: push what they return to, push rbp, mov rbp, rsp, with the stack pointer lost before
 * that (a register was subtracted). What is known of the frame before is not of this one.
 */
static bool builds_frame(const struct flow_ins *in, const struct flow_state *s)
{
	struct flow_value sp = s->reg[DWREG_RSP];

	return sp.kind == FLOW_BASE && sp.offset == -16 && (u16)(in->addr - sp.base - 1) < 8;
}

/* push rbp; mov rbp, rsp: where all was lost there is a frame again. */
static void start_frame(const struct flow_ins *in, struct flow_state *s)
{
	if (builds_frame(in, s))
		forget(s);
	for (u32 i = 0; i < FLOW_REGS; i++)
		if (s->reg[i].kind == FLOW_CFA || s->reg[i].kind == FLOW_RA) {
			s->reg[DWREG_RBP] = s->reg[DWREG_RSP];
			return;
		}
	s->reg[DWREG_RBP] = s->reg[DWREG_RSP] = s->saved[1] = value(FLOW_CFA, -16);
	s->ra = value(FLOW_CFA, -8);
}

static void clobber(struct flow_state *s, u32 mask)
{
	for (u32 i = 0; i < FLOW_REGS; i++)
		if (mask >> i & 1)
			s->reg[i] = value(FLOW_LOST, 0);
}

void flow_apply(const struct flow_ins *in, struct flow_state *s)
{
	struct flow_value *sp = &s->reg[DWREG_RSP];

	switch (in->op) {
	case FLOW_PUSH:
		push(s, in->src, in->addr);
		break;
	case FLOW_POP:
		pop(s, in->dst);
		break;
	case FLOW_ADD:
		if (in->dst == DWREG_RSP)
			move_sp(s, add(*sp, in->value));
		else
			set(s, in->dst, add(s->reg[in->dst], in->value));
		break;
	case FLOW_MOVE:
		if (in->dst == DWREG_RSP)
			move_sp(s, s->reg[in->src]);
		else if (in->dst == DWREG_RBP && in->src == DWREG_RSP && (!s->ra.kind || builds_frame(in, s)))
			start_frame(in, s);
		else
			set(s, in->dst, s->reg[in->src]);
		break;
	case FLOW_LEA:
		if (in->dst == DWREG_RSP)
			move_sp(s, add(s->reg[in->src], in->value));
		else
			set(s, in->dst, add(s->reg[in->src], in->value));
		break;
	case FLOW_STORE:
		keep(s, in);
		store(s, add(s->reg[in->dst], in->value), in->src);
		break;
	case FLOW_LOAD:
		load_to(s, in);
		break;
	case FLOW_ALIGN:
		align(s, in->addr);
		break;
	case FLOW_LEAVE: /* rbp may have been kept where that was not followed: it is the frame pointer all the same */
		move_sp(s, is_address(s->reg[DWREG_RBP]) ? s->reg[DWREG_RBP] : s->saved[1]);
		pop(s, DWREG_RBP);
		break;
	case FLOW_UNWIND:
		forget(s);
		break;
	case FLOW_CALL: /* of the next instruction: to have its address */
		if (in->target == in->addr + in->size)
			*sp = add(*sp, -8);
		else
			clobber(s, CALL_CLOBBERED);
		break;
	default:
		clobber(s, in->written);
	}
}

/* What two ways to an instruction do not agree on is lost. */
static bool meet(struct flow_value *a, struct flow_value b)
{
	if (a->kind == FLOW_LOST || same(*a, b))
		return false;
	*a = value(FLOW_LOST, 0);
	return true;
}

static bool meet_states(struct flow_state *a, const struct flow_state *b)
{
	bool changed = meet(&a->ra, b->ra) | meet(&a->cfa, b->cfa);

	if (a->kept && a->kept != b->kept) {
		a->kept = 0;
		changed = true;
	}
	for (u32 i = 0; i < FLOW_REGS; i++)
		changed |= meet(&a->reg[i], b->reg[i]);
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		changed |= meet(&a->saved[i], b->saved[i]);
	return changed;
}

static void reach(struct flow *f, u32 i, const struct flow_state *s)
{
	struct flow_state *old;

	if (i >= f->n)
		return;
	old = &f->state[i];
	if (old->known && (old->start != f->start || !meet_states(old, s)))
		return;
	if (!old->known) {
		*old = *s;
		old->queued = false;
		old->start = f->start;
	}
	if (!old->queued)
		f->work[f->nwork++] = i;
	old->queued = true;
}

static void reach_target(struct flow *f, u64 target, const struct flow_state *s)
{
	u32 i = flow_find(f, target);

	if (i < f->n && f->ins[i].addr == target)
		reach(f, i, s);
}

void flow_follow(struct flow *f, u32 i, const struct flow_state *start)
{
	f->start++;
	reach(f, i, start);
	while (f->nwork) {
		struct flow_state s;
		const struct flow_ins *in;

		i = f->work[--f->nwork];
		in = &f->ins[i];
		f->state[i].queued = false;
		s = f->state[i];
		flow_apply(in, &s);
		if (in->op == FLOW_JUMP || in->op == FLOW_BRANCH)
			reach_target(f, in->target, &s);
		if (in->op != FLOW_JUMP && in->op != FLOW_END)
			reach(f, i + 1, &s);
	}
}

/* push rbp; mov rbp, rsp */
static bool begins(const struct flow *f, u32 i)
{
	return i + 1 < f->n && f->ins[i].op == FLOW_PUSH && f->ins[i].src == DWREG_RBP &&
	       f->ins[i + 1].op == FLOW_MOVE && f->ins[i + 1].dst == DWREG_RBP && f->ins[i + 1].src == DWREG_RSP &&
	       !(f->ins[i].addr & (FUNCTION_ALIGN - 1));
}

void flow_follow_rest(struct flow *f, const struct flow_state *s)
{
	for (u32 i = 0; i < f->n; i++)
		if (!f->state[i].known && begins(f, i))
			flow_follow(f, i, s);
	for (u32 i = 0; i < f->n; i++)
		if (!f->state[i].known)
			flow_follow(f, i, s);
}

/* --- rows --- */

/* A register that gives the CFA; the stack pointer is the best. */
static u8 find_cfa_reg(const struct flow_state *s)
{
	static const u8 order[] = {DWREG_RSP, DWREG_RBP, DWREG_R13, DWREG_R12, DWREG_RBX, DWREG_R14, DWREG_R15,
	        DWREG_R11, DWREG_R10, DWREG_RAX, DWREG_RCX, DWREG_RDX, DWREG_RSI, DWREG_RDI, DWREG_R8, DWREG_R9};

	for (u32 i = 0; i < sizeof(order); i++)
		if (s->reg[order[i]].kind == FLOW_CFA)
			return order[i];
	return CFI_NO_REG;
}

/* A place, from the CFA or from rsp. False: it can not be expressed. */
static bool slot_for(const struct flow_state *s, struct flow_value at, s16 *ret)
{
	struct flow_value sp = s->reg[DWREG_RSP];

	if ((at.kind == FLOW_BASE && !related(at, sp)) || at.offset & 7)
		return false;
	*ret = at.kind == FLOW_CFA ? cfi_slot(at.offset, 0) : cfi_slot(at.offset - sp.offset, 1);
	return is_address(at);
}

static bool find_ra(const struct flow_state *s, struct cfi_rule *rule)
{
	if (slot_for(s, s->ra, &rule->slot[ARCH_SLOT_RA]))
		return true;
	for (u32 i = 0; i < FLOW_REGS; i++)
		if (s->reg[i].kind == FLOW_RA) {
			rule->ra_reg = i;
			return true;
		}
	return false;
}

static void find_saved(const struct flow_state *s, struct cfi_rule *rule)
{
#define FIND(i, r)                                                                                                     \
	if (!slot_for(s, s->saved[i], &rule->slot[i]))                                                                 \
		rule->slot[i] = same(s->reg[r], value(FLOW_REG, r)) ? CFI_SAME : CFI_UNDEFINED;
	ARCH_SAVED_REGS(FIND)
#undef FIND
}

struct cfi_rule flow_rule(const struct flow_state *s)
{
	struct cfi_rule rule = {.kind = CFI_REG, .slot_reg = DWREG_RSP, .ra_reg = CFI_NO_REG},
	                none = {.kind = CFI_NONE};
	struct flow_value sp = s->reg[DWREG_RSP];

	none.slot_reg = none.ra_reg = CFI_NO_REG;
	if (!s->known)
		return none;
	rule.cfa_reg = find_cfa_reg(s);
	if (rule.cfa_reg != CFI_NO_REG) {
		rule.cfa_off = -s->reg[rule.cfa_reg].offset;
		if (rule.cfa_reg == DWREG_RSP &&
		        rule.cfa_off < 0) /* an argument was popped as well; the caller has rbp */
			rule.cfa_off = 0;
	} else if (related(s->ra, sp)) { /* called by code that knows its frame by rbp */
		rule.cfa_reg = DWREG_RSP;
		rule.cfa_off = s->ra.offset - sp.offset + 8;
	} else {
		return none;
	}
	if (!find_ra(s, &rule))
		return none;
	find_saved(s, &rule);
	return rule;
}

struct error *flow_rows(const struct flow *f, u32 from, u32 to, struct cfi_entry **entries, u32 *n)
{
	struct cfi_entry *rows = calloc(to - from + 1, sizeof(*rows)), *fit;

	*n = 0;
	if (!rows)
		return &error_no_memory;
	for (u32 i = from; i < to; i++) {
		struct cfi_rule rule = flow_rule(&f->state[i]);

		if (!*n || memcmp(&rows[*n - 1].rule, &rule, sizeof(rule)))
			rows[(*n)++] = (struct cfi_entry){f->ins[i].addr, rule};
	}
	fit = realloc(rows, (*n + 1) * sizeof(*rows));
	*entries = fit ? fit : rows;
	return NULL;
}
