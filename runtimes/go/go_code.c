/* SPDX-License-Identifier: Apache-2.0 */
#include "go_code.h"

#include <stdlib.h>
#include <sys/param.h>

#include "code/capstone_registers.h"
#include "go_code_read.h"
#include "shared/cfi.h"

struct go_code *go_code_create(void)
{
	struct go_code *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	if (disassembler_open(&code->d))
		return code;
	free(code);
	return NULL;
}

void go_code_destroy(struct go_code *code)
{
	if (!code)
		return;
	disassembler_close(&code->d);
	free(code);
}

bool go_code_start(struct go_code *code, struct go_table *t, const struct go_function *fn)
{
	u64 size = MIN(fn->end - fn->start, sizeof(code->bytes));

	code->next = code->bytes;
	code->addr = fn->start;
	code->left = go_read(&t->file, code->bytes, (u32)size, fn->start) ? size : 0;
	return code->left;
}

const cs_insn *go_code_next(struct go_code *code)
{
	return cs_disasm_iter(code->d.handle, &code->next, &code->left, &code->addr, code->d.in) ? code->d.in : NULL;
}

/* mov from, to of two registers (x86_reg) */
static bool go_is_move(const cs_insn *in, u32 to, u32 from)
{
	const cs_x86 *x = &in->detail->x86;

	return in->id == X86_INS_MOV && x->op_count == 2 && x->operands[0].type == X86_OP_REG &&
	       x->operands[1].type == X86_OP_REG && x->operands[0].reg == (x86_reg)to &&
	       x->operands[1].reg == (x86_reg)from;
}

bool go_is_load(const cs_insn *in, u32 to)
{
	const cs_x86 *x = &in->detail->x86;

	return in->id == X86_INS_MOV && x->op_count == 2 && x->operands[0].type == X86_OP_REG &&
	       x->operands[1].type == X86_OP_MEM && x->operands[0].reg == (x86_reg)to;
}

static void add_reference(struct go_references *ret, u64 at)
{
	for (u32 i = 0; i < ret->n; i++)
		if (ret->at[i] == at)
			return;
	if (ret->n < GO_REFERENCES)
		ret->at[ret->n++] = at;
}

void go_code_references(
        struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_references *ret)
{
	const cs_insn *in;

	ret->n = 0;
	for (go_code_start(code, t, fn); (in = go_code_next(code));)
		for (u32 i = 0; i < in->detail->x86.op_count; i++) {
			const cs_x86_op *op = &in->detail->x86.operands[i];

			if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP && op->mem.index == X86_REG_INVALID)
				add_reference(ret, in->address + in->size + (u64)op->mem.disp);
		}
}

/* Is it a register that C functions preserve, and that the stack pointer is copied to? */
static u32 kept_in(const cs_insn *in, bool after_push)
{
	static const x86_reg regs[] = {X86_REG_RBX, X86_REG_RBP, X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15};

	for (u32 i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		if (go_is_move(in, regs[i], X86_REG_RSP) && !(regs[i] == X86_REG_RBP && after_push))
			return regs[i];
	return X86_REG_INVALID;
}

/* By that register, or by a copy at the end of the stack. */
static bool restores_sp(const cs_insn *in, u32 reg)
{
	return go_is_move(in, X86_REG_RSP, reg) ||
	       (go_is_load(in, X86_REG_RSP) && in->detail->x86.operands[1].mem.base == X86_REG_RSP);
}

/* From where the stack pointer is kept to where it is restored; behind a return that follows it is kept again. */
bool go_code_keeping(struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_keeping *ret)
{
	const cs_insn *in;
	u32 reg = X86_REG_INVALID;
	bool after_push = false, kept = false;
	struct go_stretch *open = ret->stretch;

	*ret = (struct go_keeping){0};
	for (go_code_start(code, t, fn); (in = go_code_next(code)) && ret->n < GO_STRETCHES;) {
		u64 next = in->address + in->size;

		if (reg == X86_REG_INVALID) {
			reg = kept_in(in, after_push);
			after_push = in->id == X86_INS_PUSH;
			kept = reg != X86_REG_INVALID;
			open->start = next;
		} else if (kept && restores_sp(in, reg)) {
			open++->end = next;
			ret->n++;
			kept = false;
		} else if (!kept && in->id == X86_INS_RET) {
			open->start = next;
			kept = true;
		}
	}
	ret->reg = capstone_register(reg);
	if (kept && ret->n && ret->n < GO_STRETCHES && open->start < fn->end) {
		open->end = fn->end;
		ret->n++;
	}
	return ret->n && ret->reg < ARCH_NREGS && go_pcs_find(t, fn, fn->pcsp, ret->stretch[0].start, &ret->size) &&
	       ret->size >= 0 && !(ret->size % 8);
}

bool go_code_saved(struct go_code *code, struct go_table *t, const struct go_function *fn, struct go_kept *ret)
{
	const cs_insn *in;
	s32 size;

	ret->after = 0;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		ret->slot[i] = CFI_SAME;
	for (go_code_start(code, t, fn); (in = go_code_next(code)) && in->id != X86_INS_CALL;) {
		const cs_x86 *x = &in->detail->x86;
		u32 slot;

		if (in->id != X86_INS_MOV || x->op_count != 2 || x->operands[0].type != X86_OP_MEM ||
		        x->operands[1].type != X86_OP_REG || x->operands[0].mem.base != X86_REG_RSP ||
		        x->operands[0].mem.index != X86_REG_INVALID || x->operands[1].size != 8)
			continue;
		slot = arch_saved_slot(capstone_register(x->operands[1].reg));
		if (slot == ARCH_NSAVED || !go_pcs_find(t, fn, fn->pcsp, in->address, &size) || size % 8 ||
		        x->operands[0].mem.disp % 8 || x->operands[0].mem.disp >= size)
			continue;
		ret->slot[slot] = cfi_slot((s32)x->operands[0].mem.disp - size - 8, 0);
		ret->after = in->address + in->size;
	}
	return ret->after;
}
