/* SPDX-License-Identifier: Apache-2.0 */
#include "python_fatal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/cfi.h"
#include "cleanup.h"
#include "code/disassembler.h"
#include "symbols/symbols.h"

#define TEXT_MOST     400
#define FUNCTION_MOST 65536
#define PROLOGUE_MOST 64
#define STACK_MOST    65536 /* that abort() and what is below it use */
#define CALL_BYTES    5

/* --- what code does --- */

enum origin { ORIGIN_UNKNOWN, ORIGIN_CONSTANT, ORIGIN_SAVED };

/* Where an argument of a call comes from: a constant, or a register that calls leave alone. */
struct argument {
	x86_reg reg; /* which is asked for */
	u64 call;    /* the address of the call */
	enum origin origin;
	u64 constant;
	x86_reg saved;
	u64 set;      /* the address of the instruction that sets it */
	bool entered; /* a jump leads between that and the call */
};

static x86_reg whole(x86_reg reg)
{
	static const x86_reg narrow[][2] = {{X86_REG_EDI, X86_REG_RDI}, {X86_REG_ESI, X86_REG_RSI},
	        {X86_REG_EDX, X86_REG_RDX}, {X86_REG_ECX, X86_REG_RCX}};

	for (u32 i = 0; i < sizeof(narrow) / sizeof(*narrow); i++)
		if (reg == narrow[i][0])
			return narrow[i][1];
	return reg;
}

static bool calls_keep(x86_reg reg)
{
	return reg == X86_REG_RBX || reg == X86_REG_RBP || reg == X86_REG_R12 || reg == X86_REG_R13 ||
	       reg == X86_REG_R14 || reg == X86_REG_R15;
}

static void set_argument(struct argument *a, const cs_insn *in)
{
	const cs_x86_op *from = &in->detail->x86.operands[1];

	a->origin = ORIGIN_UNKNOWN;
	a->set = in->address;
	if (in->id == X86_INS_LEA && from->mem.base == X86_REG_RIP && from->mem.index == X86_REG_INVALID) {
		a->origin = ORIGIN_CONSTANT;
		a->constant = in->address + in->size + (u64)from->mem.disp;
	} else if ((in->id == X86_INS_MOV || in->id == X86_INS_MOVABS) && from->type == X86_OP_IMM) {
		a->origin = ORIGIN_CONSTANT;
		a->constant = in->detail->x86.operands[0].size == 4 ? (u32)from->imm : (u64)from->imm;
	} else if (in->id == X86_INS_MOV && from->type == X86_OP_REG && calls_keep(from->reg)) {
		a->origin = ORIGIN_SAVED;
		a->saved = from->reg;
	}
}

static bool follow(void *ctx, const cs_insn *in)
{
	struct argument *a = ctx;
	const cs_x86 *x = &in->detail->x86;

	if (in->address >= a->call)
		return false;
	if (in->id == X86_INS_CALL)
		a->origin = ORIGIN_UNKNOWN;
	else if (x->op_count && x->operands[0].type == X86_OP_REG && x->operands[0].access & CS_AC_WRITE &&
	         (whole(x->operands[0].reg) == a->reg || (a->origin == ORIGIN_SAVED && x->operands[0].reg == a->saved)))
		set_argument(a, in);
	return true;
}

static bool find_entry(void *ctx, const cs_insn *in)
{
	struct argument *a = ctx;
	const cs_x86 *x = &in->detail->x86;

	if (in->id != X86_INS_CALL && x->op_count == 1 && x->operands[0].type == X86_OP_IMM &&
	        (u64)x->operands[0].imm > a->set && (u64)x->operands[0].imm <= a->call)
		a->entered = true;
	return !a->entered;
}

/* Of the call that returns to pc. */
static bool find_argument(const struct runtime_process *p, u64 pc, x86_reg reg, struct argument *ret)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, pc - 1);
	const struct cfi_fde *fde = m && m->image && m->image->cfi ? cfi_fde_at(m->image->cfi, pc - 1 - m->bias) : NULL;
	u64 size = fde ? fde->end - fde->start : 0;
	cleanup(free) u8 *code = size && size <= FUNCTION_MOST ? malloc(size) : NULL;
	struct disassembler d;

	*ret = (struct argument){.reg = reg, .call = pc - CALL_BYTES};
	if (!code || !memory_read(p->memory, code, size, fde->start + m->bias) || !disassembler_open(&d))
		return false;
	disassemble(&d, code, size, fde->start + m->bias, follow, ret);
	if (ret->origin != ORIGIN_UNKNOWN)
		disassemble(&d, code, size, fde->start + m->bias, find_entry, ret);
	disassembler_close(&d);
	return ret->origin != ORIGIN_UNKNOWN && !ret->entered;
}

/* Which of the registers that a function saves at its start is one: 1 is the first. */
struct saves {
	x86_reg reg;
	u32 n;
	bool found;
};

static bool count_saves(void *ctx, const cs_insn *in)
{
	struct saves *s = ctx;

	if (in->id == X86_INS_PUSH) {
		s->n++;
		s->found = in->detail->x86.operands[0].reg == s->reg;
		return !s->found;
	}
	return in->id == X86_INS_ENDBR64 || (in->id == X86_INS_MOV && in->detail->x86.operands[0].type == X86_OP_REG &&
	                                            in->detail->x86.operands[0].reg != X86_REG_RSP);
}

/* What a register had when the call that returns to pc was made, by what the called function saved. */
static bool read_saved(const struct runtime_process *p, u64 sp, u64 pc, x86_reg reg, u64 *ret)
{
	struct saves s = {.reg = reg};
	u8 call[CALL_BYTES], code[PROLOGUE_MOST];
	struct disassembler d;
	u64 there;
	s32 distance;

	if (!memory_read(p->memory, call, sizeof(call), pc - CALL_BYTES) || call[0] != 0xe8)
		return false;
	memcpy(&distance, call + 1, sizeof(distance));
	if (!memory_read(p->memory, code, sizeof(code), pc + (u64)(s64)distance) || !disassembler_open(&d))
		return false;
	disassemble(&d, code, sizeof(code), pc + (u64)(s64)distance, count_saves, &s);
	disassembler_close(&d);
	for (u64 at = sp; s.found && at < sp + STACK_MOST; at += 8)
		if (!memory_read(p->memory, &there, sizeof(there), at))
			return false;
		else if (there == pc)
			return memory_read(p->memory, ret, sizeof(*ret), at - 8 * (u64)s.n);
	return false;
}

/* --- which call --- */

static const struct fatal {
	const char *name;
	x86_reg text; /* that it gets its text in */
	bool passes;  /* it passes it on to fatal_error(), in rcx */
	bool formats;
} fatals[] = {
        {"Py_FatalError", X86_REG_RDI, true, false},
        {"_Py_FatalErrorFunc", X86_REG_RSI, true, false},
        {"_Py_FatalErrorFormat", X86_REG_RSI, false, true},
};

static const struct fatal *fatal_of(const struct runtime_process *p, const struct frame *f)
{
	struct symbol sym;

	if (!symbols_of_frame(p->mappings, p->nmappings, f, &sym))
		return NULL;
	for (u32 i = 0; i < sizeof(fatals) / sizeof(*fatals); i++)
		if (!strcmp(sym.name, fatals[i].name))
			return &fatals[i];
	return NULL;
}

static bool read_text(const struct runtime_process *p, u64 addr, char ret[TEXT_MOST])
{
	if (!memory_line(p->memory, ret, TEXT_MOST, addr))
		return false;
	for (const char *c = ret; *c; c++)
		if ((unsigned char)*c < ' ')
			return false;
	return *ret;
}

bool python_last_words(void *instance, const struct runtime_dying *t, char *ret, size_t size)
{
	const struct runtime_process *p = t->p;
	const struct fatal *fatal = NULL;
	char text[TEXT_MOST] = "";
	struct argument a;
	u64 pc, addr;
	u32 i = 0;

	while (i < t->n && !(fatal = fatal_of(p, &t->frames[i])))
		i++;
	if (!fatal)
		return false;
	pc = frame_addr(&t->frames[i]);
	if (fatal->passes && find_argument(p, pc, X86_REG_RCX, &a) && a.origin == ORIGIN_SAVED &&
	        read_saved(p, t->sp, pc, a.saved, &addr) && read_text(p, addr, text)) {
		snprintf(ret, size, "Fatal Python error: %s", text);
		return true;
	}
	if (i + 1 == t->n || frame_kind(&t->frames[i + 1]) != FRAME_NATIVE ||
	        !find_argument(p, frame_addr(&t->frames[i + 1]), fatal->text, &a) || a.origin != ORIGIN_CONSTANT ||
	        !read_text(p, a.constant, text) || (fatal->formats && strchr(text, '%')))
		return false;
	snprintf(ret, size, "Fatal Python error: %s", text);
	return true;
}
