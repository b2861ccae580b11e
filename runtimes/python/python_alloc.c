/* SPDX-License-Identifier: Apache-2.0 */
#include "python_alloc.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "cleanup.h"
#include "code/capstone_group.h"
#include "code/capstone_registers.h"
#include "code/disassembler.h"
#include "memory.h"
#include "symbols/symbols.h"

#define REGISTERS   16
#define CODE_MAX    256 /* of PyObject_Malloc() up to its jump */
#define TABLE_WORDS 5   /* ctx, malloc, calloc, realloc, free */

struct following { /* a function of the interpreter, by what the process has in its variables */
	const struct runtime_process *p;
	u64 bias;
	struct {
		bool known;
		u64 value, from; /* from: where it was read; 0: nowhere */
	} reg[REGISTERS];
	u64 cell; /* what has the pointer that it calls */
};

static bool is_code(const struct runtime_process *p, u64 addr)
{
	const struct mapping *m = mapping_find(p->mappings, p->nmappings, addr);

	return m && m->image && m->prot & PROT_EXEC;
}

/* The address of an operand in memory; 0: it is not known. */
static u64 address_of(const struct following *f, const cs_insn *in, const cs_x86_op *op)
{
	u8 base = capstone_register(op->mem.base);

	if (op->type != X86_OP_MEM || op->mem.index || op->mem.segment)
		return 0;
	if (op->mem.base == X86_REG_RIP)
		return f->bias + in->address + in->size + (u64)op->mem.disp;
	if (op->mem.base == X86_REG_INVALID)
		return f->bias + (u64)op->mem.disp;
	return base < REGISTERS && f->reg[base].known ? f->reg[base].value + (u64)op->mem.disp : 0;
}

static void set(struct following *f, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	u8 to = x->op_count && x->operands[0].type == X86_OP_REG ? capstone_register(x->operands[0].reg)
	                                                         : CAPSTONE_NO_REG;
	u64 from = x->op_count == 2 ? address_of(f, in, &x->operands[1]) : 0, value;

	if (to >= REGISTERS)
		return;
	f->reg[to].known = false;
	f->reg[to].from = 0;
	if (!from || (in->id != X86_INS_MOV && in->id != X86_INS_LEA))
		return;
	if (in->id == X86_INS_LEA) {
		f->reg[to].value = from;
		f->reg[to].known = true;
	} else if (x->operands[1].size == 8 && memory_read(f->p->memory, &value, sizeof(value), from)) {
		f->reg[to].value = value;
		f->reg[to].from = from;
		f->reg[to].known = true;
	}
}

/* Up to a jump or a call by a pointer, or a comparison of one. */
static bool follow(void *ctx, const cs_insn *in)
{
	struct following *f = ctx;
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = &x->operands[0];
	u8 reg = x->op_count && op->type == X86_OP_REG ? capstone_register(op->reg) : CAPSTONE_NO_REG;
	bool jump = capstone_in_group(in, CS_GRP_JUMP) || capstone_in_group(in, CS_GRP_CALL);

	if (capstone_in_group(in, CS_GRP_RET) || (jump && in->id == X86_INS_JMP && op->type == X86_OP_IMM))
		return false;
	if (jump && op->type == X86_OP_IMM)
		return true;
	if (jump || in->id == X86_INS_CMP) {
		f->cell = reg < REGISTERS ? f->reg[reg].from : address_of(f, in, op);
		return !jump && !f->cell;
	}
	set(f, in);
	return true;
}

/* The table by which a function of the interpreter allocates; false: it does so otherwise. */
static bool find_table(const struct runtime_process *p, const struct mapping *m, const char *name, u64 ret[TABLE_WORDS])
{
	struct following f = {.p = p, .bias = m->bias};
	struct symbol sym;
	u64 end;

	if (!symbols_lookup(m->image, name, &sym))
		return false;
	end = sym.end - sym.start > CODE_MAX || sym.end <= sym.start ? sym.start + CODE_MAX : sym.end;
	if (!code_each(m->image, sym.start, end, follow, &f) || !f.cell ||
	        !memory_read(p->memory, ret, TABLE_WORDS * sizeof(*ret), f.cell - sizeof(u64)))
		return false;
	for (u32 i = PYTHON_MALLOC; i < TABLE_WORDS; i++)
		if (!is_code(p, ret[i]))
			return false;
	return true;
}

static u32 add(struct runtime_allocator *ret, u32 n, const struct runtime_allocator *one)
{
	for (u32 i = 0; i < n; i++)
		if (ret[i].addr == one->addr)
			return n;
	if (n < RUNTIME_ALLOCATORS_MAX)
		ret[n++] = *one;
	return n;
}

/* Copies of the function in others, where the file has some. */
static u32 add_copies(struct image *img, u64 bias, u64 function, enum python_allocating kind,
        struct runtime_allocator *ret, u32 n, u32 *unknown)
{
	cleanup(free) struct python_guards *guards = calloc(1, sizeof(*guards));

	if (!guards)
		return n;
	error_free(python_guards_find(img, function - bias, kind, guards));
	*unknown += guards->unknown;
	for (u32 i = 0; i < guards->n; i++) {
		const struct python_guard *g = &guards->of[i];

		n = add(ret, n, &(struct runtime_allocator){"a copy of pymalloc", g->at + bias, ALLOC_AT, g->operand});
	}
	for (u32 i = 0; guards->n && i < guards->ndirect; i++) {
		const struct python_direct *d = &guards->direct[i];

		n = add(ret, n, &(struct runtime_allocator){"a call of pymalloc", d->at + bias, ALLOC_BEFORE, d->call});
	}
	return n;
}

static u32 add_table(const struct runtime_process *p, const struct mapping *m, const u64 *table,
        struct runtime_allocator *ret, u32 n, u32 *unknown)
{
	static const struct {
		const char *name;
		enum alloc_shape shape;
	} of[] = {[PYTHON_MALLOC] = {"_PyObject_Malloc", ALLOC_SIZE_2},
	        [PYTHON_CALLOC] = {"_PyObject_Calloc", ALLOC_PRODUCT_2},
	        [PYTHON_REALLOC] = {"_PyObject_Realloc", ALLOC_RESIZE_2}};

	for (u32 i = PYTHON_MALLOC; i <= PYTHON_REALLOC; i++) {
		u32 before = n;

		n = add(ret, n, &(struct runtime_allocator){of[i].name, table[i], of[i].shape, 0});
		if (n > before && mapping_find(p->mappings, p->nmappings, table[i])->image == m->image)
			n = add_copies(m->image, m->bias, table[i], (enum python_allocating)i, ret, n, unknown);
	}
	return n;
}

u32 python_allocators(
        u64 bias, const struct runtime_process *p, struct runtime_allocator ret[RUNTIME_ALLOCATORS_MAX], u32 *unknown)
{
	static const char *const by[] = {"PyObject_Malloc", "PyMem_Malloc"};
	u64 table[TABLE_WORDS];
	u32 n = 0;

	for (u32 i = 0; i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];

		if (!m->image || !(m->prot & PROT_EXEC) || m->bias != bias)
			continue;
		for (u32 k = 0; k < 2; k++)
			if (find_table(p, m, by[k], table))
				n = add_table(p, m, table, ret, n, unknown);
	}
	return n;
}
