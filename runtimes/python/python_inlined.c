/* SPDX-License-Identifier: Apache-2.0 */
#include <arch.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/cfi.h"
#include "cleanup.h"
#include "code/disassembler.h"
#include "python_flow.h"
#include "python_image.h"

#define TEXT_MAX  (256u << 20) /* of a segment that is searched */
#define CALLS_MAX 4            /* copies in one function */
#define LEA       0x8d
#define GROUP_5   0xff /* by its ModRM byte: jmp, call, … */
#define IS_JMP    0x20
#define IS_RIP    0x05 /* of a ModRM byte: relative to the next instruction */
#define IS_SIB    0x04 /* of a ModRM byte: a SIB byte follows */
#define IS_TABLE  0xc5 /* of a SIB byte: no base, a register times 8 */

struct search {
	struct image *img;
	const struct python_vm *vm;
	u16 gen_frame;
	struct disassembler d;
	u64 table;                   /* of the bytecodes' functions; 0: not seen yet */
	u64 regs[X86_REG_ENDING];    /* addresses that lea has put there */
	bool loaded[X86_REG_ENDING]; /* a bytecode's function */
	u64 calls[CALLS_MAX];        /* of a bytecode */
	u32 ncalls;
};

/* Is this an operand in the table? While that is not known, the first array of pointers is it. */
static bool in_table(struct search *s, const cs_x86_op *op)
{
	u64 base = op->type == X86_OP_MEM && op->mem.base < X86_REG_ENDING ? s->regs[op->mem.base] : 0;
	u64 table = base + (op->type == X86_OP_MEM ? (u64)op->mem.disp : 0);

	if (op->type != X86_OP_MEM || op->mem.scale != 8 || op->mem.index == X86_REG_INVALID || !table ||
	        (op->mem.base != X86_REG_INVALID && !base))
		return false;
	s->table = s->table ? s->table : table;
	return table == s->table;
}

static bool look(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *to = &x->operands[0], *from = &x->operands[1];
	struct search *s = ctx;

	if (in->id == X86_INS_CALL && s->ncalls < CALLS_MAX &&
	        (in_table(s, to) || (to->type == X86_OP_REG && to->reg < X86_REG_ENDING && s->loaded[to->reg])))
		s->calls[s->ncalls++] = in->address;
	if (x->op_count != 2 || to->type != X86_OP_REG || to->reg >= X86_REG_ENDING || !(to->access & CS_AC_WRITE))
		return true;
	s->loaded[to->reg] = s->table && in->id == X86_INS_MOV && in_table(s, from);
	s->regs[to->reg] = in->id == X86_INS_LEA && from->mem.base == X86_REG_RIP
	                           ? in->address + in->size + (u64)from->mem.disp
	                           : 0;
	return true;
}

/* Fills s->calls. */
static bool find_calls(struct search *s, u64 start, u64 end)
{
	s->ncalls = 0;
	memset(s->regs, 0, sizeof(s->regs));
	memset(s->loaded, 0, sizeof(s->loaded));
	return disassemble_file(&s->d, s->img, start, end, look, s) && s->ncalls;
}

static u32 no_mark(const cs_insn *in, const void *ctx)
{
	return 0;
}

static bool place_of(struct python_eval *ret, u16 below, u8 *place)
{
	u32 i = 0;

	while (i < ret->nplaces && ret->below[i] != below)
		i++;
	if (i == PYTHON_PLACES)
		return false;
	ret->below[i] = below;
	ret->nplaces += i == ret->nplaces;
	*place = (u8)i;
	return true;
}

static void add(struct python_eval *ret, const struct python_insn *in, u8 place)
{
	struct python_inlined *last = ret->ninlined ? &ret->inlined[ret->ninlined - 1] : NULL;

	if (last && last->end == in->addr && last->place == place)
		last->end += in->size;
	else if (ret->ninlined < PYTHON_INLINED_MAX)
		ret->inlined[ret->ninlined++] = (struct python_inlined){in->addr, in->addr + in->size, place};
}

/*
 * What is reached from where all is linked, but not from behind the call of the first bytecode: there, and where those
 * that failed join it, the rest of the function begins.
 */
static void collect(struct python_flow *f, u32 linked, u32 call, u8 place, struct python_eval *ret)
{
	u32 flags;

	f->insns[call].flags |= FLOW_STOPS;
	python_flow_explore(f, linked, &flags);
	if (!(f->insns[call].flags & FLOW_REACHED))
		return;
	for (u32 i = 0; i < f->n; i++)
		f->insns[i].flags |= f->insns[i].flags & FLOW_REACHED ? FLOW_OWN : 0;
	ret->ncopies++;
	f->insns[linked].flags |= FLOW_STOPS;
	python_flow_explore(f, python_flow_next(f, call), &flags);
	for (u32 i = 0; i < f->n; i++)
		if (f->insns[i].flags & FLOW_OWN && !(f->insns[i].flags & FLOW_REACHED))
			add(ret, &f->insns[i], place);
}

static struct error *add_copy(struct search *s, const struct cfi_fde *fde, u64 call, struct python_eval *ret)
{
	cleanup(free) struct python_eval *function = calloc(1, sizeof(*function));
	cleanup(python_flow) struct python_flow f = {0};
	struct error *err;
	u64 linked;
	u16 below;
	u8 place;

	if (!function)
		return &error_no_memory;
	if (!python_entry_inlined(s->img, s->vm, s->gen_frame, fde->start, call, &below, &linked) ||
	        !place_of(ret, below, &place))
		return NULL;
	err = python_eval_find(s->img, fde->start, fde->end, function);
	if (!err && python_flow_decode(s->img, function->ranges, function->n, no_mark, NULL, &f) &&
	        python_flow_find(&f, linked) != FLOW_NOWHERE && python_flow_find(&f, call) != FLOW_NOWHERE)
		collect(&f, python_flow_find(&f, linked), python_flow_find(&f, call), place, ret);
	return err;
}

/* What is known of an instruction of a bytecode's function. */
enum {
	FRAME_ENDS = FLOW_OWN,        /* behind it there is none */
	WITHOUT_FRAME = 2 * FLOW_OWN, /* it is reached from there */
	IN_FRAME = 4 * FLOW_OWN,      /* of one that was made there */
	MOVES_STACK = 8 * FLOW_OWN,
};

static bool moves_stack(const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;

	return in->id == X86_INS_PUSH || in->id == X86_INS_POP ||
	       (in->detail->x86.op_count == 2 && op->type == X86_OP_REG && op->reg == X86_REG_RSP &&
	               in->id != X86_INS_CMP && in->id != X86_INS_TEST);
}

/* Where a frame with a frame pointer begins (FLOW_STOPS), and behind what it has ended. */
static u32 mark_frame(const cs_insn *in, const void *ctx)
{
	bool rbp = in->detail->x86.op_count == 1 && in->detail->x86.operands[0].type == X86_OP_REG &&
	           in->detail->x86.operands[0].reg == X86_REG_RBP;

	if (in->id == X86_INS_PUSH && rbp)
		return FLOW_STOPS;
	if (in->id == X86_INS_LEAVE || (in->id == X86_INS_POP && rbp))
		return FRAME_ENDS;
	return moves_stack(in) ? MOVES_STACK : 0;
}

/* Does the file say that the return address is not depth words above the stack pointer at addr? */
static bool is_wrong(const struct search *s, u64 addr, u32 depth)
{
	struct cfi_rule rule;

	return cfi_find(s->img->cfi, addr, &rule) &&
	       (rule.kind != CFI_REG || rule.cfa_reg != DWREG_RSP || rule.cfa_off != (s32)(8 * depth + 8));
}

static void add_bare(const struct search *s, const struct python_insn *in, u8 depth, struct python_eval *ret)
{
	struct python_bare *last = ret->nbare ? &ret->bare[ret->nbare - 1] : NULL;

	if (!is_wrong(s, in->addr, depth))
		return;
	if (last && last->end == in->addr && last->depth == depth)
		last->end += in->size;
	else if (ret->nbare < PYTHON_BARE_MAX)
		ret->bare[ret->nbare++] = (struct python_bare){in->addr, in->addr + in->size, depth};
}

/* Does the file say that there is no frame at addr? */
static bool tells_of_none(const struct search *s, u64 addr)
{
	return !is_wrong(s, addr, 0);
}

/* Marks what is reached from behind each instruction that has these flags, all of them. */
static void mark_behind(struct python_flow *f, u32 flags, u32 mark)
{
	u32 seen;

	for (u32 i = 0; i < f->n; i++) {
		if ((f->insns[i].flags & flags) != flags)
			continue;
		python_flow_explore(f, python_flow_next(f, i), &seen);
		for (u32 k = 0; k < f->n; k++)
			f->insns[k].flags |= f->insns[k].flags & FLOW_REACHED ? mark : 0;
	}
}

/*
 * A bytecode's function jumps on without a frame, by copies of its end and of others' code, which may make a frame of
 * their own: what clang's file says of that is wrong.
 */
static struct error *find_bare(const struct search *s, const struct cfi_fde *fde, struct python_eval *ret)
{
	cleanup(free) struct python_eval *function = calloc(1, sizeof(*function));
	cleanup(python_flow) struct python_flow f = {0};
	struct error *err = function ? python_eval_find(s->img, fde->start, fde->end, function) : &error_no_memory;

	if (err || !python_flow_decode(s->img, function->ranges, function->n, mark_frame, NULL, &f))
		return err;
	mark_behind(&f, FRAME_ENDS, WITHOUT_FRAME);
	for (u32 i = 0; i < f.n; i++) {
		if (!(f.insns[i].flags & WITHOUT_FRAME))
			continue;
		add_bare(s, &f.insns[i], 0, ret);
		if (f.insns[i].flags & FLOW_STOPS && i + 1 < f.n)
			add_bare(s, &f.insns[i + 1], 1, ret);
	}
	for (u32 i = 0; i < f.n; i++)
		f.insns[i].flags |= f.insns[i].flags & (FRAME_ENDS | MOVES_STACK) ? FLOW_STOPS | FRAME_ENDS : 0;
	for (u32 i = 0; i < f.n; i++) /* what begins one */
		f.insns[i].flags &= f.insns[i].flags & FRAME_ENDS ? ~(u32)WITHOUT_FRAME : ~0u;
	mark_behind(&f, FLOW_STOPS | WITHOUT_FRAME, IN_FRAME);
	for (u32 i = 0; i < f.n; i++)
		if (f.insns[i].flags & IN_FRAME && tells_of_none(s, f.insns[i].addr))
			add_bare(s, &f.insns[i], 1, ret);
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct python_bare *x = a, *y = b;

	return x->start == y->start ? (x->end < y->end) - (x->end > y->end) : x->start < y->start ? -1 : 1;
}

/* A cold part that names the table was seen by itself, too; of those that begin together the longest is kept. */
static void sort_bare(struct python_eval *ret)
{
	u32 n = 0;

	qsort(ret->bare, ret->nbare, sizeof(*ret->bare), by_start);
	for (u32 i = 0; i < ret->nbare; i++)
		if (!n || ret->bare[i].start >= ret->bare[n - 1].end)
			ret->bare[n++] = ret->bare[i];
	ret->nbare = n;
}

/* The function at addr, which may name the table, as bytecodes' own do to jump on. */
static struct error *look_at(struct search *s, u64 addr, u64 *done, struct python_eval *ret)
{
	const struct cfi_fde *fde = cfi_fde_at(s->img->cfi, addr);
	struct error *err = NULL;

	if (!fde || fde->start == *done || fde->start == ret->ranges[0].start)
		return NULL;
	*done = fde->start;
	err = find_bare(s, fde, ret);
	if (!err && find_calls(s, fde->start, fde->end))
		for (u32 i = 0; !err && i < s->ncalls; i++)
			err = add_copy(s, fde, s->calls[i], ret);
	return err;
}

/* Do these bytes at addr, of which four precede at, name the table? A mere jump by it does not count. */
static bool names_table(const u8 *at, u64 addr, u64 table)
{
	s32 word;

	memcpy(&word, at, sizeof(word));
	if ((u64)(s64)word == table)
		return (at[-2] & 0xc7) == IS_SIB && (at[-1] & 0xc7) == IS_TABLE &&
		       !(at[-3] == GROUP_5 && (at[-2] & 0x38) == IS_JMP);
	return at[-2] == LEA && (at[-1] & 0xc7) == IS_RIP && addr + sizeof(word) + (u64)(s64)word == table;
}

static struct error *search_segment(struct search *s, const struct image_segment *segment, struct python_eval *ret)
{
	u64 size = segment->filesz, done = 0;
	cleanup(free) u8 *text = size && size <= TEXT_MAX ? malloc(size) : NULL;
	struct error *err = NULL;

	if (!text || !image_read(s->img, text, size, segment->vaddr))
		return NULL;
	for (u64 i = 4; !err && i + 4 <= size; i++)
		if (names_table(text + i, segment->vaddr + i, s->table))
			err = look_at(s, segment->vaddr + i, &done, ret);
	return err;
}

struct error *python_inlined_find(struct image *img, const struct python_vm *vm, u16 gen_frame, struct python_eval *ret)
{
	struct search s = {.img = img, .vm = vm, .gen_frame = gen_frame};
	struct error *err = NULL;

	if (!disassembler_open(&s.d))
		return NULL;
	find_calls(&s, ret->ranges[0].start, ret->ranges[0].end);
	for (u32 i = 0; !err && s.table && i < img->nsegments; i++)
		if (img->segments[i].flags & PF_X)
			err = search_segment(&s, &img->segments[i], ret);
	sort_bare(ret);
	disassembler_close(&s.d);
	return err;
}
