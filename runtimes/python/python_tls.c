/* SPDX-License-Identifier: Apache-2.0 */
#include "python_tls.h"

#include <sys/param.h>

#include "code/disassembler.h"
#include "symbols/symbols.h"

#define BYTES_MAX     64
#define RUNTIME_BYTES (64u << 10) /* of _PyRuntime, in which the key is */

/* What is in a register on the way to the variable. */
enum content { OTHER, POINTER, GOT_WORD, GOT_ADDRESS, BLOCK, POINTER_AND_GOT, DESCRIBED, DESCRIBED_POINTER };

struct state {
	enum content regs[X86_REG_ENDING];
	u64 got;
	struct python_tls found;
};

static bool plain(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.index == X86_REG_INVALID;
}

/* Loads what a memory operand leads to; the variable itself ends the search. */
static enum content load(const cs_insn *in, const cs_x86_op *from, struct state *s)
{
	enum content base = from->mem.base < X86_REG_ENDING ? s->regs[from->mem.base] : OTHER;
	s64 disp = from->mem.disp;

	if (from->mem.segment == X86_REG_FS && from->mem.base == X86_REG_INVALID && !disp)
		return POINTER;
	if (from->mem.segment == X86_REG_FS && from->mem.base == X86_REG_INVALID && disp < 0)
		s->found = (struct python_tls){PYTHON_TLS_LOCAL, (s32)disp, 0};
	else if (from->mem.segment == X86_REG_FS && base == GOT_WORD && !disp)
		s->found = (struct python_tls){PYTHON_TLS_GOT, 0, s->got};
	else if (from->mem.base == X86_REG_RIP) {
		s->got = in->address + in->size + (u64)disp;
		return GOT_WORD;
	} else if (base == POINTER && disp < 0)
		s->found = (struct python_tls){PYTHON_TLS_LOCAL, (s32)disp, 0};
	else if (base == POINTER_AND_GOT && !disp)
		s->found = (struct python_tls){PYTHON_TLS_GOT, 0, s->got};
	else if (base == BLOCK && disp >= 0)
		s->found = (struct python_tls){PYTHON_TLS_MODULE, (s32)disp, s->got};
	else if (base == DESCRIBED_POINTER || (base == DESCRIBED && from->mem.segment == X86_REG_FS))
		s->found = (struct python_tls){PYTHON_TLS_DESCRIPTOR, (s32)disp, s->got};
	return OTHER;
}

/*
 * __tls_get_addr(): of a module and an offset that are in the GOT. By a descriptor there: it gives the offset from the
 * thread pointer
 * (-mtls-dialect=gnu2; "Thread-Local Storage Descriptors for IA32 and AMD64/EM64T", Oliva).
 */
static void call(const cs_x86_op *to, struct state *s)
{
	bool described = to->type == X86_OP_MEM && to->mem.base == X86_REG_RAX && s->regs[X86_REG_RAX] == GOT_ADDRESS;

	if (described)
		s->regs[X86_REG_RAX] = DESCRIBED;
	else
		s->regs[X86_REG_RAX] = s->regs[X86_REG_RDI] == GOT_ADDRESS ? BLOCK : OTHER;
}

static void look(const cs_insn *in, struct state *s)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];

	if (in->id == X86_INS_CALL)
		return call(to, s);
	if (in->detail->x86.op_count != 2 || to->type != X86_OP_REG || to->reg >= X86_REG_ENDING)
		return;
	if (in->id == X86_INS_MOV && plain(from)) {
		s->regs[to->reg] = load(in, from, s);
	} else if (in->id == X86_INS_LEA && plain(from) && from->mem.base == X86_REG_RIP) {
		s->got = in->address + in->size + (u64)from->mem.disp;
		s->regs[to->reg] = GOT_ADDRESS;
	} else if (in->id == X86_INS_ADD && plain(from) && from->mem.base == X86_REG_RIP &&
	           s->regs[to->reg] == POINTER) {
		s->got = in->address + in->size + (u64)from->mem.disp;
		s->regs[to->reg] = POINTER_AND_GOT;
	} else if (in->id == X86_INS_ADD && plain(from) && from->mem.segment == X86_REG_FS &&
	           s->regs[to->reg] == DESCRIBED) {
		s->regs[to->reg] = DESCRIBED_POINTER;
	} else {
		s->regs[to->reg] = OTHER;
	}
}

/* Looks at the function that gets the thread's state, up to its return. */
static void search(struct image *img, code_look *look, void *ctx)
{
	struct symbol function;

	if (symbols_lookup(img, "PyGILState_GetThisThreadState", &function))
		code_each(img, function.start, MIN(function.end, function.start + BYTES_MAX), look, ctx);
}

static bool look_for_variable(void *ctx, const cs_insn *in)
{
	struct state *s = ctx;

	look(in, s);
	return !s->found.model && in->id != X86_INS_RET;
}

struct python_tls python_tls_find(struct image *img)
{
	struct state s = {.found = {.model = PYTHON_TLS_NONE}};

	search(img, look_for_variable, &s);
	return s.found;
}

struct key {
	u64 runtime, found;
};

/* What it names of _PyRuntime: by its address, in a register or not, or as a distance from it. */
static bool look_for_key(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct key *k = ctx;

	for (u32 i = 0; i < x->op_count && !k->found; i++) {
		const cs_x86_op *op = &x->operands[i];
		u64 value = op->type == X86_OP_IMM ? (u64)op->imm : 0;

		if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP)
			value = in->address + in->size + (u64)op->mem.disp;
		else if (op->type == X86_OP_MEM && in->id == X86_INS_LEA && op->mem.base != X86_REG_RSP &&
		         op->mem.base != X86_REG_RBP)
			value = (u64)op->mem.disp + k->runtime;
		if (value >= k->runtime && value - k->runtime < RUNTIME_BYTES)
			k->found = value;
	}
	return !k->found && in->id != X86_INS_RET;
}

u64 python_tls_key(struct image *img, u64 runtime)
{
	struct key key = {.runtime = runtime};

	search(img, look_for_key, &key);
	return key.found;
}
