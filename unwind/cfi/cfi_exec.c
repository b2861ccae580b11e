/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>
#include <stdlib.h>

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

/*
 * The rule that an expression of size bytes gives; kind CFI_UNSUPPORTED, HOW_LOST if it has none of the known shapes.
 */
static struct cfi_cfa cfi_cfa_expression(const u8 *code, size_t size)
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

static struct cfi_saved cfi_saved_expression(const u8 *code, size_t size)
{
	struct cfi_cfa at = cfi_cfa_expression(code, size);

	if (at.kind != CFI_REG)
		return (struct cfi_saved){.how = HOW_LOST};
	return (struct cfi_saved){.how = HOW_BASE, .reg = at.reg, .offset = at.offset};
}

#define REMEMBER_MAX 32

struct machine {
	struct cfi_cursor c;
	const struct cfi_cie *cie;
	struct cfi_rows *rows; /* NULL in a CIE, where no location may change */
	u64 loc, end;
	bool no_memory;
	u32 depth;
	struct cfi_state state;
	struct cfi_state stack[REMEMBER_MAX];
};

static bool fits_s32(s64 v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

static s64 factored(const struct machine *m, s64 v)
{
	return (s64)((u64)v * (u64)m->cie->data_align);
}

bool cfi_rows_add(struct cfi_rows *rows, u64 addr, const struct cfi_rule *rule)
{
	size_t room = rows->room ? rows->room * 2 : 64;
	struct cfi_entry *grown;

	if (rows->n == rows->room) {
		grown = reallocarray(rows->entry, room, sizeof(*grown));
		if (!grown)
			return false;
		rows->entry = grown;
		rows->room = room;
	}
	rows->entry[rows->n++] = (struct cfi_entry){.addr = addr, .rule = *rule};
	return true;
}

/* The state holds from m->loc on, so far. */
static void emit(struct machine *m)
{
	struct cfi_rule rule;

	cfi_rule_of(&m->state, m->cie, &rule);
	if (!cfi_rows_add(m->rows, m->loc, &rule))
		m->no_memory = m->c.bad = true;
}

static void move_to(struct machine *m, u64 loc)
{
	if (!m->rows || loc < m->loc) {
		m->c.bad = true;
		return;
	}
	if (loc == m->loc)
		return;
	emit(m);
	m->loc = loc;
	if (loc >= m->end)
		m->c.at = m->c.end;
}

static void advance(struct machine *m, u64 delta)
{
	u64 step;

	if (__builtin_mul_overflow(delta, m->cie->code_align, &step) || __builtin_add_overflow(step, m->loc, &step))
		m->c.bad = true;
	else
		move_to(m, step);
}

static void save(struct machine *m, u64 column, u8 how, u64 reg, s64 offset)
{
	if (column >= ARCH_NREGS)
		return;
	if (!fits_s32(offset) || reg >= ARCH_NREGS)
		how = HOW_LOST;
	if (how == HOW_LOST)
		reg = offset = 0;
	m->state.saved[column] = (struct cfi_saved){how, (u8)reg, (s32)offset};
}

static void restore(struct machine *m, u64 column)
{
	if (!m->rows)
		m->c.bad = true;
	else if (column < ARCH_NREGS)
		m->state.saved[column] = m->cie->initial.saved[column];
}

static void set_cfa(struct machine *m, u64 reg, s64 offset)
{
	m->state.cfa = (struct cfi_cfa){.kind = CFI_REG, .reg = (u8)reg, .offset = (s32)offset};
	m->state.cfa_offset = (s32)offset;
	if (reg >= ARCH_NREGS || !fits_s32(offset))
		m->c.bad = true;
}

/* Behind an expression this goes into the next plain CFA, as libgcc has it (unwind-dw2.c, 12.2). */
static void set_cfa_offset(struct machine *m, s64 offset)
{
	if (m->state.cfa.kind == CFI_NONE || !fits_s32(offset))
		m->c.bad = true;
	else if (m->state.cfa.kind == CFI_REG)
		set_cfa(m, m->state.cfa.reg, offset);
	else
		m->state.cfa_offset = (s32)offset;
}

/* libgcrypt's assembly goes back from an expression this way; libdw takes that for an error, libgcc does not. */
static void set_cfa_register(struct machine *m, u64 reg)
{
	if (m->state.cfa.kind == CFI_NONE)
		m->c.bad = true;
	else
		set_cfa(m, reg, m->state.cfa_offset);
}

static const u8 *take_block(struct machine *m, u64 *size)
{
	*size = cursor_uleb(&m->c);
	return cursor_take(&m->c, *size);
}

static void set_cfa_expression(struct machine *m)
{
	u64 size;
	const u8 *code = take_block(m, &size);

	if (code)
		m->state.cfa = cfi_cfa_expression(code, size);
}

static void save_expression(struct machine *m)
{
	u64 column = cursor_uleb(&m->c), size;
	const u8 *code = take_block(m, &size);

	if (code && column < ARCH_NREGS)
		m->state.saved[column] = cfi_saved_expression(code, size);
}

static void remember(struct machine *m)
{
	if (m->depth == REMEMBER_MAX)
		m->c.bad = true;
	else
		m->stack[m->depth++] = m->state;
}

static void recall(struct machine *m)
{
	if (!m->depth)
		m->c.bad = true;
	else
		m->state = m->stack[--m->depth];
}

static bool location_op(struct machine *m, u8 op)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_advance_loc1:
		advance(m, cursor_u8(&m->c));
		return true;
	case DW_CFA_advance_loc2:
		advance(m, cursor_u16(&m->c));
		return true;
	case DW_CFA_advance_loc4:
		advance(m, cursor_u32(&m->c));
		return true;
	case DW_CFA_MIPS_advance_loc8:
		advance(m, cursor_u64(&m->c));
		return true;
	case DW_CFA_set_loc:
		move_to(m, cfi_pointer(&m->c, m->cie->source, m->cie->encoding));
		return true;
	case DW_CFA_remember_state:
		remember(m);
		return true;
	case DW_CFA_restore_state:
		recall(m);
		return true;
	case DW_CFA_GNU_args_size: /* only for throwing */
		cursor_uleb(&m->c);
		return true;
	}
	return false;
}

static bool cfa_op(struct machine *m, u8 op)
{
	u64 reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cursor_uleb(&m->c);
		set_cfa(m, reg, (s64)cursor_uleb(&m->c));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = cursor_uleb(&m->c);
		set_cfa(m, reg, factored(m, cursor_sleb(&m->c)));
		return true;
	case DW_CFA_def_cfa_register:
		set_cfa_register(m, cursor_uleb(&m->c));
		return true;
	case DW_CFA_def_cfa_offset:
		set_cfa_offset(m, (s64)cursor_uleb(&m->c));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_offset(m, factored(m, cursor_sleb(&m->c)));
		return true;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(m);
		return true;
	}
	return false;
}

/* Rows hold no values, but the stack pointer's: that it is the CFA, or at a distance from a register. */
static void save_value(struct machine *m, u64 column, s64 offset)
{
	save(m, column, column == REG_SP && offset == 0 ? HOW_UNSPECIFIED : HOW_LOST, 0, 0);
}

static void save_value_expression(struct machine *m, u64 column, u64 size)
{
	const u8 *code = cursor_take(&m->c, size);
	struct cfi_saved at =
	        code && column == REG_SP ? cfi_saved_expression(code, size) : (struct cfi_saved){.how = HOW_LOST};

	save(m, column, at.how == HOW_BASE ? HOW_REGISTER : HOW_LOST, at.reg, at.offset);
}

static bool value_op(struct machine *m, u8 op)
{
	u64 column;

	switch (op) {
	case DW_CFA_val_offset:
		column = cursor_uleb(&m->c);
		save_value(m, column, (s64)cursor_uleb(&m->c));
		return true;
	case DW_CFA_val_offset_sf:
		column = cursor_uleb(&m->c);
		save_value(m, column, cursor_sleb(&m->c));
		return true;
	case DW_CFA_val_expression:
		column = cursor_uleb(&m->c);
		save_value_expression(m, column, cursor_uleb(&m->c));
		return true;
	}
	return false;
}

static bool register_op(struct machine *m, u8 op)
{
	u64 column;

	switch (op) {
	case DW_CFA_offset_extended:
		column = cursor_uleb(&m->c);
		save(m, column, HOW_OFFSET, 0, factored(m, (s64)cursor_uleb(&m->c)));
		return true;
	case DW_CFA_offset_extended_sf:
		column = cursor_uleb(&m->c);
		save(m, column, HOW_OFFSET, 0, factored(m, cursor_sleb(&m->c)));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		column = cursor_uleb(&m->c);
		save(m, column, HOW_OFFSET, 0, factored(m, (s64)-cursor_uleb(&m->c)));
		return true;
	case DW_CFA_restore_extended:
		restore(m, cursor_uleb(&m->c));
		return true;
	case DW_CFA_undefined:
		save(m, cursor_uleb(&m->c), HOW_UNDEFINED, 0, 0);
		return true;
	case DW_CFA_same_value:
		save(m, cursor_uleb(&m->c), HOW_SAME, 0, 0);
		return true;
	case DW_CFA_register:
		column = cursor_uleb(&m->c);
		save(m, column, HOW_REGISTER, cursor_uleb(&m->c), 0);
		return true;
	case DW_CFA_expression:
		save_expression(m);
		return true;
	}
	return value_op(m, op);
}

static void step(struct machine *m)
{
	u8 op = cursor_u8(&m->c), low = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		advance(m, low);
		return;
	case DW_CFA_offset:
		save(m, low, HOW_OFFSET, 0, factored(m, (s64)cursor_uleb(&m->c)));
		return;
	case DW_CFA_restore:
		restore(m, low);
		return;
	}
	if (!location_op(m, op) && !cfa_op(m, op) && !register_op(m, op))
		m->c.bad = true;
}

static bool run(struct machine *m, const u8 *code, size_t size)
{
	m->c = (struct cfi_cursor){.at = code, .end = code + size};
	while (!m->c.bad && cursor_left(&m->c))
		step(m);
	return !m->c.bad;
}

bool cfi_run_cie(struct cfi_cie *cie, const u8 *code, size_t size)
{
	struct machine m;

	m.cie = cie;
	m.rows = NULL;
	m.loc = m.end = 0;
	m.depth = 0;
	m.no_memory = false;
	m.state = (struct cfi_state){0};
	if (!run(&m, code, size))
		return false;
	cie->initial = m.state;
	return true;
}

enum cfi_run cfi_run_function(const struct cfi_cie *cie, const struct cfi_function *fn, struct cfi_rows *rows)
{
	size_t before = rows->n;
	struct machine m;

	m.cie = cie;
	m.rows = rows;
	m.loc = fn->start;
	m.end = fn->end;
	m.depth = 0;
	m.no_memory = false;
	m.state = cie->initial;
	if (run(&m, fn->code, fn->code_size) && m.loc < m.end)
		emit(&m);
	if (!m.c.bad)
		return CFI_RUN_OK;
	rows->n = before;
	return m.no_memory ? CFI_RUN_NO_MEMORY : CFI_RUN_CORRUPT;
}
