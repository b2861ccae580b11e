/* SPDX-License-Identifier: Apache-2.0 */
#include <arch.h>
#include <stdio.h>
#include <stdlib.h>

#include "cfi/cfi.h"
#include "cfi/cfi_search_cache.h"
#include "cleanup.h"
#include "code/disassembler.h"
#include "python_image.h"

#define AHEAD_MAX 48 /* instructions between the two stores */

static const x86_reg registers[ARCH_NREGS] = {[DWREG_RAX] = X86_REG_RAX,
        [DWREG_RDX] = X86_REG_RDX,
        [DWREG_RCX] = X86_REG_RCX,
        [DWREG_RBX] = X86_REG_RBX,
        [DWREG_RSI] = X86_REG_RSI,
        [DWREG_RDI] = X86_REG_RDI,
        [DWREG_RBP] = X86_REG_RBP,
        [DWREG_R8] = X86_REG_R8,
        [DWREG_R9] = X86_REG_R9,
        [DWREG_R10] = X86_REG_R10,
        [DWREG_R11] = X86_REG_R11,
        [DWREG_R12] = X86_REG_R12,
        [DWREG_R13] = X86_REG_R13,
        [DWREG_R14] = X86_REG_R14,
        [DWREG_R15] = X86_REG_R15};

/* What a register was made of by a lea: a generator's frame lies in the generator. */
struct made {
	x86_reg base;
	s64 disp;
};

struct search {
	const struct image *img;
	struct disassembler d;
	s64 current;  /* below the CFA: _PyCFrame.current_frame */
	s64 previous; /* offset in a frame */
	struct made made[ARCH_NREGS];
};

static bool is_store(const cs_insn *in)
{
	const cs_x86_op *to = &in->detail->x86.operands[0];

	return in->id == X86_INS_MOV && to->type == X86_OP_MEM && to->size == 8 && to->mem.index == X86_REG_INVALID;
}

/* Of a register, which frame is the innermost now. */
static bool sets_current(const struct search *s, const cs_insn *in)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];
	struct cfi_rule rule;

	return is_store(in) && from->type == X86_OP_REG &&
	       (to->mem.base == X86_REG_RSP || to->mem.base == X86_REG_RBP) &&
	       cfi_find(s->img->cfi, in->address, &rule) && rule.kind == CFI_REG &&
	       to->mem.base == (rule.cfa_reg == DWREG_RSP ? X86_REG_RSP : X86_REG_RBP) &&
	       rule.cfa_off - to->mem.disp == s->current;
}

static bool sets(const cs_insn *in, struct made link, x86_op_type from)
{
	const cs_x86_op *to = &in->detail->x86.operands[0];

	return is_store(in) && to->mem.base == link.base && to->mem.disp == link.disp &&
	       in->detail->x86.operands[1].type == from;
}

/* A generator's link to none. */
static bool unlinks(const struct search *s, const cs_insn *in)
{
	x86_reg frame = in->detail->x86.operands[0].mem.base;

	return sets(in, (struct made){frame, s->previous}, X86_OP_IMM) && frame != X86_REG_RSP && frame != X86_REG_RIP;
}

static u32 written(const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];
	u32 mask = 0;

	for (u32 r = 0; in->detail->x86.op_count && op->type == X86_OP_REG && r < ARCH_NREGS; r++)
		mask |= (u32)(registers[r] == op->reg && (op->access & CS_AC_WRITE)) << r;
	return mask;
}

static u32 number(x86_reg reg)
{
	u32 r = 0;

	while (r < ARCH_NREGS && (registers[r] != reg || reg == X86_REG_INVALID))
		r++;
	return r;
}

static void follow(struct search *s, const cs_insn *in)
{
	const cs_x86_op *to = &in->detail->x86.operands[0], *from = &in->detail->x86.operands[1];
	u32 mask = written(in), reg = number(to->reg);

	for (u32 r = 0; r < ARCH_NREGS; r++)
		if (in->id == X86_INS_CALL || (mask >> r & 1) ||
		        (s->made[r].base && s->made[r].base == (mask ? to->reg : 0)))
			s->made[r] = (struct made){0};
	if (in->id == X86_INS_LEA && reg < ARCH_NREGS && from->mem.index == X86_REG_INVALID &&
	        from->mem.base != to->reg)
		s->made[reg] = (struct made){from->mem.base, from->mem.disp};
}

/*
 * first is the first of two stores. Behind the second, what it stores is a link that was in a register from the first
 * on: the caller of a frame that is the innermost already, or of a generator that has none any more.
 */
static bool find_second(
        const struct search *s, const cs_insn *first, const u8 *at, size_t size, struct python_torn *ret)
{
	bool call = sets_current(s, first);
	x86_reg callee = call ? first->detail->x86.operands[1].reg : X86_REG_INVALID;
	struct made link = {callee, s->previous},
	            other = call ? s->made[number(callee) % ARCH_NREGS] : (struct made){0};
	u64 addr = first->address + first->size;
	cs_insn *in = cs_malloc(s->d.handle);
	u32 lost = 0, reg = ARCH_NREGS;

	other.disp += s->previous;
	ret->start = addr;
	for (u32 n = 0; in && n < AHEAD_MAX && reg == ARCH_NREGS && cs_disasm_iter(s->d.handle, &at, &size, &addr, in);
	        n++) {
		if (in->id == X86_INS_JMP || in->id == X86_INS_CALL || in->id == X86_INS_RET ||
		        (!call && unlinks(s, in)))
			break;
		if (call ? sets(in, link, X86_OP_REG) || (other.base && sets(in, other, X86_OP_REG))
		         : sets_current(s, in))
			reg = number(in->detail->x86.operands[1].reg);
		lost |= written(in);
		ret->end = in->address + in->size;
	}
	if (in)
		cs_free(in, 1);
	ret->reg = (u8)reg;
	return reg < ARCH_NREGS && !(lost >> reg & 1);
}

static bool scan(struct image *img, struct search *s, struct python_range r, struct python_eval *eval)
{
	size_t size = r.end - r.start;
	cleanup(free) u8 *code = malloc(size + 1);
	const u8 *at = code;
	const cs_insn *in = s->d.in;

	if (!code || !image_read(img, code, size, r.start))
		return false;
	while (eval->ntorn < PYTHON_TORN_MAX && cs_disasm_iter(s->d.handle, &at, &size, &r.start, s->d.in)) {
		follow(s, in);
		if (sets_current(s, in) || unlinks(s, in))
			eval->ntorn += find_second(s, in, at, size, &eval->torn[eval->ntorn]);
	}
	return true;
}

#define WORDS    2 /* of each in the cache */
#define REG_BITS 8
_Static_assert(SEARCH_RESULT_MAX >= WORDS * PYTHON_TORN_MAX, "all fit");

static bool is_inside(const struct python_eval *eval, const struct python_torn *t)
{
	for (u32 i = 0; i < eval->n; i++)
		if (t->start >= eval->ranges[i].start && t->start <= t->end && t->end <= eval->ranges[i].end)
			return t->reg < ARCH_NREGS;
	return false;
}

static bool load(const struct image *img, const char *name, struct python_eval *eval)
{
	struct search_result found;

	if (!search_cache_load(img, name, &found) || found.n % WORDS || found.n / WORDS > PYTHON_TORN_MAX)
		return false;
	for (u32 i = 0; i < found.n / WORDS; i++) {
		u64 start = found.values[i * WORDS], word = found.values[i * WORDS + 1];

		eval->torn[i] = (struct python_torn){start, start + (word >> REG_BITS), (u8)word};
		if (!is_inside(eval, &eval->torn[i]))
			return false;
	}
	eval->ntorn = found.n / WORDS;
	return true;
}

static void store(const struct image *img, const char *name, const struct python_eval *eval)
{
	struct search_result found = {.n = eval->ntorn * WORDS};

	for (u32 i = 0; i < eval->ntorn; i++) {
		const struct python_torn *t = &eval->torn[i];

		found.values[i * WORDS] = t->start;
		found.values[i * WORDS + 1] = (t->end - t->start) << REG_BITS | t->reg;
	}
	search_cache_store(img, name, &found);
}

/* What is found depends on the layout, which YRT_LAYOUTS may change. */
void python_torn_find(struct image *img, const struct python_vm *vm, struct python_eval *eval)
{
	struct search s = {.img = img, .current = vm->cframe_below - vm->cf_frame, .previous = vm->f_previous};
	char name[64];
	bool whole = true;

	eval->ntorn = 0;
	snprintf(name, sizeof(name), PYTHON_TORN_SEARCH, s.current, s.previous);
	if (load(img, name, eval) || !disassembler_open(&s.d))
		return;
	for (u32 i = 0; i < eval->n; i++)
		whole &= scan(img, &s, eval->ranges[i], eval);
	disassembler_close(&s.d);
	if (whole)
		store(img, name, eval);
}
