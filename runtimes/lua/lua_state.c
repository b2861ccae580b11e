/* SPDX-License-Identifier: Apache-2.0 */
#include "arch.h"
#include "code/capstone_registers.h"
#include "lua_image.h"
#include "lua_sweep.h"

#define PROLOGUE    160
#define PLACES      8
#define SLOTS       16
#define SAVES_LEAST 8 /* stores to slots that show that calls do not keep a register */

/* A register, or a slot of the stack. */
struct place {
	u8 reg;
	bool slot;
	s16 disp;   /* of the slot from reg */
	u16 from;   /* bytes of the function after which it has the argument */
	u32 writes; /* by other instructions; not loads of a register that calls do not preserve */
	u32 saves;  /* stores of the register to a slot */
};

struct search {
	csh handle;
	u64 start;
	u32 holds; /* registers that have the argument now */
	struct place place[PLACES];
	u32 n;
	bool pushes; /* constants: the stack pointer is a word lower until they are popped */
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
		add_place(s, in, (struct place){.reg = reg});
	}
	return true;
}

static bool is_kept(const struct place *p)
{
	return p->slot || ARCH_SAVED_MASK >> p->reg & 1;
}

static bool see_write(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct search *s = ctx;
	u32 regs = in->id == X86_INS_POP ? 0 : written(s->handle, in);
	bool loads = in->id == X86_INS_MOV && is_slot(&x->operands[1]);
	u8 stored = in->id == X86_INS_MOV && is_slot(&x->operands[0]) && x->operands[1].type == X86_OP_REG
	                    ? capstone_register(x->operands[1].reg)
	                    : CAPSTONE_NO_REG;

	s->pushes = s->pushes || (in->id == X86_INS_PUSH && x->operands[0].type == X86_OP_IMM);
	for (u32 i = 0; i < s->n; i++) {
		struct place *p = &s->place[i];

		if (in->address + in->size - s->start == p->from)
			continue;
		if (!p->slot && stored == p->reg)
			p->saves++;
		if (!p->slot)
			p->writes += regs >> p->reg & 1 && (is_kept(p) || !loads);
		else if (x->op_count && is_slot(&x->operands[0]) && x->operands[0].access & CS_AC_WRITE)
			p->writes += capstone_register(x->operands[0].mem.base) == p->reg &&
			             x->operands[0].mem.disp == p->disp;
	}
	return true;
}

/* Where else it puts that: to use its register for something else for a while, or to keep it over a call. */
struct spills {
	u8 l_reg;
	struct lua_vm *vm;
	struct {
		u8 base;
		s16 disp;
		u32 n;
	} slot[SLOTS];
};

static bool see_spill(void *ctx, const cs_insn *in)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];
	struct spills *s = ctx;
	u32 i = 0;
	u8 copy;

	if (in->id != X86_INS_MOV || from->type != X86_OP_REG || from->size != 8 ||
	        capstone_register(from->reg) != s->l_reg)
		return true;
	copy = to->type == X86_OP_REG ? capstone_register(to->reg) : CAPSTONE_NO_REG;
	if (copy < ARCH_NREGS && (copy == DWREG_RDI || ARCH_SAVED_MASK >> copy & 1))
		s->vm->copies |= (u16)(1u << copy);
	if (!is_slot(to))
		return true;
	while (i < SLOTS && s->slot[i].n &&
	        (s->slot[i].disp != to->mem.disp || s->slot[i].base != capstone_register(to->mem.base)))
		i++;
	if (i == SLOTS)
		return true;
	s->slot[i].base = capstone_register(to->mem.base);
	s->slot[i].disp = (s16)to->mem.disp;
	s->slot[i].n++;
	return true;
}

/* The slots with most stores first. They have one base: walks read its register once. */
static void choose_spills(struct spills *s)
{
	struct lua_vm *vm = s->vm;

	while (vm->nspills < LUA_SPILLS) {
		u32 best = 0;

		for (u32 i = 1; i < SLOTS; i++)
			if (s->slot[i].n > s->slot[best].n)
				best = i;
		if (!s->slot[best].n)
			return;
		s->slot[best].n = 0;
		if (vm->nspills && s->slot[best].base != vm->spill_reg)
			continue;
		vm->spill_reg = s->slot[best].base;
		vm->spill[vm->nspills++] = s->slot[best].disp;
	}
}

static bool is_better(const struct place *p, const struct place *best)
{
	if (!is_kept(p) && p->saves < SAVES_LEAST)
		return false;
	return !best || p->writes < best->writes || (p->writes == best->writes && p->slot && !best->slot);
}

bool lua_state_find(struct lua_sweep *sweep, u64 start, u64 end, struct lua_vm *ret)
{
	struct search s = {.handle = sweep->d.handle, .start = start, .holds = 1u << DWREG_RDI};
	const struct place *best = NULL;

	lua_sweep(sweep, start, end, see_copy, &s);
	lua_sweep(sweep, start, end, see_write, &s);
	for (u32 i = 0; i < s.n; i++)
		if (is_better(&s.place[i], best))
			best = &s.place[i];
	if (!best)
		return false;
	ret->l_reg = best->reg;
	ret->l_in_slot = best->slot;
	ret->l_reused = best->writes != 0;
	ret->l_slot = best->disp;
	ret->l_from = best->from;
	if (best->slot && best->reg == DWREG_RSP && s.pushes) {
		ret->spill_reg = best->reg;
		ret->spill[ret->nspills++] = (s16)(best->disp + 8);
	} else if (!best->slot) {
		struct spills spills = {.l_reg = best->reg, .vm = ret};

		lua_sweep(sweep, start, end, see_spill, &spills);
		choose_spills(&spills);
	}
	return true;
}

const char *lua_state_extent(const struct lua_vm *vm)
{
	if (!vm->l_in_slot && !(ARCH_SAVED_MASK >> vm->l_reg & 1))
		return "DWARF number, between calls of luaV_execute; during these one of its slots has it";
	if (vm->l_reused)
		return "DWARF number, in most of luaV_execute; elsewhere a copy has it";
	return "DWARF number, in all of luaV_execute behind its first instructions";
}
