/* SPDX-License-Identifier: Apache-2.0 */
#include "luajit_state.h"

const struct luajit_state luajit_state_standard = {.known = true,
        .part = LUAJIT_INTERP,
        .cfa_reg = DWREG_RSP,
        .cfa = LUAJIT_CFA,
        .slot = {[SLOT_RBP] = -16, [SLOT_RBX] = -24, [SLOT_R15] = -32, [SLOT_R14] = -40}};
const struct luajit_state luajit_state_entry = {.known = true, .part = LUAJIT_GLUE, .cfa_reg = DWREG_RSP, .cfa = 8};

static void save(struct luajit_state *s, u8 reg, s16 where)
{
	u32 i = arch_saved_slot(reg);

	if (i < ARCH_NSAVED && !s->slot[i])
		s->slot[i] = where;
}

static void unsave(struct luajit_state *s, u8 reg, s16 where)
{
	u32 i = arch_saved_slot(reg);

	if (i < ARCH_NSAVED && s->slot[i] == where)
		s->slot[i] = 0;
}

static void move_sp(struct luajit_state *s, s16 by)
{
	if (s->cfa_reg == DWREG_RSP)
		s->cfa -= by;
	else
		s->sp -= by;
}

static s16 depth(const struct luajit_state *s)
{
	return s->cfa_reg == DWREG_RSP ? s->cfa : s->sp;
}

bool luajit_is_link_at(const struct luajit_layout *layout, const struct code_ins *in)
{
	u8 size = luajit_gc64(layout) ? 8 : 4;

	return in->base == DWREG_RDX && in->value == -(s64)size && in->reg == DWREG_RBX && in->size == size;
}

static void apply_store(const struct luajit_layout *layout, const struct code_ins *in, struct luajit_state *s)
{
	bool saved = in->size == 8 && (in->reg == DWREG_R12 || in->reg == DWREG_R13);

	if (in->base == DWREG_RSP && saved)
		save(s, in->reg, (s16)in->value - depth(s));
	/* the cframe is linked here, or the outer one again */
	if (in->base == DWREG_RBP && in->value == layout->l_cframe.at && in->size == 8 && s->cfa == LUAJIT_CFA)
		s->part = s->part == LUAJIT_GLUE ? LUAJIT_ENTER : LUAJIT_GLUE;
	if (luajit_is_link_at(layout, in) && s->part == LUAJIT_ENTER)
		s->part = LUAJIT_INTERP;
}

void luajit_state_apply(const struct luajit_layout *layout, const struct code_ins *in, struct luajit_state *s)
{
	switch (in->op) {
	case CODE_PUSH:
		move_sp(s, -8);
		if (in->reg != CODE_NO_REG)
			save(s, in->reg, -depth(s));
		break;
	case CODE_POP:
		if (in->reg != CODE_NO_REG)
			unsave(s, in->reg, -depth(s));
		move_sp(s, 8);
		break;
	case CODE_MOVE_SP:
		move_sp(s, (s16)in->value);
		break;
	case CODE_SET_SP:
		*s = luajit_state_standard;
		break;
	case CODE_SET_FP:
		s->sp = s->cfa;
		s->cfa_reg = DWREG_RBP;
		break;
	case CODE_LEAVE:
		unsave(s, DWREG_RBP, s->slot[SLOT_RBP]);
		s->cfa_reg = DWREG_RSP;
		s->cfa = 8;
		break;
	case CODE_LOAD:
		if (s->cfa_reg == DWREG_RBP && in->base == DWREG_RBP)
			unsave(s, in->reg, (s16)in->value - s->cfa);
		if (s->part == LUAJIT_ENTER && luajit_is_link_at(layout, in))
			s->part = LUAJIT_INTERP; /* vm_resume goes on with a frame that is there */
		break;
	case CODE_STORE:
		apply_store(layout, in, s);
		break;
	case CODE_FLIP: /* rbx, a link, is about to become the base of whoever called from C */
		if (in->reg == DWREG_RBX && in->value == 1 && (s->part == LUAJIT_INTERP || s->part == LUAJIT_ENTER))
			s->part = LUAJIT_LEAVE;
		s->flipped = s->part == LUAJIT_LEAVE;
		break;
	case CODE_CALL: /* of lj_ccallback_enter, which links the cframe of a callback */
		if (s->part == LUAJIT_GLUE && s->cfa_reg == DWREG_RSP && s->cfa == LUAJIT_CFA)
			s->part = LUAJIT_INTERP;
		break;
	}
}

struct cfi_rule luajit_state_rule(const struct luajit_state *s)
{
	struct cfi_rule rule = {.kind = CFI_REG,
	        .cfa_reg = s->cfa_reg,
	        .cfa_off = s->cfa,
	        .slot_reg = CFI_NO_REG,
	        .ra_reg = CFI_NO_REG};

	if (s->part == LUAJIT_EXIT)
		rule.kind = CFI_UNSUPPORTED;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = s->slot[i] ? cfi_slot(s->slot[i], 0) : CFI_SAME;
	rule.slot[ARCH_SLOT_RA] = cfi_slot(-8, 0);
	return rule;
}
