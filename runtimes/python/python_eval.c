/* SPDX-License-Identifier: Apache-2.0 */
#include <capstone/capstone.h>
#include <stdlib.h>

#include "cfi/capstone_group.h"
#include "cfi/cfi.h"
#include "cleanup.h"
#include "python_image.h"

#define CODE_MAX (4u << 20)

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

static struct error *scan(struct image *img, csh handle, struct python_range r, struct python_eval *eval)
{
	size_t size = r.end - r.start;
	cleanup(free) u8 *code = size <= CODE_MAX ? malloc(size + 1) : NULL;
	const u8 *at = code;
	u64 addr = r.start;
	cs_insn *in;

	if (!code || !image_read(img, code, size, r.start))
		return error_new(ERROR_UNSUPPORTED, "%s: the eval loop at 0x%lx can not be read", img->path, r.start);
	in = cs_malloc(handle);
	if (!in)
		return &error_no_memory;
	while (cs_disasm_iter(handle, &at, &size, &addr, in)) {
		eval->dispatches |= in->id == X86_INS_JMP && in->detail->x86.operands[0].type != X86_OP_IMM;
		if (capstone_in_group(in, CS_GRP_JUMP))
			follow(img, in, eval);
	}
	cs_free(in, 1);
	return NULL;
}

struct error *python_eval_find(struct image *img, u64 start, u64 end, struct python_eval *ret)
{
	struct error *err = NULL;
	csh handle;

	*ret = (struct python_eval){.n = 1, .ranges = {{start, end}}};
	if (!img->cfi || cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return error_new(ERROR_UNSUPPORTED, "%s: no unwind information for the eval loop", img->path);
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	for (u32 i = 0; !err && i < ret->n; i++)
		err = scan(img, handle, ret->ranges[i], ret);
	cs_close(&handle);
	return err;
}
