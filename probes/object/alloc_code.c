/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_code.h"

#include <stdlib.h>
#include <string.h>

#include "probes/hit/hit_find.h"
#include "probes/uprobe_cost.h"
#include "unwind/binary/endbr64.h"
#include "unwind/code/capstone_group.h"
#include "unwind/code/capstone_registers.h"
#include "unwind/code/disassembler.h"
#include "unwind/cfi/cfi.h"
#include "unwind/cleanup.h"
#include "unwind/symbols/symbols.h"

#define FUNCTION_BYTES 65536
#define PLAIN_BYTES    512 /* of a function whose end nothing tells */
#define DEPTH          16  /* of calls: jemalloc's malloc reaches mmap() by some ten */
#define EDGES          2048
#define NEAR           3 /* calls: what is further away is no part of the allocator (glibc's free() may abort) */
#define PLACE_INSNS    12
#define PAIR_INSNS     2
#define RDX            1 /* DWARF's numbers */
#define RCX            2
#define RSI            4
#define RDI            5
#define SP             7
#define R8             8
#define R9             9
#define NOWHERE        0xffffffffu

struct part { /* a function that is looked through */
	u64 start, end;
	u32 depth;
	bool tails; /* it may end in a jump to one of the family */
	bool ends;  /* one of the family that allocates may end in it */
};

struct reading {
	struct image *img;
	struct alloc_functions *f;
	struct disassembler d;
	struct part part[ALLOC_CODE_FUNCTIONS]; /* the family first */
	u32 n;
	struct {
		u32 from, to; /* parts: a jump from one to another */
	} jump[EDGES];
	u32 njumps;
	struct {
		u32 to;   /* a part that is called, */
		u64 back; /* and where it returns */
	} call[EDGES];
	u32 ncalls;
	bool flat; /* what is called is not looked through */
};

static void bounds_of(struct reading *r, u64 addr, struct part *ret)
{
	const struct cfi_fde *fde = r->img->cfi ? cfi_fde_at(r->img->cfi, addr) : NULL;
	struct symbol sym;

	ret->start = addr;
	ret->end = addr + PLAIN_BYTES;
	if (fde && addr >= fde->start && addr < fde->end) {
		ret->start = fde->start;
		ret->end = fde->end;
	} else if (symbols_find(r->img, addr, &sym)) {
		ret->start = sym.start;
		ret->end = sym.end;
	}
	if (ret->end - ret->start > FUNCTION_BYTES)
		ret->end = ret->start + FUNCTION_BYTES;
}

/* Which of the family begins there; NOWHERE: none. */
static u32 family_at(const struct reading *r, u64 addr)
{
	for (u32 i = 0; i < r->f->n; i++)
		if (addr == r->f->of[i].addr)
			return i;
	return NOWHERE;
}

static u32 part_at(struct reading *r, u64 addr, u32 depth)
{
	struct part part = {.depth = depth};

	for (u32 i = 0; i < r->n; i++)
		if (addr >= r->part[i].start && addr < r->part[i].end)
			return i;
	if (r->flat || depth > DEPTH || r->n == ALLOC_CODE_FUNCTIONS)
		return NOWHERE;
	bounds_of(r, addr, &part);
	if (!image_has_code(r->img, part.start, part.end))
		return NOWHERE;
	r->part[r->n] = part;
	return r->n++;
}

/*
 * Where a call or jump leads; a stub of the PLT is its function, if that is in this file. *outside: it is another
 * file's, whose memory this allocator hands out.
 */
static u64 resolve(struct reading *r, u64 addr, bool *outside)
{
	static const char *const makers[] = {"mmap", "mmap64", "sbrk", "__sbrk"};
	struct symbol stub, sym;
	char name[256];
	size_t n;

	*outside = false;
	if (!symbols_find(r->img, addr, &stub) || stub.start != addr)
		return addr;
	n = strcspn(stub.name, "@");
	if (strcmp(stub.name + n, "@plt") != 0 || n >= sizeof(name))
		return addr;
	memcpy(name, stub.name, n);
	name[n] = 0;
	if (symbols_lookup_exported(r->img, name, &sym))
		return sym.start;
	for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++)
		*outside |= !strcmp(name, makers[i]);
	return addr;
}

static void add_inner(struct alloc_functions *f, u32 function, u64 back)
{
	if (f->ninner == ALLOC_INNER_MAX)
		return;
	f->inner[f->ninner].function = function;
	f->inner[f->ninner++].to = back;
}

static void note_call(struct reading *r, u32 to, u64 back)
{
	if (to == NOWHERE || r->ncalls == EDGES)
		return;
	r->call[r->ncalls].to = to;
	r->call[r->ncalls++].back = back;
}

static void take_call(struct reading *r, u32 from, u64 to, u64 back)
{
	struct alloc_functions *f = r->f;
	bool outside;
	u32 function;

	to = resolve(r, to, &outside);
	function = family_at(r, to);
	if (function == NOWHERE && outside) {
		if (f->noutside < ALLOC_INNER_MAX)
			f->outside[f->noutside++] = back;
	} else if (function == NOWHERE) {
		note_call(r, part_at(r, to, r->part[from].depth + 1), back);
	} else {
		add_inner(f, function, back);
	}
}

/* Does it jump to memset(), which returns what it gets? In libc itself that is a stub without a name (IFUNC). */
static bool is_clearing(struct reading *r, u64 to)
{
	struct symbol sym;
	u64 start, size;

	if (symbols_find(r->img, to, &sym) && sym.start == to)
		return !strncmp(sym.name + strspn(sym.name, "_"), "memset", 6);
	return image_section_range(r->img, ".plt", &start, &size) && to - start < size;
}

static void take_jump(struct reading *r, u32 from, u64 to)
{
	const struct part *p = &r->part[from];
	bool outside;
	u32 next;

	to = resolve(r, to, &outside);
	if (outside)
		return;
	if ((to >= p->start && to < p->end && family_at(r, to) == NOWHERE) || is_clearing(r, to))
		return;
	next = part_at(r, to, p->depth + 1);
	if (next == NOWHERE || next == from || r->njumps == EDGES)
		return;
	r->jump[r->njumps].from = from;
	r->jump[r->njumps++].to = next;
}

/* A jump into what is before a uprobe's place, or to it: the place would be hit more than once a call. */
static void keep_first(struct alloc_function *f, u64 to)
{
	if (to <= f->addr || to > f->place)
		return;
	f->place = f->addr;
	f->moved = false;
	f->pushed = 0;
	f->pair = 0;
	f->stepped = true;
}

static void take_return(struct reading *r)
{
	const cs_x86_op *op = &r->d.in->detail->x86.operands[0];
	struct alloc_functions *f = r->f;
	bool clearing = r->d.in->id == X86_INS_JMP && op->type == X86_OP_IMM && is_clearing(r, (u64)op->imm);

	if ((!clearing && !capstone_in_group(r->d.in, CS_GRP_RET)) || f->nreturns == ALLOC_RETURNS_MAX ||
	        !hit_offset(r->img, r->d.in->address, true, &f->returns[f->nreturns].offset))
		return;
	f->returns[f->nreturns++].clearing = clearing;
}

/* returns: it is looked for its returns alone. */
static void look_through(struct reading *r, u32 number, bool returns)
{
	const struct part p = r->part[number];
	cleanup(free) u8 *code = malloc(p.end - p.start);
	size_t left = p.end - p.start;
	const u8 *at = code;
	u64 addr = p.start;

	if (!code || !image_read(r->img, code, left, p.start))
		return;
	while (cs_disasm_iter(r->d.handle, &at, &left, &addr, r->d.in)) {
		if (returns) {
			take_return(r);
			continue;
		}
		const cs_x86_op *op = &r->d.in->detail->x86.operands[0];

		if (!r->d.in->detail->x86.op_count || op->type != X86_OP_IMM)
			continue;
		if (capstone_in_group(r->d.in, CS_GRP_CALL))
			take_call(r, number, (u64)op->imm, addr);
		else if (capstone_in_group(r->d.in, CS_GRP_JUMP)) {
			take_jump(r, number, (u64)op->imm);
			if (number < r->f->n)
				keep_first(&r->f->of[number], (u64)op->imm);
		}
	}
}

/* Is that register one that a hit reads (alloc_size(), leak_begin())? */
static bool is_read(const struct alloc_function *f, u8 reg)
{
	static const u8 read[][6] = {[ALLOC_SIZE_1] = {RDI},
	        [ALLOC_SIZE_2] = {RSI},
	        [ALLOC_SIZE_3] = {RDI, RDX},
	        [ALLOC_SIZE_PRODUCT] = {RDI, RSI},
	        [ALLOC_RESIZE] = {RDI, RSI},
	        [ALLOC_PRODUCT_2] = {RSI, RDX},
	        [ALLOC_RESIZE_2] = {RSI, RDX},
	        [ALLOC_RESIZE_OF] = {RSI, RDX, RCX},
	        [ALLOC_ANY] = {RDI, RSI, RDX, RCX, R8, R9},
	        [ALLOC_MAP] = {RSI, RCX},
	        [ALLOC_MOVE_END] = {RDI},
	        [ALLOC_FREE] = {RDI},
	        [ALLOC_FREE_2] = {RSI}};

	if (f->moved)
		return reg == RSI;
	for (size_t i = 0; i < sizeof(read[0]); i++)
		if (reg && reg == read[f->shape][i])
			return true;
	return false;
}

/* mimalloc's functions move the only one to where the second would be, and only then come to a jump. */
static bool moves_argument(const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;

	return in->id == X86_INS_MOV && in->detail->x86.op_count == 2 && op[0].type == X86_OP_REG &&
	       op[0].reg == X86_REG_RSI && op[1].type == X86_OP_REG && op[1].reg == X86_REG_RDI;
}

/* Is all that a hit reads still there behind it? A push moves the stack by a word that is counted. */
static bool keeps_arguments(struct reading *r, struct alloc_function *f, u32 *pushed)
{
	cs_regs read, write;
	u8 nread, nwrite;

	if ((f->shape == ALLOC_SIZE_1 || f->shape == ALLOC_FREE) && !f->moved && moves_argument(r->d.in)) {
		f->moved = true;
		return true;
	}

	if (capstone_in_group(r->d.in, CS_GRP_JUMP) || capstone_in_group(r->d.in, CS_GRP_CALL) ||
	        capstone_in_group(r->d.in, CS_GRP_RET) ||
	        cs_regs_access(r->d.handle, r->d.in, read, &nread, write, &nwrite))
		return false;
	if (r->d.in->id == X86_INS_PUSH) {
		++*pushed;
		return true;
	}
	for (u8 i = 0; i < nwrite; i++) {
		u8 reg = capstone_register_part(write[i]);

		if (reg == SP || is_read(f, reg))
			return false;
	}
	return true;
}

/* The next one that it emulates, if nothing but a move lies in between. */
static void choose_pair(struct reading *r, struct alloc_function *f, const u8 *at, size_t left)
{
	u64 addr = f->place;

	for (u32 i = 0; i < PAIR_INSNS; i++) {
		if (!cs_disasm_iter(r->d.handle, &at, &left, &addr, r->d.in) ||
		        capstone_in_group(r->d.in, CS_GRP_JUMP) || capstone_in_group(r->d.in, CS_GRP_CALL) ||
		        capstone_in_group(r->d.in, CS_GRP_RET))
			return;
		if (left < UPROBE_CODE || !uprobe_is_emulated(at))
			continue;
		f->pair = addr;
		return;
	}
}

/* The first instruction that the kernel emulates, if one comes before arguments go; else the first. */
static void choose_place(struct reading *r, struct alloc_function *f)
{
	u8 code[PLACE_INSNS * UPROBE_CODE + UPROBE_CODE] = {0};
	u64 addr = f->addr = f->place = probed_entry(r->img, f->addr);
	size_t left = sizeof(code) - UPROBE_CODE;
	const u8 *at = code;
	u32 pushed = 0;

	f->stepped = true;
	f->moved = false;
	if (!image_read(r->img, code, left, addr))
		return;
	for (u32 i = 0; i < PLACE_INSNS; i++) {
		u64 here = addr;

		if (uprobe_is_emulated(at)) {
			f->place = here;
			f->pushed = pushed;
			f->stepped = false;
			choose_pair(r, f, at, left);
			return;
		}
		if (!cs_disasm_iter(r->d.handle, &at, &left, &addr, r->d.in) || !keeps_arguments(r, f, &pushed))
			break;
	}
	f->moved = false;
}

/* Is a jump to another one all that it does? */
static void note_wrapper(struct reading *r, struct alloc_function *f)
{
	u8 code[UPROBE_CODE];
	const u8 *at = code;
	size_t left = sizeof(code);
	u64 addr = f->addr;
	bool outside;

	if (image_read(r->img, code, left, addr) && cs_disasm_iter(r->d.handle, &at, &left, &addr, r->d.in) &&
	        r->d.in->id == X86_INS_JMP && r->d.in->detail->x86.operands[0].type == X86_OP_IMM)
		f->wrapper = family_at(r, resolve(r, (u64)r->d.in->detail->x86.operands[0].imm, &outside)) != NOWHERE;
}

static void note_tails(struct reading *r)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (u32 i = 0; i < r->njumps; i++) {
			struct part *from = &r->part[r->jump[i].from];
			u32 to = r->jump[i].to;

			if (from->tails || (to >= r->f->n && !r->part[to].tails))
				continue;
			from->tails = changed = true;
		}
	}
	for (u32 i = 0; i < r->f->n; i++)
		r->f->of[i].tails = r->part[i].tails;
}

/*
 * What is called may go on as one of the family, which then returns to where the call was (glibc's posix_memalign()
 * calls _mid_memalign(), which jumps to malloc()).
 */
static void note_calls_of_tails(struct reading *r)
{
	for (u32 i = 0; i < r->ncalls; i++)
		for (u32 k = 0; r->part[r->call[i].to].tails && k < r->f->n; k++)
			add_inner(r->f, k, r->call[i].back);
}

/* Where functions that allocate return, or what they jump to in their place. */
static void note_returns(struct reading *r)
{
	for (u32 i = 0; i < r->f->n; i++)
		r->part[i].ends = r->f->of[i].shape < ALLOC_MOVE_END;
	for (bool changed = true; changed;) {
		changed = false;
		for (u32 i = 0; i < r->njumps; i++) {
			struct part *to = &r->part[r->jump[i].to];

			if (!r->part[r->jump[i].from].ends || to->ends || family_at(r, to->start) != NOWHERE)
				continue;
			to->ends = changed = true;
		}
	}
	for (u32 i = 0; i < r->n; i++)
		if (r->part[i].ends)
			look_through(r, i, true);
}

static void remove_range(struct alloc_functions *f, u32 i)
{
	memmove(&f->code[i], &f->code[i + 1], (--f->ncode - i) * sizeof(*f->code));
}

/* Where there is no room for one more, the two that are nearest to each other become one. */
static void make_room(struct alloc_functions *f)
{
	u32 nearest = 1;

	for (u32 i = 1; i < f->ncode; i++)
		if (f->code[i].start - f->code[i - 1].end < f->code[nearest].start - f->code[nearest - 1].end)
			nearest = i;
	f->code[nearest - 1].end = f->code[nearest].end;
	remove_range(f, nearest);
}

/* Ranges are in order, and apart. */
static void add_range(struct alloc_functions *f, u64 start, u64 end)
{
	u32 i;

	if (f->ncode == ALLOC_RANGES_MAX)
		make_room(f);
	for (i = f->ncode++; i && f->code[i - 1].start > start; i--)
		f->code[i] = f->code[i - 1];
	f->code[i].start = start;
	f->code[i].end = end;
	while (i + 1 < f->ncode && f->code[i + 1].start <= f->code[i].end) {
		f->code[i].end = f->code[i + 1].end > f->code[i].end ? f->code[i + 1].end : f->code[i].end;
		remove_range(f, i + 1);
	}
	if (i && f->code[i - 1].end >= f->code[i].start) {
		f->code[i - 1].end = f->code[i].end > f->code[i - 1].end ? f->code[i].end : f->code[i - 1].end;
		remove_range(f, i);
	}
}

static void note_code(struct reading *r)
{
	const struct cfi *cfi = r->img->cfi;

	if (alloc_functions_are_all(r->img) && cfi && cfi->nfdes) {
		add_range(r->f, cfi->fdes[0].start, cfi->fdes[cfi->nfdes - 1].end);
		return;
	}
	for (u32 i = 0; i < r->n; i++)
		if (r->part[i].depth <= NEAR)
			add_range(r->f, r->part[i].start, r->part[i].end);
}

/* Virtual functions of an allocator, too. */
static void look_through_all(struct reading *r)
{
	const struct cfi *cfi = r->img->cfi;
	u32 n = r->n < ALLOC_CODE_FUNCTIONS ? r->n : r->n - 1;

	r->flat = true;
	for (u32 i = 0; cfi && i < cfi->nfdes; i++) {
		r->part[n] = (struct part){.start = cfi->fdes[i].start, .end = cfi->fdes[i].end};
		if (r->part[n].end - r->part[n].start <= FUNCTION_BYTES && part_at(r, r->part[n].start, 0) == NOWHERE)
			look_through(r, n, false);
	}
}

/* Calls are to addresses of symbols; the rest is by the place behind an endbr64. */
static void read_all(struct reading *r)
{
	for (u32 i = 0; i < r->f->n; i++) {
		struct part *p = &r->part[r->n++];

		bounds_of(r, r->f->of[i].addr, p);
		p->start = r->f->of[i].addr;
		p->depth = 0;
	}
	for (u32 i = 0; i < r->f->n; i++) {
		u64 addr = r->f->of[i].addr;

		note_wrapper(r, &r->f->of[i]);
		choose_place(r, &r->f->of[i]);
		r->f->of[i].addr = addr;
	}
	for (u32 i = 0; i < r->n; i++)
		look_through(r, i, false);
	for (u32 i = 0; i < r->f->n; i++)
		if (r->f->of[i].moved)
			r->f->of[i].shape = r->f->of[i].shape == ALLOC_FREE ? ALLOC_FREE_2 : ALLOC_SIZE_2;
	note_tails(r);
	note_calls_of_tails(r);
	note_returns(r);
	note_code(r);
	if (alloc_functions_are_all(r->img))
		look_through_all(r);
}

struct error *alloc_code_read(struct image *img, struct alloc_functions *f)
{
	cleanup(free) struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return &error_no_memory;
	r->img = img;
	r->f = f;
	if (!disassembler_open(&r->d))
		return &error_no_memory;
	read_all(r);
	disassembler_close(&r->d);
	return NULL;
}
