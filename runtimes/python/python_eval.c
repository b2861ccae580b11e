/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi/cfi.h"
#include "code/capstone_group.h"
#include "code/disassembler.h"
#include "python_image.h"

static bool covered(const struct python_eval *eval, u64 addr)
{
	for (u32 i = 0; i < eval->n; i++)
		if (addr >= eval->ranges[i].start && addr < eval->ranges[i].end)
			return true;
	return false;
}

/* A jump out of what is known so far: a function is entered at its start and never by a condition. */
static void follow(const struct image *img, const cs_insn *in, struct python_eval *eval)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	const struct cfi_fde *fde;

	if (in->detail->x86.op_count != 1 || op->type != X86_OP_IMM || covered(eval, (u64)op->imm))
		return;
	fde = cfi_fde_at(img->cfi, (u64)op->imm);
	if (!fde || eval->n == PYTHON_RANGES_MAX || (in->id == X86_INS_JMP && (u64)op->imm == fde->start))
		return;
	eval->ranges[eval->n++] = (struct python_range){fde->start, fde->end};
}

struct search {
	struct image *img;
	struct python_eval *eval;
};

static bool look(void *ctx, const cs_insn *in)
{
	struct search *s = ctx;

	s->eval->dispatches |= in->id == X86_INS_JMP && in->detail->x86.operands[0].type != X86_OP_IMM;
	if (capstone_in_group(in, CS_GRP_JUMP))
		follow(s->img, in, s->eval);
	return true;
}

struct error *python_eval_find(struct image *img, u64 start, u64 end, struct python_eval *ret)
{
	struct search s = {img, ret};
	struct disassembler d;
	bool ok = true;

	*ret = (struct python_eval){.n = 1, .ranges = {{start, end}}};
	if (!img->cfi)
		return error_new(ERROR_UNSUPPORTED, "%s: no unwind information for the eval loop", img->path);
	if (!disassembler_open(&d))
		return &error_no_memory;
	for (u32 i = 0; ok && i < ret->n; i++) {
		start = ret->ranges[i].start;
		ok = disassemble_file(&d, img, start, ret->ranges[i].end, look, &s);
	}
	disassembler_close(&d);
	if (ok)
		return NULL;
	return error_new(ERROR_UNSUPPORTED, "%s: the eval loop at 0x%lx can not be read", img->path, start);
}
