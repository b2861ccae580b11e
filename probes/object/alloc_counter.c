/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc_counter.h"

#include <stdio.h>
#include <string.h>

#include "probes/hit/hit_find.h"
#include "probes/uprobe_cost.h"
#include "unwind/binary/endbr64.h"
#include "unwind/binary/memory.h"
#include "unwind/code/capstone_group.h"
#include "unwind/code/capstone_registers.h"
#include "unwind/code/disassembler.h"
#include "unwind/symbols/symbols.h"

#define FLAGS      256 /* words of frames that were set to "true" of late */
#define NEAR       8   /* instructions from where ctx is passed to the call */
#define TRIGGERS   64
#define SITES      3   /* calls, at least: of malloc(), calloc(), realloc() */
#define BODY       160 /* bytes of the function that are looked at */
#define HEAD       128 /* the same of malloc() */
#define RSI        4   /* DWARF's number */
#define REGISTERS  17
#define CURRENT    8 /* offsets in ctx */
#define LAST_EVENT 16

struct word { /* of a frame */
	x86_reg base;
	s64 disp;
};

struct search {
	struct word flag[FLAGS]; /* is_alloc may be there */
	u32 nflags;
	struct word passed; /* as second argument, */
	u32 ago;            /* instructions since then */
	struct {
		u64 addr;
		u32 sites;
	} trigger[TRIGGERS];
	u32 n;
};

struct body {       /* of what may be the function */
	u32 is_ctx; /* registers that have it, a bit each */
	bool current, last_event;
};

struct head {                   /* of malloc() */
	u64 address[REGISTERS]; /* that a register has */
	u64 classes;
};

static void note_call(struct search *s, u64 to)
{
	u32 i = 0;

	for (u32 k = 0; k < FLAGS; k++)
		if (s->flag[k].base == s->passed.base && s->flag[k].disp == s->passed.disp) {
			while (i < s->n && s->trigger[i].addr != to)
				i++;
			if (i == TRIGGERS)
				return;
			s->n += i == s->n;
			s->trigger[i].addr = to;
			s->trigger[i].sites++;
			return;
		}
}

static bool is_of_frame(const cs_x86_op *op)
{
	return op->type == X86_OP_MEM && op->mem.index == X86_REG_INVALID &&
	       (op->mem.base == X86_REG_RSP || op->mem.base == X86_REG_RBP);
}

/* A call of what gets the address of a structure whose first byte is 1. */
static bool look_for_calls(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct search *s = ctx;

	s->ago++;
	if (in->id == X86_INS_MOV && is_of_frame(&x->operands[0]) && x->operands[0].size == 1 &&
	        x->operands[1].type == X86_OP_IMM && x->operands[1].imm == 1)
		s->flag[s->nflags++ % FLAGS] = (struct word){x->operands[0].mem.base, x->operands[0].mem.disp};
	if (in->id == X86_INS_LEA && x->operands[0].reg == X86_REG_RSI && is_of_frame(&x->operands[1])) {
		s->passed = (struct word){x->operands[1].mem.base, x->operands[1].mem.disp};
		s->ago = 0;
	}
	if (capstone_in_group(in, CS_GRP_CALL) && x->operands[0].type == X86_OP_IMM) {
		if (s->ago <= NEAR)
			note_call(s, (u64)x->operands[0].imm);
		s->ago = NEAR + 1;
	}
	return true;
}

static bool look_at_body(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct body *b = ctx;

	if (in->id != X86_INS_MOV || x->operands[0].type != X86_OP_REG)
		return !capstone_in_group(in, CS_GRP_RET);
	u8 to = capstone_register(x->operands[0].reg), from = capstone_register(x->operands[1].reg);

	if (x->operands[1].type == X86_OP_MEM) {
		from = capstone_register(x->operands[1].mem.base);
		if (from < 32 && b->is_ctx >> from & 1) {
			b->current |= x->operands[1].mem.disp == CURRENT;
			b->last_event |= x->operands[1].mem.disp == LAST_EVENT;
		}
		from = CAPSTONE_NO_REG;
	}
	if (to < 32) {
		bool copied = x->operands[1].type == X86_OP_REG && from < 32 && b->is_ctx >> from & 1;

		b->is_ctx = copied ? b->is_ctx | 1u << to : b->is_ctx & ~(1u << to);
	}
	return true;
}

static bool reads_counter(struct image *img, u64 addr)
{
	struct body b = {.is_ctx = 1u << RSI};

	return image_has_code(img, addr, addr + 1) && code_each(img, addr, addr + BODY, look_at_body, &b) &&
	       b.current && b.last_event;
}

/* malloc() begins with a look into the table: a byte, which an index leads to. */
static bool look_for_classes(void *ctx, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	struct head *h = ctx;
	u8 to = x->op_count ? capstone_register(x->operands[0].reg) : CAPSTONE_NO_REG;
	const cs_x86_op *from = &x->operands[1];

	if (in->id == X86_INS_LEA && from->mem.base == X86_REG_RIP && to < REGISTERS)
		h->address[to] = in->address + in->size + (u64)from->mem.disp;
	if (in->id != X86_INS_MOVZX || from->type != X86_OP_MEM || from->size != 1)
		return true;
	u8 base = capstone_register(from->mem.base), index = capstone_register(from->mem.index);

	if (base < REGISTERS && h->address[base])
		h->classes = h->address[base] + (u64)from->mem.disp;
	else if (index < REGISTERS && h->address[index])
		h->classes = h->address[index] + (u64)from->mem.disp;
	else if (from->mem.disp > 0)
		h->classes = (u64)from->mem.disp;
	return !h->classes;
}

static u64 find_classes(struct image *img, const struct alloc_functions *f)
{
	struct head h = {0};

	for (u32 i = 0; i < f->n && !h.classes; i++)
		if (f->of[i].shape == ALLOC_SIZE_1)
			code_each(img, f->of[i].addr, f->of[i].addr + HEAD, look_for_classes, &h);
	return h.classes;
}

/* Functions that were found without names are called as C's. */
static const char *prefix_of(struct image *img)
{
	static const char *const prefixes[] = {"", "je_", "_rjem_"};
	const char *kind;
	struct symbol sym;
	char name[32];

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		snprintf(name, sizeof(name), "%smallctl", prefixes[i]);
		if (symbols_lookup(img, name, &sym))
			return prefixes[i];
	}
	kind = alloc_functions_nameless(img);
	return kind && !strcmp(kind, "jemalloc") ? "" : NULL;
}

bool alloc_counter_find(struct image *img, const struct alloc_functions *f, struct alloc_counter *ret)
{
	struct search s = {.ago = NEAR + 1};
	u8 code[UPROBE_CODE] = {0};
	u64 addr = 0, at;
	u32 sites = SITES - 1;

	ret->prefix = prefix_of(img);
	if (!ret->prefix)
		return false;
	for (u32 i = 0; i < f->ncode; i++)
		code_each(img, f->code[i].start, f->code[i].end, look_for_calls, &s);
	for (u32 i = 0; i < s.n; i++)
		if (s.trigger[i].sites > sites && reads_counter(img, s.trigger[i].addr)) {
			addr = s.trigger[i].addr;
			sites = s.trigger[i].sites;
		}
	if (!addr)
		return false;
	at = probed_entry(img, addr);
	ret->stepped = !image_read(img, code, sizeof(code), at) || !uprobe_is_emulated(code);
	ret->classes = find_classes(img, f);
	return hit_offset(img, at, true, &ret->offset);
}

bool alloc_counter_counts(const struct alloc_counter *c, const struct alloc_function *f)
{
	return f->shape < ALLOC_AT && c->prefix && !strncmp(f->name, c->prefix, strlen(c->prefix));
}

u32 alloc_counter_quantum(const struct alloc_counter *c, const struct process *p, u64 bias)
{
	u8 of[2]; /* the classes of 24 and 32 bytes */

	return c->classes && memory_read(p->memory, of, sizeof(of), bias + c->classes + 24 / 8) && of[0] != of[1] ? 8
	                                                                                                          : 16;
}
