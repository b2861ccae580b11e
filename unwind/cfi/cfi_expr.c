/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>

#include "cfi_internal.h"

#define OPS_MAX 12

struct op {
	u8 code;
	u8 reg;
	s64 value;
};

struct ops {
	struct op op[OPS_MAX];
	u32 n, at;
};

/* One operation in a form of few words: DW_OP_breg0 and lit0 stand for their whole families. */
static bool read_op(struct cfi_cursor *c, struct op *op)
{
	u8 code = cursor_u8(c);

	*op = (struct op){.code = code};
	if (code >= DW_OP_lit0 && code <= DW_OP_lit31)
		*op = (struct op){.code = DW_OP_lit0, .value = code - DW_OP_lit0};
	else if (code >= DW_OP_breg0 && code <= DW_OP_breg31)
		*op = (struct op){DW_OP_breg0, (u8)(code - DW_OP_breg0), cursor_sleb(c)};
	else if (code == DW_OP_const1u)
		*op = (struct op){.code = DW_OP_lit0, .value = cursor_u8(c)};
	else if (code == DW_OP_const1s)
		*op = (struct op){.code = DW_OP_lit0, .value = (s8)cursor_u8(c)};
	else if (code == DW_OP_const2u)
		*op = (struct op){.code = DW_OP_lit0, .value = cursor_u16(c)};
	else if (code == DW_OP_plus_uconst)
		op->value = (s64)cursor_uleb(c);
	return !c->bad && op->reg < ARCH_NREGS && op->value >= INT32_MIN && op->value <= INT32_MAX;
}

static bool read_ops(const u8 *code, size_t size, struct ops *ops)
{
	struct cfi_cursor c = {.at = code, .end = code + size};

	*ops = (struct ops){0};
	while (cursor_left(&c)) {
		if (ops->n == OPS_MAX || !read_op(&c, &ops->op[ops->n]))
			return false;
		ops->n++;
	}
	return true;
}

static bool accept(struct ops *ops, u8 code, struct op *ret)
{
	if (ops->at == ops->n || ops->op[ops->at].code != code)
		return false;
	*ret = ops->op[ops->at++];
	return true;
}

static bool accept_value(struct ops *ops, u8 code, s64 value)
{
	struct op op;
	u32 at = ops->at;

	if (accept(ops, code, &op) && op.value == value)
		return true;
	ops->at = at;
	return false;
}

/* Any number of constants added. False: the sum leaves 32 bits. */
static bool accept_sum(struct ops *ops, s32 *sum)
{
	struct op op;

	for (;;) {
		u32 at = ops->at;

		if (!accept(ops, DW_OP_plus_uconst, &op) &&
		        !(accept(ops, DW_OP_lit0, &op) && accept_value(ops, DW_OP_plus, 0))) {
			ops->at = at;
			return true;
		}
		if (__builtin_add_overflow(*sum, op.value, sum))
			return false;
	}
}

/* "+ 8 * reg" */
static bool accept_index(struct ops *ops, u8 *index)
{
	struct op op;
	u32 at = ops->at;

	if (accept(ops, DW_OP_breg0, &op) && op.value == 0 &&
	        ((accept_value(ops, DW_OP_lit0, 8) && accept_value(ops, DW_OP_mul, 0)) ||
	                (accept_value(ops, DW_OP_lit0, 3) && accept_value(ops, DW_OP_shl, 0))) &&
	        accept_value(ops, DW_OP_plus, 0)) {
		*index = op.reg;
		return true;
	}
	ops->at = at;
	return false;
}

/* "+ ((rip & 15) >= threshold) << 3", as binutils describes lazy PLT slots (elfxx-x86.c, 2.40). */
static bool accept_plt(struct ops *ops, s32 *threshold)
{
	struct op rip, limit;
	u32 at = ops->at;

	if (accept(ops, DW_OP_breg0, &rip) && rip.reg == DWREG_RIP && rip.value == 0 &&
	        accept_value(ops, DW_OP_lit0, 15) && accept_value(ops, DW_OP_and, 0) &&
	        accept(ops, DW_OP_lit0, &limit) && limit.value >= 0 && limit.value <= 15 &&
	        accept_value(ops, DW_OP_ge, 0) && accept_value(ops, DW_OP_lit0, 3) && accept_value(ops, DW_OP_shl, 0) &&
	        accept_value(ops, DW_OP_plus, 0)) {
		*threshold = (s32)limit.value;
		return true;
	}
	ops->at = at;
	return false;
}

struct cfi_cfa cfi_cfa_expression(const u8 *code, size_t size)
{
	const struct cfi_cfa unsupported = {.kind = CFI_UNSUPPORTED};
	struct cfi_cfa cfa = {.kind = CFI_REG};
	struct ops ops;
	struct op base, op;

	if (!read_ops(code, size, &ops) || !accept(&ops, DW_OP_breg0, &base))
		return unsupported;
	cfa.reg = base.reg;
	cfa.offset = (s32)base.value;
	if (!accept_sum(&ops, &cfa.offset))
		return unsupported;
	if (base.reg == REG_SP && accept_plt(&ops, &cfa.add))
		return ops.at == ops.n ? (cfa.kind = CFI_PLT, cfa) : unsupported;
	if (accept_index(&ops, &cfa.index))
		cfa.kind = CFI_INDEXED;
	if (accept(&ops, DW_OP_deref, &op)) {
		cfa.kind = cfa.kind == CFI_INDEXED ? CFI_INDEXED : CFI_DEREF;
		if (!accept_sum(&ops, &cfa.add))
			return unsupported;
		if (cfa.kind == CFI_DEREF && accept(&ops, DW_OP_deref, &op)) {
			if (cfa.add < INT16_MIN || cfa.add > INT16_MAX)
				return unsupported;
			cfa.kind = CFI_DEREF_TWICE;
			cfa.between = (s16)cfa.add;
			cfa.add = 0;
			if (!accept_sum(&ops, &cfa.add))
				return unsupported;
		}
	} else if (cfa.kind == CFI_INDEXED) {
		return unsupported;
	}
	return ops.at == ops.n ? cfa : unsupported;
}

struct cfi_saved cfi_saved_expression(const u8 *code, size_t size)
{
	struct cfi_cfa at = cfi_cfa_expression(code, size);

	if (at.kind != CFI_REG)
		return (struct cfi_saved){.how = HOW_LOST};
	return (struct cfi_saved){.how = HOW_BASE, .reg = at.reg, .offset = at.offset};
}
