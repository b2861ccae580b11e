/* SPDX-License-Identifier: Apache-2.0 */
#include "arch.h"
#include "cfi/capstone_registers.h"
#include "lua_image.h"
#include "lua_sweep.h"

#define PROLOGUE 160
#define PLACES   8

/* A register that calls keep, or a slot of the stack. */
struct place {
	u8 reg;
	bool slot;
	s16 disp;   /* of the slot from reg */
	u16 from;   /* bytes of the function after which it has the argument */
	u32 writes; /* by any other instruction of the function */
};

struct search {
	csh handle;
	u64 start;
	u32 holds; /* registers that have the argument now */
	struct place place[PLACES];
	u32 n;
};

/* A set of general registers by their DWARF numbers. */
static u32 written(csh handle, const cs_insn *in)
{
	cs_regs read, write;
	u8 nread, nwrite;
	u32 ret = 0;

	if (cs_regs_access(handle, in, read, &nread, write, &nwrite) != CS_ERR_OK)
		return 0;
	for (u8 i = 0; i < nwrite; i++) {
		u8 reg = capstone_register(write[i]);

		ret |= reg < ARCH_NREGS ? 1u << reg : 0;
	}
	return ret;
}

static bool is_slot(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && (op->mem.base == X86_REG_RSP || op->mem.base == X86_REG_RBP) &&
	       op->mem.index == X86_REG_INVALID && op->mem.disp == (s16)op->mem.disp;
}

static void add_place(struct search *s, const cs_insn *in, struct place place)
{
	place.from = (u16)(in->address + in->size - s->start);
	if (s->n < PLACES)
		s->place[s->n++] = place;
}

/* Follows the copies of the argument as long as the code goes straight on. */
static bool see_copy(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *to = &x->operands[0], *from = &x->operands[1];
	struct search *s = ctx;
	bool copies;
	u8 reg;

	if (!s->holds || in->address - s->start > PROLOGUE || in->id == X86_INS_CALL || in->id == X86_INS_JMP ||
	        in->id == X86_INS_RET)
		return false;
	reg = in->id == X86_INS_MOV && from->type == X86_OP_REG && from->size == 8 ? capstone_register(from->reg)
	                                                                           : CAPSTONE_NO_REG;
	copies = reg < ARCH_NREGS && s->holds >> reg & 1;
	if (copies && is_slot(to))
		add_place(s, in,
		        (struct place){
		                .reg = capstone_register(to->mem.base), .slot = true, .disp = (s16)to->mem.disp});
	s->holds &= ~written(s->handle, in);
	reg = to->type == X86_OP_REG ? capstone_register(to->reg) : CAPSTONE_NO_REG;
	if (copies && reg < ARCH_NREGS) {
		s->holds |= 1u << reg;
		if (ARCH_SAVED_MASK >> reg & 1)
			add_place(s, in, (struct place){.reg = reg});
	}
	return true;
}

static bool see_write(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct search *s = ctx;
	u32 regs = in->id == X86_INS_POP ? 0 : written(s->handle, in);

	for (u32 i = 0; i < s->n; i++) {
		struct place *p = &s->place[i];

		if (in->address + in->size - s->start == p->from)
			continue;
		if (!p->slot)
			p->writes += regs >> p->reg & 1;
		else if (x->op_count && is_slot(&x->operands[0]) && x->operands[0].access & CS_AC_WRITE)
			p->writes += capstone_register(x->operands[0].mem.base) == p->reg &&
			             x->operands[0].mem.disp == p->disp;
	}
	return true;
}

/* Where else it puts that, to use its register for something else for a while. */
struct spills {
	u8 l_reg;
	struct lua_vm *vm;
};

static bool see_spill(void *ctx, const cs_insn *in)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];
	struct spills *s = ctx;
	struct lua_vm *vm = s->vm;
	u8 base, copy;

	if (in->id != X86_INS_MOV || from->type != X86_OP_REG || from->size != 8 ||
	        capstone_register(from->reg) != s->l_reg)
		return true;
	copy = to->type == X86_OP_REG ? capstone_register(to->reg) : CAPSTONE_NO_REG;
	if (copy < ARCH_NREGS && (copy == DWREG_RDI || ARCH_SAVED_MASK >> copy & 1))
		vm->copies |= (u16)(1u << copy);
	base = is_slot(to) ? capstone_register(to->mem.base) : CAPSTONE_NO_REG;
	if (base == CAPSTONE_NO_REG || vm->nspills == LUA_SPILLS || (vm->nspills && base != vm->spill_reg))
		return true;
	for (u32 i = 0; i < vm->nspills; i++)
		if (vm->spill[i] == to->mem.disp)
			return true;
	vm->spill_reg = base;
	vm->spill[vm->nspills++] = (s16)to->mem.disp;
	return true;
}

bool lua_state_find(struct lua_sweep *sweep, u64 start, u64 end, struct lua_vm *ret)
{
	struct search s = {.handle = sweep->handle, .start = start, .holds = 1u << DWREG_RDI};
	const struct place *best = s.place;

	lua_sweep(sweep, start, end, see_copy, &s);
	lua_sweep(sweep, start, end, see_write, &s);
	for (u32 i = 1; i < s.n; i++)
		if (s.place[i].writes < best->writes ||
		        (s.place[i].writes == best->writes && s.place[i].slot && !best->slot))
			best = &s.place[i];
	if (!s.n)
		return false;
	ret->l_reg = best->reg;
	ret->l_in_slot = best->slot;
	ret->l_slot = best->disp;
	ret->l_from = best->from;
	if (!best->slot) {
		struct spills spills = {best->reg, ret};

		lua_sweep(sweep, start, end, see_spill, &spills);
	}
	return true;
}
