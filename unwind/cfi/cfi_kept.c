/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_kept.h"

#include <stdlib.h>
#include <sys/param.h>

#include "binary/image_pages.h"
#include "cleanup.h"
#include "code/capstone_registers.h"
#include "code/disassembler.h"
#include "code/insn.h"

#define REACH         (16u << 10) /* bytes of a callee */
#define WAYS_MAX      256         /* that are still to be followed in it */
#define DEPTH_MAX     2           /* of calls in it */
#define LOOKED_AT_MAX (1u << 18)  /* instructions of callees in a file */
#define NARROW        3           /* parts of a register of less than 32 bits */

struct cfi_kept {
	struct image *img;
	struct disassembler d;
	struct cfi_rows out;
	u32 left; /* instructions that may still be looked at */
};

struct callee {
	u64 start, size;
	u32 ways[WAYS_MAX], nways; /* offsets */
	u8 seen[REACH];
	u8 code[REACH];
};

struct cfi_kept *cfi_kept_create(struct image *img)
{
	struct cfi_kept *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->img = img;
	k->left = LOOKED_AT_MAX;
	if (disassembler_open(&k->d))
		return k;
	cfi_kept_destroy(k);
	return NULL;
}

void cfi_kept_destroy(struct cfi_kept *k)
{
	if (!k)
		return;
	disassembler_close(&k->d);
	free(k->out.entry);
	free(k);
}

/* Is it the register, or a part of it? */
static bool is_part(u32 part, u8 reg)
{
	static const u16 narrow[ARCH_NREGS][NARROW] = {[DWREG_RAX] = {X86_REG_AX, X86_REG_AL, X86_REG_AH},
	        [DWREG_RCX] = {X86_REG_CX, X86_REG_CL, X86_REG_CH},
	        [DWREG_RDX] = {X86_REG_DX, X86_REG_DL, X86_REG_DH},
	        [DWREG_RSI] = {X86_REG_SI, X86_REG_SIL},
	        [DWREG_RDI] = {X86_REG_DI, X86_REG_DIL},
	        [DWREG_R8] = {X86_REG_R8W, X86_REG_R8B},
	        [DWREG_R9] = {X86_REG_R9W, X86_REG_R9B},
	        [DWREG_R10] = {X86_REG_R10W, X86_REG_R10B},
	        [DWREG_R11] = {X86_REG_R11W, X86_REG_R11B}};

	if (capstone_register(part) == reg)
		return true;
	for (u32 i = 0; part && i < NARROW; i++)
		if (narrow[reg][i] == part)
			return true;
	return false;
}

/* Does an instruction name the register, but in an operand of memory? What it does to it does not matter then. */
static bool names(const cs_insn *in, u8 reg)
{
	const cs_x86 *x = &in->detail->x86;

	if (in->id == X86_INS_SYSCALL || in->id == X86_INS_INT)
		return true;
	for (u32 i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG && is_part(x->operands[i].reg, reg))
			return true;
	for (u32 i = 0; i < in->detail->regs_write_count; i++)
		if (is_part(in->detail->regs_write[i], reg))
			return true;
	return false;
}

static bool keeps(struct cfi_kept *k, u64 start, u8 reg, u32 depth);

/* One instruction, and where it goes on: *at becomes c->size if nowhere. False: it may change the register. */
static bool follow_insn(struct cfi_kept *k, struct callee *c, u64 *at, u8 reg, u32 depth)
{
	const u8 *code = c->code + *at;
	size_t room = c->size - *at;
	u64 addr = c->start + *at, to;
	struct insn insn = insn_decode(code, room);

	if (!k->left || insn.kind == INSN_BAD)
		return false;
	k->left--;
	if (!cs_disasm_iter(k->d.handle, &code, &room, &addr, k->d.in) || k->d.in->size != insn.size ||
	        names(k->d.in, reg))
		return false;
	*at += insn.size;
	to = *at + (u64)insn.imm;
	switch (insn.kind) {
	case INSN_RETURN:
	case INSN_TRAP:
		*at = c->size;
		return true;
	case INSN_JUMP:
		*at = to;
		return to < c->size;
	case INSN_JUMP_IF:
		if (to >= c->size || c->nways == WAYS_MAX)
			return false;
		c->ways[c->nways++] = (u32)to;
		return *at < c->size;
	case INSN_CALL:
		return depth < DEPTH_MAX && *at < c->size && keeps(k, c->start + to, reg, depth + 1);
	case INSN_CALL_INDIRECT:
	case INSN_JUMP_INDIRECT:
		return false;
	default:
		return *at < c->size;
	}
}

static bool read_callee(struct cfi_kept *k, u64 start, struct callee *c)
{
	const struct image *img = k->img;

	*c = (struct callee){.start = start, .nways = 1};
	for (u32 i = 0; i < img->nsegments; i++)
		if (start - img->segments[i].vaddr < img->segments[i].filesz)
			c->size = MIN(img->segments[i].filesz - (start - img->segments[i].vaddr), REACH);
	return c->size && image_read(k->img, c->code, c->size, start);
}

/* Does the function at start leave the register alone on each way through it? In doubt it does not. */
static bool keeps(struct cfi_kept *k, u64 start, u8 reg, u32 depth)
{
	cleanup(free) struct callee *c = malloc(sizeof(*c));

	if (!c || !read_callee(k, start, c))
		return false;
	while (c->nways) {
		u64 at = c->ways[--c->nways];

		while (at < c->size && !c->seen[at]) {
			c->seen[at] = 1;
			if (!follow_insn(k, c, &at, reg, depth))
				return false;
		}
	}
	return true;
}

static bool is_clobbered_base(const struct cfi_rule *rule)
{
	return rule->kind == CFI_REG && rule->cfa_reg < REG_PC && rule->cfa_reg != REG_SP &&
	       arch_saved_slot(rule->cfa_reg) == ARCH_NSAVED;
}

/* Appends a row, and two for each call up to end that leaves its register alone. False: no memory. */
static bool split(struct cfi_kept *k, struct image_pages *text, const struct cfi_entry *row, u64 end)
{
	struct cfi_rule kept = row->rule;
	u64 at = row->addr;

	if (!cfi_rows_add(&k->out, row->addr, &row->rule))
		return false;
	kept.flags |= CFI_KEPT;
	while (at < end) {
		size_t room;
		const u8 *code = image_pages_at(text, at, &room);
		struct insn in = code ? insn_decode(code, MIN(room, end - at)) : (struct insn){0};

		if (in.kind == INSN_BAD)
			break;
		if (in.kind == INSN_CALL && keeps(k, at + in.size + (u64)in.imm, row->rule.cfa_reg, 0)) {
			if (!cfi_rows_add(&k->out, at, &kept) ||
			        (at + in.size < end && !cfi_rows_add(&k->out, at + in.size, &row->rule)))
				return false;
		}
		at += in.size;
	}
	return true;
}

bool cfi_kept_mend(struct cfi_kept *k, struct image_pages *text, const struct cfi_function *fn, struct cfi_rows *rows)
{
	struct cfi_rows whole;
	size_t i = 0;

	while (i < rows->n && !is_clobbered_base(&rows->entry[i].rule))
		i++;
	if (i == rows->n)
		return true;
	k->out.n = 0;
	for (i = 0; i < rows->n; i++) {
		const struct cfi_entry *row = &rows->entry[i];
		u64 end = i + 1 < rows->n ? row[1].addr : fn->end;

		if (!is_clobbered_base(&row->rule) ? !cfi_rows_add(&k->out, row->addr, &row->rule)
		                                   : !split(k, text, row, end))
			return false;
	}
	whole = *rows;
	*rows = k->out;
	k->out = whole;
	return true;
}
