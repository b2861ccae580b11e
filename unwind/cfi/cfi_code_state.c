/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_code_state.h"

#include <string.h>

#include "code/capstone_registers.h"
#include "cfi_internal.h"

#define LOST      CODE_LOST
#define FRAME_MAX (1 << 24)   /* a stack pointer further from the CFA is none */
#define SLOT_MAX  (128 << 10) /* no slot of a rule lies further below the CFA */

struct code_state code_state_entry(void)
{
	struct code_state s;

	memset(&s, 0, sizeof(s));
	for (u32 i = 0; i < ARCH_NREGS; i++)
		s.below[i] = LOST;
	s.below[REG_SP] = 8;
	s.aligned = s.kept = LOST;
	for (u32 i = 0; i < ARCH_NSAVED; i++) {
		s.aligned_slot[i] = LOST;
		s.slot[i] = CFI_SAME;
	}
	return s;
}

struct code_state code_state_root(void)
{
	struct code_state s = code_state_entry();

	s.below[REG_SP] = LOST;
	s.root = 1;
	return s;
}

u8 code_register(const cs_x86_op *op)
{
	return op->type == X86_OP_REG ? capstone_register(op->reg) : CAPSTONE_NO_REG;
}

/* The register that one of 8 or 16 bits is part of, of those that a callee preserves. */
static u8 whole_register(u32 reg)
{
	switch (reg) {
	case X86_REG_BX:
	case X86_REG_BL:
	case X86_REG_BH:
		return DWREG_RBX;
	case X86_REG_BP:
	case X86_REG_BPL:
		return DWREG_RBP;
	case X86_REG_SP:
	case X86_REG_SPL:
		return DWREG_RSP;
	case X86_REG_R12W:
	case X86_REG_R12B:
		return DWREG_R12;
	case X86_REG_R13W:
	case X86_REG_R13B:
		return DWREG_R13;
	case X86_REG_R14W:
	case X86_REG_R14B:
		return DWREG_R14;
	case X86_REG_R15W:
	case X86_REG_R15B:
		return DWREG_R15;
	}
	return capstone_register(reg);
}

static s32 moved(s32 from, s64 by)
{
	s64 to = from + by;

	return from == LOST || to < -FRAME_MAX || to > FRAME_MAX ? LOST : (s32)to;
}

static void forget_aligned(struct code_state *s)
{
	s->aligned = s->kept = LOST;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		s->aligned_slot[i] = LOST;
}

/* reg has another value now, which lies so far below the CFA. Who saved what the caller had in it can find that again.
 */
static void set(struct code_state *s, u8 reg, s32 below)
{
	u32 i = arch_saved_slot(reg);

	if (reg >= ARCH_NREGS)
		return;
	s->below[reg] = below;
	if (reg == REG_SP)
		forget_aligned(s);
	if (i < ARCH_NSAVED && s->slot[i] == CFI_SAME)
		s->slot[i] = CFI_UNDEFINED;
}

/* reg has the caller's value again. */
static void restored(struct code_state *s, u8 reg)
{
	u32 i = arch_saved_slot(reg);

	s->below[reg] = LOST;
	s->slot[i] = CFI_SAME;
	s->aligned_slot[i] = LOST;
}

static void move_sp(struct code_state *s, s64 down)
{
	s->below[REG_SP] = moved(s->below[REG_SP], down);
	s->aligned = moved(s->aligned, down);
}

/* Where a memory operand lies below the CFA, and below A. */
struct place {
	s32 cfa, aligned;
};

static struct place place_of(const struct code_state *s, const cs_x86_op *op)
{
	u8 base = capstone_register(op->mem.base);
	struct place p = {LOST, LOST};

	if (op->mem.index != X86_REG_INVALID || op->mem.segment != X86_REG_INVALID || base >= ARCH_NREGS)
		return p;
	p.cfa = moved(s->below[base], -op->mem.disp);
	if (base == REG_SP)
		p.aligned = moved(s->aligned, -op->mem.disp);
	return p;
}

static bool is_slot(s32 below)
{
	return below != LOST && below % 8 == 0 && below >= 16 && below <= SLOT_MAX;
}

/* 8 bytes of reg go to memory. */
static void save(struct code_state *s, u8 reg, struct place to)
{
	u32 i = arch_saved_slot(reg);

	if (reg >= ARCH_NREGS)
		return;
	if (to.aligned != LOST && s->below[reg] != LOST) {
		s->kept = to.aligned;
		s->kept_below = s->below[reg];
	} else if (to.aligned != LOST && to.aligned == s->kept) {
		s->kept = LOST;
	}
	if (i == ARCH_NSAVED || s->slot[i] != CFI_SAME || s->below[reg] != LOST)
		return;
	if (is_slot(to.cfa))
		s->slot[i] = cfi_slot(-to.cfa, 0);
	else if (to.aligned != LOST && to.aligned % 8 == 0)
		s->aligned_slot[i] = to.aligned;
}

/* 8 bytes of memory go to reg. */
static void load(struct code_state *s, u8 reg, struct place from)
{
	u32 i = arch_saved_slot(reg);

	if (i < ARCH_NSAVED && ((is_slot(from.cfa) && s->slot[i] == cfi_slot(-from.cfa, 0)) ||
	                               (from.aligned != LOST && from.aligned == s->aligned_slot[i])))
		restored(s, reg);
	else if (from.aligned != LOST && from.aligned == s->kept)
		set(s, reg, s->kept_below);
	else
		set(s, reg, LOST);
}

static struct place top(const struct code_state *s)
{
	return (struct place){s->below[REG_SP], s->aligned};
}

static void push(struct code_state *s, const cs_x86_op *op)
{
	move_sp(s, op && op->size == 2 ? 2 : 8);
	if (op && op->size != 2)
		save(s, code_register(op), top(s));
}

static void pop(struct code_state *s, const cs_x86_op *op)
{
	u8 reg = op ? code_register(op) : CAPSTONE_NO_REG;
	struct place from = top(s);

	move_sp(s, op && op->size == 2 ? -2 : -8);
	if (reg < ARCH_NREGS)
		load(s, reg, from);
}

static void leave(struct code_state *s)
{
	u32 i = arch_saved_slot(REG_FP);
	s32 at = s->below[REG_FP];

	s->below[REG_SP] = moved(at, -8);
	forget_aligned(s);
	s->below[REG_FP] = LOST;
	s->slot[i] =
	        at != LOST && (s->slot[i] == CFI_SAME || s->slot[i] == cfi_slot(-at, 0)) ? CFI_SAME : CFI_UNDEFINED;
}

static void add(struct code_state *s, u8 reg, s64 by)
{
	if (reg == REG_SP)
		move_sp(s, -by);
	else
		set(s, reg, reg < ARCH_NREGS ? moved(s->below[reg], -by) : LOST);
}

static void lea(struct code_state *s, u8 reg, const cs_x86_op *from)
{
	if (reg == REG_SP && from->mem.base == X86_REG_RSP && from->mem.index == X86_REG_INVALID)
		move_sp(s, -from->mem.disp);
	else
		set(s, reg, place_of(s, from).cfa);
}

/* A stack pointer that is rounded down: what is above it is some constant and up to mask bytes. */
static void align(struct code_state *s)
{
	set(s, REG_SP, LOST);
	s->aligned = 0;
}

static void two_operands(struct code_state *s, const cs_insn *in, const cs_x86_op *to, const cs_x86_op *from)
{
	u8 reg = code_register(to), other = code_register(from);

	if (in->id == X86_INS_MOV && to->type == X86_OP_MEM) {
		if (from->type == X86_OP_REG && from->size == 8)
			save(s, other, place_of(s, to));
	} else if (!(to->access & CS_AC_WRITE) || to->type != X86_OP_REG) {
		return;
	} else if (in->id == X86_INS_MOV && from->type == X86_OP_MEM && to->size == 8) {
		if (reg < ARCH_NREGS)
			load(s, reg, place_of(s, from));
	} else if (in->id == X86_INS_MOV && to->size == 8 && reg < ARCH_NREGS) {
		set(s, reg, other < ARCH_NREGS ? s->below[other] : LOST);
	} else if (in->id == X86_INS_LEA && to->size == 8) {
		lea(s, reg, from);
	} else if (in->id == X86_INS_ADD && from->type == X86_OP_IMM) {
		add(s, reg, from->imm);
	} else if (in->id == X86_INS_SUB && from->type == X86_OP_IMM) {
		add(s, reg, -from->imm);
	} else if (in->id == X86_INS_AND && reg == REG_SP && from->type == X86_OP_IMM && from->imm < 0) {
		align(s);
	} else if (in->id == X86_INS_XOR && reg == REG_FP && other == REG_FP &&
	           s->slot[arch_saved_slot(REG_FP)] == CFI_SAME) {
		s->root = 1; /* the ABI's mark of the outermost frame */
	} else {
		set(s, whole_register(to->reg), LOST);
	}
}

static void all_written(struct code_state *s, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	for (u32 i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG && x->operands[i].access & CS_AC_WRITE)
			set(s, whole_register(x->operands[i].reg), LOST);
}

/* cpuid, mul, string instructions … */
static void implicitly_written(struct code_state *s, const cs_insn *in)
{
	for (u32 i = 0; i < in->detail->regs_write_count; i++)
		set(s, whole_register(in->detail->regs_write[i]), LOST);
}

/* What a callee may change is lost behind a call. */
static void call(struct code_state *s)
{
	for (u8 reg = 0; reg < ARCH_NREGS; reg++)
		if (reg != REG_SP && arch_saved_slot(reg) == ARCH_NSAVED)
			s->below[reg] = LOST;
}

void code_state_step(struct code_state *s, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_PUSH:
		return push(s, &x->operands[0]);
	case X86_INS_PUSHFQ:
		return push(s, NULL);
	case X86_INS_POP:
		return pop(s, &x->operands[0]);
	case X86_INS_POPFQ:
		return pop(s, NULL);
	case X86_INS_LEAVE:
		return leave(s);
	case X86_INS_RET:
		return;
	case X86_INS_CALL:
		if (x->operands[0].type == X86_OP_IMM && (u64)x->operands[0].imm == in->address + in->size)
			push(s, NULL);
		else
			call(s);
		return;
	}
	if (x->op_count == 2 && in->id != X86_INS_XCHG && in->id != X86_INS_XADD)
		two_operands(s, in, &x->operands[0], &x->operands[1]);
	else
		all_written(s, in);
	implicitly_written(s, in);
}

void code_state_is_no_root(struct code_state *s)
{
	if (s->root)
		s->slot[arch_saved_slot(REG_FP)] = CFI_UNDEFINED;
	s->root = 0;
}

bool code_state_in_body(const struct code_state *s)
{
	return s->below[REG_FP] == 16 && s->slot[arch_saved_slot(REG_FP)] == cfi_slot(-16, 0);
}

/* The register that gives the CFA: the first that does; those that a callee preserves come before others. */
static u8 cfa_register(const struct code_state *s)
{
	static const u8 order[] = {REG_SP, REG_FP, DWREG_RBX, DWREG_R12, DWREG_R13, DWREG_R14, DWREG_R15, DWREG_RAX,
	        DWREG_R10, DWREG_R11, DWREG_RCX, DWREG_RDX, DWREG_RSI, DWREG_RDI, DWREG_R8, DWREG_R9};

	for (u32 i = 0; i < sizeof(order); i++)
		if (s->below[order[i]] != LOST)
			return order[i];
	return CFI_NO_REG;
}

static void rule_slots(const struct code_state *s, struct cfi_rule *rule)
{
	memcpy(rule->slot, s->slot, sizeof(s->slot));
	rule->slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	for (u32 i = 0; i < ARCH_NSAVED && s->aligned != LOST; i++) {
		s64 above = (s64)s->aligned - s->aligned_slot[i];

		if (s->aligned_slot[i] == LOST || above < 0 || above > SLOT_MAX)
			continue;
		rule->slot[i] = cfi_slot((s32)above, 1);
		rule->slot_reg = REG_SP;
	}
}

struct cfi_rule code_state_rule(const struct code_state *s, bool doubtful)
{
	struct cfi_rule rule = cfi_bare_rule(CFI_NONE);
	u8 reg = cfa_register(s);

	if (s->root)
		rule.kind = CFI_ROOT;
	if (s->root || (reg == CFI_NO_REG && (s->aligned == LOST || s->kept == LOST)))
		return rule;
	rule.kind = reg == CFI_NO_REG ? CFI_DEREF : CFI_REG;
	rule.cfa_reg = reg == CFI_NO_REG ? REG_SP : reg;
	rule.cfa_off = reg == CFI_NO_REG ? s->aligned - s->kept : s->below[reg];
	rule.cfa_add = reg == CFI_NO_REG ? s->kept_below : 0;
	rule.flags = doubtful ? CFI_FROM_CODE : 0;
	rule_slots(s, &rule);
	return rule;
}

/* The length of ModRM, SIB and displacement. */
static u32 operand_size(const u8 *code, size_t size)
{
	u8 mod = code[0] >> 6, rm = code[0] & 7, base = size > 1 ? code[1] & 7 : 0;
	u32 n = 1;

	if (mod == 3)
		return n;
	n += rm == 4;
	if (mod == 1)
		return n + 1;
	return mod == 2 || rm == 5 || (rm == 4 && base == 5) ? n + 4 : n;
}

static bool has_immediate(u32 map, u8 opcode)
{
	return map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
	                                        (opcode >= 0xc4 && opcode <= 0xc6)));
}

u32 code_vector_size(const u8 *code, size_t size)
{
	u32 prefix, map, n;

	if (size < 7)
		return 0;
	prefix = code[0] == 0x62 ? 4 : code[0] == 0xc4 ? 3 : code[0] == 0xc5 ? 2 : 0;
	map = prefix == 4 ? code[1] & 7 : prefix == 3 ? code[1] & 31 : 1;
	if (!prefix || !map || map > 6)
		return 0;
	n = prefix + 1;
	if (map != 1 || code[prefix] != 0x77 || prefix == 4)
		n += operand_size(code + n, size - n);
	n += has_immediate(map, code[prefix]);
	return n <= size ? n : 0;
}
