/* SPDX-License-Identifier: Apache-2.0 */
#include <arch.h>
#include <string.h>
#include <sys/param.h>

#include "cfi/cfi.h"
#include "code/disassembler.h"
#include "python_image.h"

#define BYTES_MAX   512 /* of the beginning that are looked at */
#define INLINED_MAX (1u << 20)

/* What a register holds, as far as it matters: an address in the native frame. */
struct value {
	bool in_frame;
	s64 below; /* how far below the CFA */
};

struct entry {
	const struct python_vm *vm;
	const struct image *img;
	bool inlined;
	u16 ts_cframe;
	u16 gen_frame; /* of a generator, whose frame is in it; 0: not looked for */
	bool by_cframe;
	struct value regs[X86_REG_ENDING];
	s64 cframe, entry; /* below the CFA; 0: not seen yet */
	/* behind the instruction that stores it; 0: not seen yet */
	u64 thread, cframe_frame, entry_previous, entry_owner, frame_previous;
};

/* Where a memory operand lies below the CFA; false: not in the native frame. */
static bool in_frame(const struct image *img, const cs_insn *in, const cs_x86_op *op, s64 *ret)
{
	struct cfi_rule rule;
	x86_reg base;

	if (op->type != X86_OP_MEM || op->mem.index != X86_REG_INVALID || !cfi_find(img->cfi, in->address, &rule) ||
	        rule.kind != CFI_REG)
		return false;
	base = rule.cfa_reg == DWREG_RSP ? X86_REG_RSP : X86_REG_RBP;
	if (op->mem.base != base || (rule.cfa_reg != DWREG_RSP && rule.cfa_reg != DWREG_RBP))
		return false;
	*ret = rule.cfa_off - op->mem.disp;
	return true;
}

/* Does a store of size bytes, at which it begins below the CFA, cover this byte of an object there? */
static bool covers(s64 at, u32 size, s64 object, u32 member)
{
	s64 byte = object - member;

	return object && byte <= at && byte > at - (s64)size;
}

static void store_in_frame(struct entry *e, s64 at, u32 size, u64 next)
{
	if (covers(at, size, e->cframe, e->vm->cf_frame))
		e->cframe_frame = next;
	if (covers(at, size, e->entry, e->vm->f_previous))
		e->entry_previous = next;
	if (covers(at, size, e->entry, e->vm->f_entry))
		e->entry_owner = next;
}

/* To the thread state, or to the frame that is to be run. */
static void store_outside(struct entry *e, const cs_x86_op *to, const cs_x86_op *from, u64 next)
{
	const struct value *v = from->type == X86_OP_REG ? &e->regs[from->reg] : NULL;

	if (e->by_cframe && v && v->in_frame && to->mem.disp == e->ts_cframe) {
		e->cframe = v->below;
		e->thread = next;
	} else if (!e->by_cframe && v && !v->in_frame && to->size == 8 && to->mem.disp == e->vm->ts_frame) {
		e->thread = next;
	}
	if (e->vm->linkage == PYTHON_ENTRY_FLAG && from->type == X86_OP_IMM && to->size == 1 &&
	        to->mem.disp == e->vm->f_entry)
		e->entry_owner = next;
	if (e->vm->linkage != PYTHON_ENTRY_FLAG && v && v->in_frame &&
	        (to->mem.disp == e->vm->f_previous ||
	                (e->gen_frame && to->mem.disp == e->gen_frame + e->vm->f_previous))) {
		e->entry = v->below;
		e->frame_previous = next;
	}
}

static void see(const struct image *img, const cs_insn *in, struct entry *e)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *to = &x->operands[0], *from = &x->operands[1];
	s64 at;

	if (in->id == X86_INS_CALL)
		memset(e->regs, 0, sizeof(e->regs)); /* what survives is not needed */
	if (x->op_count != 2 || in->id == X86_INS_CMP || in->id == X86_INS_TEST)
		return;
	if (to->type == X86_OP_REG && to->reg < X86_REG_ENDING) {
		e->regs[to->reg] = (struct value){0};
		if (in->id == X86_INS_LEA && in_frame(img, in, from, &at))
			e->regs[to->reg] = (struct value){true, at};
	} else if (in_frame(img, in, to, &at)) {
		store_in_frame(e, at, to->size, in->address + in->size);
	} else if (to->type == X86_OP_MEM && to->mem.base != X86_REG_RSP && to->mem.base != X86_REG_RIP) {
		store_outside(e, to, from, in->address + in->size);
	}
}

/* All that a walk relies on was seen, and in an order that it can rely on. */
static bool complete(const struct entry *e)
{
	bool by_frame = e->vm->linkage != PYTHON_ENTRY_FLAG;

	if (!e->thread || !e->entry_owner || (by_frame && (!e->frame_previous || !e->entry_previous)))
		return false;
	if (e->by_cframe)
		return e->cframe_frame && e->cframe > 0 && e->cframe <= UINT16_MAX;
	return e->entry > 0 && e->entry <= UINT16_MAX && e->entry_previous <= e->thread;
}

/*
 * Does the search go on behind this instruction? A call may lie on the way, which a test of the stack's limit jumps
 * over; when all is linked it ends the beginning.
 */
static bool goes_on(const cs_insn *in, const struct entry *e)
{
	return in->id != X86_INS_JMP && (in->id != X86_INS_CALL || !complete(e));
}

static bool look(void *ctx, const cs_insn *in)
{
	struct entry *e = ctx;

	if (!e->inlined && !goes_on(in, e))
		return false;
	see(e->img, in, e);
	return true;
}

/* inlined: all up to its end, which lies behind the stores; what precedes them is another function's. */
static struct error *scan(struct image *img, u64 start, u64 end, bool inlined, struct entry *e)
{
	u64 last = inlined ? end : MIN(end, start + BYTES_MAX);

	e->img = img;
	e->inlined = inlined;
	e->thread = e->cframe_frame = e->entry_previous = e->entry_owner = e->frame_previous = 0;
	if (last - start < INLINED_MAX && code_each(img, start, last, look, e))
		return NULL;
	return error_new(ERROR_UNSUPPORTED, "%s: the eval loop at 0x%lx can not be read", img->path, start);
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

static u64 linked_at(const struct entry *e)
{
	return later(
	        later(e->thread, e->cframe_frame), later(e->entry_owner, later(e->frame_previous, e->entry_previous)));
}

bool python_entry_inlined(
        struct image *img, const struct python_vm *vm, u16 gen_frame, u64 start, u64 call, u16 *below, u64 *linked)
{
	struct entry e = {.vm = vm, .gen_frame = gen_frame};
	struct error *err = NULL;

	for (u32 i = 0; !err && i < 2; i++)
		err = scan(img, start, call, true, &e);
	*below = (u16)e.entry;
	*linked = linked_at(&e);
	if (!err)
		return complete(&e);
	error_free(err);
	return false;
}

struct error *python_entry_find(struct image *img, const struct python_vm *vm, u16 ts_cframe, struct python_eval *ret)
{
	struct entry e = {.vm = vm, .ts_cframe = ts_cframe, .by_cframe = vm->linkage != PYTHON_NO_CFRAME};
	struct error *err = NULL;

	/* the second time it is known where the objects lie that the first stores are to */
	for (u32 i = 0; !err && i < 2; i++)
		err = scan(img, ret->ranges[0].start, ret->ranges[0].end, false, &e);
	if (err)
		return err;
	if (!complete(&e))
		return error_hint(error_new(ERROR_UNSUPPORTED,
		                          "%s: the eval loop at 0x%lx links its frames in a way that yrt does "
		                          "not know",
		                          img->path, ret->ranges[0].start),
		        "its Python frames are left out; was it built without optimization?");
	ret->link_end = linked_at(&e);
	ret->enter_end = e.by_cframe ? ret->link_end : e.thread;
	ret->cframe_below = (u16)e.cframe;
	ret->entry_below = (u16)e.entry;
	return NULL;
}
