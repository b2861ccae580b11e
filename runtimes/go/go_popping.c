/* SPDX-License-Identifier: Apache-2.0 */
#include "go_popping.h"

#include <capstone/capstone.h>
#include <string.h>

#include "code/capstone_registers.h"
#include "go_code_read.h"

#define FRAME_MAX 4096
#define NO_SLOT   (-1)

/* Before an instruction. Distances are from where the stack pointer was at the first one. */
struct popping {
	s32 below;   /* of the stack pointer */
	u8 reg;      /* that the caller's return address was loaded to; CFI_NO_REG: not yet */
	s32 pushed;  /* it lies so far below; NO_SLOT: not there */
	bool popped; /* its own return address */
	s16 slot[ARCH_NSAVED];
};

static u8 register_of(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && op->size == 8 ? capstone_register(op->reg) : CAPSTONE_NO_REG;
}

static bool on_stack(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.base == X86_REG_RSP && op->mem.index == X86_REG_INVALID &&
	       op->mem.disp >= -FRAME_MAX && op->mem.disp <= FRAME_MAX;
}

/* The caller's stack begins two words above the first stack pointer. */
static s16 slot_at(s32 below)
{
	return cfi_slot(-below - 16, 0);
}

static void save(struct popping *s, u8 reg, s32 below)
{
	u32 i = arch_saved_slot(reg);

	if (i < ARCH_NSAVED && s->slot[i] == CFI_SAME && s->popped && below > 0 && below % 8 == 0)
		s->slot[i] = slot_at(below);
}

static void load(struct popping *s, u8 reg, s32 below)
{
	u32 i = arch_saved_slot(reg);

	if (s->reg == CFI_NO_REG && !s->popped && below == -8)
		s->reg = reg;
	else if (i < ARCH_NSAVED && s->slot[i] == slot_at(below))
		s->slot[i] = CFI_SAME;
}

/* False: that the stack pointer becomes something that is not followed. */
static bool step_stack(struct popping *s, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	u8 reg = register_of(&op[0]);

	switch (in->id) {
	case X86_INS_PUSH:
		s->below += 8;
		if (s->reg != CFI_NO_REG && reg == s->reg)
			s->pushed = s->below;
		save(s, reg, s->below);
		return true;
	case X86_INS_POP:
		if (reg == s->reg && s->pushed == s->below)
			s->pushed = NO_SLOT;
		load(s, reg, s->below);
		s->below -= 8;
		return reg != REG_SP;
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (op[1].type != X86_OP_IMM || op[1].imm < -FRAME_MAX || op[1].imm > FRAME_MAX)
			return false;
		s->below += (s32)(in->id == X86_INS_SUB ? op[1].imm : -op[1].imm);
		s->popped |= s->below == -8;
		return true;
	}
	return false;
}

static bool step(struct popping *s, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = x->operands;

	if (in->id == X86_INS_PUSH || in->id == X86_INS_POP ||
	        (x->op_count && register_of(&op[0]) == REG_SP && op[0].access & CS_AC_WRITE))
		return step_stack(s, in) && s->below >= -8 && s->below <= FRAME_MAX;
	if (in->id == X86_INS_MOV && x->op_count == 2 && on_stack(&op[0]))
		save(s, register_of(&op[1]), s->below - (s32)op[0].mem.disp);
	else if (in->id == X86_INS_MOV && x->op_count == 2 && on_stack(&op[1]))
		load(s, register_of(&op[0]), s->below - (s32)op[1].mem.disp);
	return true;
}

static struct cfi_rule rule_of(const struct popping *s)
{
	struct cfi_rule rule = {.kind = CFI_REG, .cfa_reg = REG_SP, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	memcpy(rule.slot, s->slot, sizeof(s->slot));
	rule.cfa_off = s->below + (s->popped ? 16 : 8);
	rule.slot[ARCH_SLOT_RA] = s->pushed == NO_SLOT ? cfi_slot(-8, 0) : slot_at(s->pushed);
	if (s->popped && s->pushed == NO_SLOT)
		rule.ra_reg = s->reg;
	return rule;
}

/* add NULL: only says whether it has this form. */
static bool follow(struct go_code *code, struct go_table *t, const struct go_function *fn,
        bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx)
{
	struct popping s = {.reg = CFI_NO_REG, .pushed = NO_SLOT};
	struct cfi_rule rule, last = {0};
	bool pushed = false;
	const cs_insn *in;

	for (u32 i = 0; i < ARCH_NSAVED; i++)
		s.slot[i] = CFI_SAME;
	for (go_code_start(code, t, fn); (in = go_code_next(code));) {
		rule = rule_of(&s);
		if (add && memcmp(&rule, &last, sizeof(rule)) && !add(ctx, in->address, &rule))
			return false;
		last = rule;
		pushed |= s.popped && s.pushed != NO_SLOT;
		if (in->id == X86_INS_RET)
			return pushed && s.below == -8;
		if ((in->id != X86_INS_CALL && cs_insn_group(code->d.handle, in, CS_GRP_JUMP)) || !step(&s, in) ||
		        (s.popped && s.reg == CFI_NO_REG))
			return false;
	}
	return false;
}

bool go_is_popping(struct go_code *code, struct go_table *t, const struct go_function *fn)
{
	return follow(code, t, fn, NULL, NULL);
}

bool go_popping_rows(struct go_code *code, struct go_table *t, const struct go_function *fn,
        bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx)
{
	return follow(code, t, fn, add, ctx);
}
