/* SPDX-License-Identifier: Apache-2.0 */
#include "arch.h"
#include "code/capstone_registers.h"
#include "lua_image.h"
#include "lua_sweep.h"

struct search {
	u64 start, call;        /* call: the end of the latest one */
	s64 savedpc;            /* lua_State.savedpc */
	u32 stores[ARCH_NREGS]; /* of each register into it */
	u8 count_base,
	        count_loaded; /* nexeccalls: the register that its slot is found from; one that it was loaded to */
	s64 count_disp;
	u64 returns;
};

static u8 general(const cs_x86_op *op)
{
	return op->type == X86_OP_REG ? capstone_register(op->reg) : CAPSTONE_NO_REG;
}

static bool is_count(const struct search *s, const cs_x86_op *op)
{
	return s->count_base && op->type == X86_OP_MEM && capstone_register(op->mem.base) == s->count_base &&
	       op->mem.index == X86_REG_INVALID && op->mem.disp == s->count_disp;
}

static bool is_less_by_one(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	return in->id == X86_INS_DEC || (x->op_count == 2 && x->operands[1].type == X86_OP_IMM &&
	                                        ((in->id == X86_INS_SUB && x->operands[1].imm == 1) ||
	                                                (in->id == X86_INS_ADD && (s32)x->operands[1].imm == -1)));
}

static void see_store(struct search *s, const cs_x86_op *to, const cs_x86_op *from)
{
	u8 reg = general(from), base = capstone_register(to->mem.base);

	if (reg >= ARCH_NREGS || to->mem.index != X86_REG_INVALID)
		return;
	if (from->size == 8 && base != DWREG_RSP && to->mem.disp == s->savedpc)
		s->stores[reg]++;
	if (!s->count_base && from->reg == X86_REG_ESI && (base == DWREG_RSP || base == DWREG_RBP)) {
		s->count_base = base;
		s->count_disp = to->mem.disp;
	}
}

static bool see(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *to = &x->operands[0], *from = &x->operands[1];
	struct search *s = ctx;
	u8 loaded = s->count_loaded;

	s->count_loaded = CAPSTONE_NO_REG;
	if (in->id == X86_INS_CALL) {
		s->call = in->address + in->size;
	} else if (in->id == X86_INS_MOV && to->type == X86_OP_MEM) {
		see_store(s, to, from);
	} else if (in->id == X86_INS_MOV && is_count(s, from)) {
		s->count_loaded = general(to);
	} else if (s->call && !s->returns && is_less_by_one(in) &&
	           (is_count(s, to) || (general(to) < ARCH_NREGS && general(to) == loaded))) {
		s->returns = s->call;
	}
	return true;
}

struct error *lua_position_find(struct image *img, struct lua_image *ret)
{
	struct search s = {
	        .start = ret->ranges[0].start, .savedpc = ret->vm.l_savedpc, .count_loaded = CAPSTONE_NO_REG};
	struct lua_sweep sweep;
	struct error *err = lua_sweep_open(img, &sweep);
	u8 best = 0;

	if (!err)
		lua_sweep(&sweep, s.start, ret->ranges[0].end, see, &s);
	lua_sweep_close(&sweep);
	for (u8 i = 1; i < ARCH_NREGS; i++)
		if (s.stores[i] > s.stores[best])
			best = i;
	ret->vm.pc_reg = best;
	ret->vm.pc_kept = ARCH_SAVED_MASK >> best & 1;
	if (s.returns && s.returns - s.start <= UINT16_MAX)
		ret->vm.returns = (u16)(s.returns - s.start - ARCH_CALL_BACK);
	return err;
}
