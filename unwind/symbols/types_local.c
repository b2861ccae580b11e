/* SPDX-License-Identifier: Apache-2.0 */
#include "types_local.h"

#include <stdlib.h>

#include "cleanup.h"
#include "debug_type.h"
#include "dwarf/types_read.h"

#define GENERAL_REGISTERS 16u /* rax to r15 */
#define NAMES_MOST        4096u

struct scopes {
	Dwarf_Die *of; /* innermost first */
	int n;
};

static bool find_scopes(struct types *t, u64 addr, struct scopes *ret)
{
	Dwarf_Die unit;

	*ret = (struct scopes){0};
	if (debug_unit(t->dwarf, addr, &unit))
		ret->n = dwarf_getscopes(&unit, addr, &ret->of);
	return ret->n > 0;
}

/* The function whose frame it is: what is inlined has that of the function around it. */
static bool find_function(const struct scopes *s, Dwarf_Die *ret)
{
	for (int i = 0; i < s->n; i++) {
		cleanup(free) Dwarf_Die *around = NULL;
		int n;

		if (dwarf_tag(&s->of[i]) == DW_TAG_subprogram) {
			*ret = s->of[i];
			return true;
		}
		if (dwarf_tag(&s->of[i]) != DW_TAG_inlined_subroutine)
			continue;
		n = dwarf_getscopes_die(&s->of[i], &around);
		for (int k = 0; k < n; k++)
			if (dwarf_tag(&around[k]) == DW_TAG_subprogram) {
				*ret = around[k];
				return true;
			}
		return false;
	}
	return false;
}

/* A register as such, or a register and an offset. False: something else. */
static bool is_register(const Dwarf_Op *op, u64 *reg)
{
	*reg = op->atom == DW_OP_regx ? op->number : (u64)op->atom - DW_OP_reg0;
	return (op->atom == DW_OP_regx || (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)) &&
	       *reg < GENERAL_REGISTERS;
}

static bool is_based(const Dwarf_Op *op, u64 *reg, s64 *offset)
{
	*reg = op->atom == DW_OP_bregx ? op->number : (u64)op->atom - DW_OP_breg0;
	*offset = (s64)(op->atom == DW_OP_bregx ? op->number2 : op->number);
	return (op->atom == DW_OP_bregx || (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)) &&
	       *reg < GENERAL_REGISTERS;
}

/* The frame's address (CFA) at addr as a register and an offset. */
static bool frame_of_call(struct image *code, u64 addr, u64 *reg, s64 *offset)
{
	Elf *elf = image_open_elf(code);
	Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	Dwarf_Frame *frame = NULL;
	bool found = false;
	Dwarf_Op *ops;
	size_t n;

	if (cfi && !dwarf_cfi_addrframe(cfi, addr, &frame))
		found = !dwarf_frame_cfa(frame, &ops, &n) && n == 1 && is_based(ops, reg, offset);
	free(frame);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	return found;
}

/* What DW_OP_fbreg counts from. */
static bool frame_base(const struct scopes *s, struct image *code, u64 addr, u64 *reg, s64 *offset)
{
	Dwarf_Attribute attr;
	Dwarf_Die function;
	Dwarf_Op *ops;
	size_t n;

	*offset = 0;
	if (!find_function(s, &function) || !dwarf_attr_integrate(&function, DW_AT_frame_base, &attr) ||
	        dwarf_getlocation_addr(&attr, addr, &ops, &n, 1) < 1 || n != 1)
		return false;
	if (ops->atom == DW_OP_call_frame_cfa)
		return frame_of_call(code, addr, reg, offset);
	return is_register(ops, reg) || is_based(ops, reg, offset);
}

/* DW_OP_lit5, const1s and so on. */
static bool is_constant(const Dwarf_Op *op, s64 *ret)
{
	*ret = op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31 ? op->atom - DW_OP_lit0 : (s64)op->number;
	return (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) ||
	       (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts);
}

static enum type_where locate(
        const struct scopes *s, struct image *code, u64 addr, Dwarf_Die *die, struct type_local *ret)
{
	Dwarf_Attribute attr;
	bool is_value;
	Dwarf_Word number;
	Dwarf_Op *ops;
	s64 base;
	size_t n;
	u64 reg;

	if (dwarf_attr_integrate(die, DW_AT_const_value, &attr)) {
		if (!dwarf_formsdata(&attr, &ret->offset))
			return WHERE_VALUE;
		if (dwarf_formudata(&attr, &number))
			return WHERE_OTHER;
		ret->offset = (s64)number;
		return WHERE_VALUE;
	}
	if (!dwarf_attr_integrate(die, DW_AT_location, &attr) || dwarf_getlocation_addr(&attr, addr, &ops, &n, 1) < 1 ||
	        !n)
		return WHERE_NOWHERE;
	if (n == 1 && ops->atom == DW_OP_addr) {
		ret->offset = (s64)ops->number;
		return WHERE_ADDRESS;
	}
	is_value = n == 2 && ops[1].atom == DW_OP_stack_value;
	if (n > 1 && !is_value)
		return WHERE_OTHER;
	if (is_value && is_constant(ops, &ret->offset))
		return WHERE_VALUE;
	if (!is_value && is_register(ops, &reg)) {
		ret->reg = (u8)reg;
		return WHERE_REGISTER;
	}
	if (ops->atom == DW_OP_fbreg && frame_base(s, code, addr, &reg, &base))
		ret->offset = base + (s64)ops->number;
	else if (!is_based(ops, &reg, &ret->offset))
		return WHERE_OTHER;
	ret->reg = (u8)reg;
	return is_value ? WHERE_SUM : WHERE_MEMORY;
}

enum type_where types_local(struct types *t, struct image *code, u64 addr, const char *name, struct type_local *ret)
{
	enum type_where where = WHERE_UNKNOWN;
	Dwarf_Attribute attr;
	Dwarf_Die die, type;
	struct scopes s;

	*ret = (struct type_local){0};
	if (find_scopes(t, addr, &s) && dwarf_getscopevar(s.of, s.n, name, 0, NULL, 0, 0, &die) >= 0) {
		if (dwarf_formref_die(dwarf_attr_integrate(&die, DW_AT_type, &attr), &type))
			ret->type = type_of_die(t, &type);
		where = ret->type ? locate(&s, code, addr, &die, ret) : WHERE_OTHER;
	}
	free(s.of);
	return where;
}

void types_locals(struct types *t, u64 addr, void (*each)(void *ctx, const char *name), void *ctx)
{
	struct scopes s;
	u32 looked = 0;

	find_scopes(t, addr, &s);
	for (int i = 0; i < s.n && dwarf_tag(&s.of[i]) != DW_TAG_compile_unit; i++) {
		Dwarf_Die child;

		for (int end = dwarf_child(&s.of[i], &child); !end && looked++ < NAMES_MOST;
		        end = dwarf_siblingof(&child, &child)) {
			int tag = dwarf_tag(&child);
			const char *name = dwarf_diename(&child);

			if (name && (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter))
				each(ctx, name);
		}
	}
	free(s.of);
}

bool types_is_entry(struct types *t, u64 addr)
{
	Dwarf_Die function;
	Dwarf_Addr entry;
	struct scopes s;
	bool is;

	is = find_scopes(t, addr, &s) && find_function(&s, &function) && !dwarf_entrypc(&function, &entry) &&
	     entry == addr;
	free(s.of);
	return is;
}
