/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_nameless.h"

#include <string.h>

#include "unwind/cfi/cfi.h"
#include "unwind/code/capstone_group.h"
#include "unwind/code/capstone_registers.h"
#include "unwind/code/disassembler.h"

#define HEAD      1024 /* bytes of a function that are looked at */
#define REGISTERS 17
#define BRANCHES  32 /* of a function, whose state is kept */
#define TABLES    32
#define ARGUMENTS 3
#define PRODUCT   3 /* in place of an argument: of two of them */
#define RAX       0 /* DWARF's numbers */
#define RDX       1

static const struct {
	u64 largest; /* small block */
	u8 entry;    /* bytes, in the table */
} kinds[] = {[ALLOC_NAMELESS_JEMALLOC] = {4096, 1}, [ALLOC_NAMELESS_MIMALLOC] = {1024, 8}};

struct value { /* of a register */
	enum { UNKNOWN, ARGUMENT, INDEX, ADDRESS } is;
	u32 argument; /* INDEX: (argument + 7) / 8 */
	u64 address;
};

struct state {
	struct value of[REGISTERS];
};

struct head {
	struct disassembler *d;
	enum alloc_nameless kind;
	struct state now;
	bool reachable;
	struct {
		u64 to;
		struct state state;
	} branch[BRANCHES];
	u32 nbranches;
	bool compared[PRODUCT + 1], aligned[ARGUMENTS];
	u32 product; /* its first argument */
	bool found;
	u32 size; /* the argument that is */
	bool of_heap;
	u64 table;              /* its address, or distance in the heap */
	bool plain;             /* nothing was called so far, no return passed */
	bool stored, looked_up; /* the first argument */
};

static struct value *value_of(struct head *h, x86_reg reg)
{
	u8 number = capstone_register(reg);

	return number < REGISTERS ? &h->now.of[number] : NULL;
}

static bool is_argument(const struct value *v)
{
	return v && v->is == ARGUMENT;
}

static void begin(struct head *h)
{
	static const u8 at[ARGUMENTS] = {5, 4, 1}; /* rdi, rsi, rdx */

	memset(&h->now, 0, sizeof(h->now));
	for (u32 i = 0; i < ARGUMENTS; i++)
		h->now.of[at[i]] = (struct value){.is = ARGUMENT, .argument = i};
	h->reachable = h->plain = true;
}

static void note_compare(struct head *h, const cs_x86_op *op)
{
	const struct value *v = op[0].type == X86_OP_REG ? value_of(h, op[0].reg) : NULL;
	u64 largest = kinds[h->kind].largest;

	if (is_argument(v) && op[1].type == X86_OP_IMM && (u64)op[1].imm - largest <= 1)
		h->compared[v->argument] = true;
}

/* A load of the table's entry for a size. */
static void note_lookup(struct head *h, const cs_x86_op *from)
{
	const struct value *index = value_of(h, from->mem.index), *base = value_of(h, from->mem.base), *other = base;

	if (h->found || from->size != kinds[h->kind].entry)
		return;
	if (!index || index->is != INDEX) {
		other = index;
		index = base;
	}
	if (!index || index->is != INDEX || !h->compared[index->argument])
		return;
	h->found = true;
	h->size = index->argument;
	h->table = (u64)from->mem.disp;
	if (other && other->is == ADDRESS)
		h->table += other->address;
	h->of_heap = h->kind == ALLOC_NAMELESS_MIMALLOC && is_argument(other) && !other->argument;
}

static void note_free(struct head *h, const cs_insn *in, const cs_x86_op *op)
{
	const struct value *v = op[0].type == X86_OP_REG ? value_of(h, op[0].reg) : NULL;

	if (in->id == X86_INS_MOV && op[0].type == X86_OP_MEM && op[0].mem.base != X86_REG_RSP &&
	        op[1].type == X86_OP_REG && is_argument(value_of(h, op[1].reg)) && !value_of(h, op[1].reg)->argument)
		h->stored |= h->plain;
	if (!v || v->is == UNKNOWN || v->argument || op[1].type != X86_OP_IMM)
		return;
	if (h->kind == ALLOC_NAMELESS_JEMALLOC)
		h->looked_up |= in->id == X86_INS_AND && op[1].imm == -(1l << 30);
	else
		h->looked_up |= (in->id == X86_INS_AND && op[1].imm == -(1l << 25)) ||
		                (in->id == X86_INS_SHR && op[1].imm == 29);
}

/* What a register has behind an instruction; false: what it writes is unknown. */
static bool follow(struct head *h, const cs_insn *in, const cs_x86_op *op)
{
	struct value *to = op[0].type == X86_OP_REG ? value_of(h, op[0].reg) : NULL, v = {0};
	const struct value *from = op[1].type == X86_OP_REG ? value_of(h, op[1].reg) : NULL;

	if (in->id == X86_INS_MUL && op[0].type == X86_OP_REG && is_argument(to) && is_argument(&h->now.of[RAX]) &&
	        to->argument != h->now.of[RAX].argument) {
		u32 a = to->argument, b = h->now.of[RAX].argument;

		h->product = a < b ? a : b;
		h->now.of[RDX] = (struct value){0};
		h->now.of[RAX] = (struct value){.is = ARGUMENT, .argument = PRODUCT};
		return true;
	}
	if (!to || op[0].size != 8)
		return false;
	if (in->id == X86_INS_MOV && from) {
		v = *from;
	} else if (in->id == X86_INS_LEA && op[1].mem.base == X86_REG_RIP) {
		v = (struct value){.is = ADDRESS, .address = in->address + in->size + (u64)op[1].mem.disp};
	} else if (in->id == X86_INS_LEA && op[1].mem.index == X86_REG_INVALID) {
		const struct value *base = value_of(h, op[1].mem.base);

		if (!is_argument(base))
			return false;
		if (op[1].mem.disp == -1 && base->argument < ARGUMENTS)
			h->aligned[base->argument] = true;
		if (op[1].mem.disp == 7 || op[1].mem.disp == -1)
			v = (struct value){.is = INDEX, .argument = base->argument};
	} else if (in->id == X86_INS_ADD && op[1].type == X86_OP_IMM && op[1].imm == 7 && is_argument(to)) {
		v = (struct value){.is = INDEX, .argument = to->argument};
	} else if (in->id == X86_INS_IMUL && is_argument(to) && is_argument(from)) {
		h->product = to->argument < from->argument ? to->argument : from->argument;
		v = (struct value){.is = ARGUMENT, .argument = PRODUCT};
	} else if (to->is == INDEX && (in->id == X86_INS_SHR || in->id == X86_INS_AND)) {
		v = *to;
	} else {
		return false;
	}
	*to = v;
	return true;
}

static void forget_written(struct head *h, const cs_insn *in)
{
	cs_regs read, write;
	u8 nread, nwrite;

	if (cs_regs_access(h->d->handle, in, read, &nread, write, &nwrite))
		return;
	for (u8 i = 0; i < nwrite; i++) {
		u8 reg = capstone_register_part(write[i]);

		if (reg < REGISTERS)
			h->now.of[reg].is = UNKNOWN;
	}
}

static void forget_called(struct head *h)
{
	static const u8 lost[] = {0, 1, 2, 4, 5, 8, 9, 10, 11}; /* rax, rdx, rcx, rsi, rdi, r8-r11 */

	for (size_t i = 0; i < sizeof(lost); i++)
		h->now.of[lost[i]].is = UNKNOWN;
	h->plain = false;
}

/* Where code goes on elsewhere, it does so with what registers have here. */
static void branch(struct head *h, const cs_insn *in, const cs_x86_op *op)
{
	bool returns = capstone_in_group(in, CS_GRP_RET);

	if (!returns && op[0].type == X86_OP_IMM && h->nbranches < BRANCHES) {
		h->branch[h->nbranches].to = (u64)op[0].imm;
		h->branch[h->nbranches++].state = h->now;
	}
	h->plain &= !returns;
	h->reachable = !returns && in->id != X86_INS_JMP;
}

static void come_to(struct head *h, u64 addr)
{
	for (u32 i = 0; !h->reachable && i < h->nbranches; i++)
		if (h->branch[i].to == addr) {
			h->now = h->branch[i].state;
			h->reachable = true;
		}
}

static bool look(void *ctx, const cs_insn *in)
{
	const cs_x86_op *op = in->detail->x86.operands;
	struct head *h = ctx;

	come_to(h, in->address);
	if (!h->reachable)
		return true;
	if (capstone_in_group(in, CS_GRP_CALL)) {
		forget_called(h);
		return true;
	}
	if (capstone_in_group(in, CS_GRP_JUMP) || capstone_in_group(in, CS_GRP_RET)) {
		branch(h, in, op);
		return true;
	}
	if (in->id == X86_INS_CMP)
		note_compare(h, op);
	if (in->detail->x86.op_count == 2 && op[1].type == X86_OP_MEM &&
	        (in->id == X86_INS_MOVZX || in->id == X86_INS_MOV))
		note_lookup(h, &op[1]);
	if (in->detail->x86.op_count == 2)
		note_free(h, in, op);
	if (!follow(h, in, op))
		forget_written(h, in);
	return true;
}

/* Which one it is; ALLOC_ANY: none. */
static enum alloc_shape shape_of(const struct head *h)
{
	if (h->stored && (h->looked_up || (h->found && h->size == 1)))
		return ALLOC_FREE;
	if (!h->found)
		return ALLOC_ANY;
	switch (h->size) {
	case 0:
		return ALLOC_SIZE_1;
	case 1:
		return h->of_heap || h->aligned[0] ? ALLOC_SIZE_2 : ALLOC_RESIZE;
	case 2:
		return h->of_heap ? ALLOC_RESIZE_2 : h->aligned[1] ? ALLOC_SIZE_3 : ALLOC_ANY;
	default:
		return h->product ? ALLOC_PRODUCT_2 : ALLOC_SIZE_PRODUCT;
	}
}

static const char *name_of(enum alloc_shape shape)
{
	switch (shape) {
	case ALLOC_FREE:
		return "free";
	case ALLOC_SIZE_PRODUCT:
	case ALLOC_PRODUCT_2:
		return "calloc";
	case ALLOC_RESIZE:
	case ALLOC_RESIZE_2:
		return "realloc";
	default:
		return "malloc";
	}
}

/* Are there numbers in its bytes that one of them has? Most functions have none, and are not disassembled. */
static bool may_be(enum alloc_nameless kind, const u8 *code, size_t n)
{
	static const u32 numbers[][4] = {[ALLOC_NAMELESS_JEMALLOC] = {4096, 4097, 0xc0000000, 0xc0000000},
	        [ALLOC_NAMELESS_MIMALLOC] = {1024, 1025, 0xfe000000, 0xfe000000}};
	u32 word;

	for (size_t i = 0; i + sizeof(word) <= n; i++) {
		memcpy(&word, code + i, sizeof(word));
		for (u32 k = 0; k < 4; k++)
			if (word == numbers[kind][k])
				return true;
		/* shr $29, register */
		if (kind == ALLOC_NAMELESS_MIMALLOC && code[i] == 0xc1 && code[i + 1] >> 3 == 0x1d && code[i + 2] == 29)
			return true;
	}
	return false;
}

struct table {
	u64 at;
	u32 users;
};

static void count_table(struct table *of, u32 *n, u64 at)
{
	u32 i = 0;

	while (i < *n && of[i].at != at)
		i++;
	if (i == TABLES)
		return;
	*n += i == *n;
	of[i].at = at;
	of[i].users++;
}

static u64 used_most(const struct table *of, u32 n)
{
	u32 most = 0;

	for (u32 i = 1; i < n; i++)
		if (of[i].users > of[most].users)
			most = i;
	return n ? of[most].at : 0;
}

static void keep(struct alloc_functions *f, u64 table, const u64 *tables)
{
	u32 n = 0, frees = 0;

	for (u32 i = 0; i < f->n; i++) {
		if (tables[i] && tables[i] != table)
			continue;
		frees += f->of[i].shape == ALLOC_FREE;
		f->of[n++] = f->of[i];
	}
	f->n = frees && frees < n ? n : 0;
}

void alloc_nameless_find(struct image *img, enum alloc_nameless kind, struct alloc_functions *ret)
{
	struct table used[TABLES] = {0};
	u64 tables[ALLOC_FUNCTIONS_MAX];
	struct disassembler d = {0};
	u32 nused = 0;
	u8 code[HEAD];

	if (!img->cfi || !disassembler_open(&d))
		return;
	for (u32 i = 0; i < img->cfi->nfdes && ret->n < ALLOC_FUNCTIONS_MAX; i++) {
		const struct cfi_fde *fde = &img->cfi->fdes[i];
		u64 size = fde->end - fde->start;
		struct head h = {.d = &d, .kind = kind};
		enum alloc_shape shape;

		size = size < HEAD ? size : HEAD;
		if (!image_read(img, code, size, fde->start) || !may_be(kind, code, size))
			continue;
		begin(&h);
		disassemble(&d, code, size, fde->start, look, &h);
		shape = shape_of(&h);
		if (shape == ALLOC_ANY)
			continue;
		tables[ret->n] = h.found ? h.table : 0;
		if (h.found)
			count_table(used, &nused, h.table);
		alloc_functions_add(ret, name_of(shape), shape, fde->start);
	}
	disassembler_close(&d);
	keep(ret, used_most(used, nused), tables);
}
