/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_alloc_code.h"

#include <arch.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/cfi.h"
#include "cleanup.h"
#include "code/capstone_registers.h"
#include "code/disassembler.h"

#define BEGINNING    256 /* bytes of a function that are looked at */
#define INSNS        48
#define TRACER_BYTES 0x8000 /* of a function, at most */
#define TRACERS_MAX  4096
#define APART        0x10000 /* both are of the same file of source */
#define SETTING      24      /* sizeof(JfrNativeEventSetting), 11 to 28 */
#define CALLERS_MAX  64
#define CHUNK        (256 << 10)
#define REL32        4

/* What may be a tracer. */
struct tracer {
	u64 start;
	u64 first_call, setting;
	u32 taken; /* bits of registers that it reads as parameters before that call */
};

struct search {
	struct image *img;
	struct disassembler d;
	struct tracer *tracers;
	u32 n;
};

/* What is known half way through the beginning of a function. */
struct beginning {
	struct tracer *tracer;
	u32 written; /* bits of registers */
	u32 calls;
	u64 address[16]; /* in a register, by lea; 0: something else */
};

#define BIT(number) (1u << (number))

/* Data that the file has no content for: it starts as zeros. */
static bool is_bss(const struct image *img, u64 addr)
{
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *s = &img->segments[i];

		if (s->flags & PF_W && addr >= s->vaddr + s->filesz && addr < s->vaddr + s->memsz)
			return true;
	}
	return false;
}

/* "cmpb $0, disp32(reg)" or with rip, behind a call: few functions have it in their beginning. */
static bool may_be_tracer(const u8 *b, size_t size)
{
	bool call = false;

	for (size_t i = 0; i + 7 < size; i++) {
		call |= b[i] == 0xe8;
		if (call && b[i] == 0x80 && (b[i + 1] == 0x3d || (b[i + 1] & 0xf8) == 0xb8))
			return true;
	}
	return false;
}

static void note_write(struct beginning *b, u32 reg)
{
	u8 number = capstone_register(reg);

	if (number == CAPSTONE_NO_REG)
		return;
	b->written |= BIT(number);
	b->address[number] = 0;
}

static void note_registers(const struct search *s, struct beginning *b)
{
	const cs_x86 *x = &s->d.in->detail->x86;
	bool zero = s->d.in->id == X86_INS_XOR && x->operands[0].type == X86_OP_REG &&
	            x->operands[1].type == X86_OP_REG && x->operands[0].reg == x->operands[1].reg;
	cs_regs read, write;
	u8 nread, nwrite;

	if (cs_regs_access(s->d.handle, s->d.in, read, &nread, write, &nwrite) != CS_ERR_OK)
		return;
	for (u8 i = 0; i < nread && !zero && !b->calls; i++) {
		u8 number = capstone_register(read[i]);

		if (number != CAPSTONE_NO_REG && !(b->written & BIT(number)))
			b->tracer->taken |= BIT(number);
	}
	for (u8 i = 0; i < nwrite; i++)
		note_write(b, write[i]);
	if (s->d.in->id == X86_INS_LEA && x->operands[1].mem.base == X86_REG_RIP) {
		u8 number = capstone_register(x->operands[0].reg);

		if (number != CAPSTONE_NO_REG)
			b->address[number] = s->d.in->address + s->d.in->size + (u64)x->operands[1].mem.disp;
	}
}

/* "cmpb $0, setting": where that is. */
static bool compares_setting(const struct search *s, const struct beginning *b, u64 *ret)
{
	const cs_x86_op *op = s->d.in->detail->x86.operands;
	u8 base;

	if (s->d.in->id != X86_INS_CMP || op[0].type != X86_OP_MEM || op[0].size != 1 || op[1].type != X86_OP_IMM ||
	        op[1].imm || op[0].mem.index != X86_REG_INVALID || op[0].mem.segment != X86_REG_INVALID)
		return false;
	if (op[0].mem.base == X86_REG_RIP) {
		*ret = s->d.in->address + s->d.in->size + (u64)op[0].mem.disp;
		return true;
	}
	base = capstone_register(op[0].mem.base);
	if (base == CAPSTONE_NO_REG || !b->address[base])
		return false;
	*ret = b->address[base] + (u64)op[0].mem.disp;
	return true;
}

static bool is_branch(const struct search *s)
{
	return cs_insn_group(s->d.handle, s->d.in, X86_GRP_JUMP) || cs_insn_group(s->d.handle, s->d.in, X86_GRP_RET);
}

/* Straight on from its start to the test of its event. */
static bool read_tracer(struct search *s, const u8 *code, size_t size, u64 start, struct tracer *ret)
{
	struct beginning b = {.tracer = ret};
	u64 addr = start;

	*ret = (struct tracer){.start = start};
	for (u32 i = 0; i < INSNS && cs_disasm_iter(s->d.handle, &code, &size, &addr, s->d.in) && !is_branch(s); i++) {
		const cs_x86_op *op = s->d.in->detail->x86.operands;

		if (s->d.in->id == X86_INS_CALL) {
			if (b.calls++ || op->type != X86_OP_IMM)
				return false;
			ret->first_call = (u64)op->imm;
		} else if (compares_setting(s, &b, &ret->setting)) {
			return b.calls == 1 && is_bss(s->img, ret->setting);
		}
		note_registers(s, &b);
	}
	return false;
}

static bool find_tracers(struct search *s)
{
	const struct cfi *cfi = s->img->cfi;

	for (u32 i = 0; i < cfi->nfdes && s->n < TRACERS_MAX; i++) {
		u64 start = cfi->fdes[i].start, size = cfi->fdes[i].end - start;
		u8 code[BEGINNING];

		if (size > TRACER_BYTES || size < REL32)
			continue;
		if (size > sizeof(code))
			size = sizeof(code);
		if (image_read(s->img, code, size, start) && may_be_tracer(code, size) &&
		        read_tracer(s, code, size, start, &s->tracers[s->n]))
			s->n++;
	}
	return s->n < TRACERS_MAX;
}

/* Five parameters: class, object (which may be passed on as it is), bytes of the buffer and of the object, thread. */
static bool is_refill(const struct tracer *t)
{
	u32 all = BIT(DWREG_RDI) | BIT(DWREG_RDX) | BIT(DWREG_RCX) | BIT(DWREG_R8);

	return (t->taken & all) == all && !(t->taken & BIT(DWREG_R9));
}

static bool is_outside(const struct tracer *t)
{
	u32 all = BIT(DWREG_RDI) | BIT(DWREG_RDX);

	return (t->taken & all) == all && !(t->taken & (BIT(DWREG_R8) | BIT(DWREG_R9)));
}

static bool is_pair(const struct tracer *refill, const struct tracer *outside)
{
	u64 apart = refill->start > outside->start ? refill->start - outside->start : outside->start - refill->start;

	return refill->first_call == outside->first_call && outside->setting == refill->setting + SETTING &&
	       apart < APART && is_refill(refill) && is_outside(outside);
}

/* The only pair; false: none, or several. */
static bool find_pair(const struct search *s, struct hotspot_alloc_code *ret)
{
	u32 pairs = 0;

	for (u32 i = 0; i < s->n; i++)
		for (u32 k = 0; k < s->n; k++)
			if (is_pair(&s->tracers[i], &s->tracers[k])) {
				ret->refill = s->tracers[i].start;
				ret->outside = s->tracers[k].start;
				pairs++;
			}
	return pairs == 1;
}

struct callers {
	u64 function[CALLERS_MAX];
	u32 n;
};

static u64 function_of(const struct cfi *cfi, u64 addr)
{
	const struct cfi_fde *fde = cfi_fde_at(cfi, addr);

	return fde ? fde->start : 0;
}

/* call, jmp, or a conditional jump (its second byte) from here? */
static void note_caller(const struct cfi *cfi, const u8 *code, u64 addr, u64 function, struct callers *ret)
{
	u64 from;
	s32 rel;

	if (*code != 0xe8 && *code != 0xe9 && (*code & 0xf0) != 0x80)
		return;
	memcpy(&rel, code + 1, sizeof(rel));
	if (addr + 1 + REL32 + (u64)(s64)rel != function || ret->n == CALLERS_MAX)
		return;
	from = function_of(cfi, addr);
	if (from && from != function)
		ret->function[ret->n++] = from;
}

static bool find_callers(
        struct image *img, const struct hotspot_alloc_code *code, struct callers *refill, struct callers *outside)
{
	cleanup(free) u8 *chunk = malloc(CHUNK);

	for (u32 i = 0; chunk && i < img->nsegments; i++) {
		const struct image_segment *s = &img->segments[i];
		u64 end = s->vaddr + s->filesz;

		for (u64 at = s->vaddr; s->flags & PF_X && end - at > REL32; at += CHUNK - REL32) {
			u64 size = end - at < CHUNK ? end - at : CHUNK;

			if (!image_read(img, chunk, size, at))
				return false;
			for (u64 k = 0; k + REL32 < size; k++) {
				note_caller(img->cfi, chunk + k, at + k, code->refill, refill);
				note_caller(img->cfi, chunk + k, at + k, code->outside, outside);
			}
			if (size < CHUNK)
				break;
		}
	}
	return chunk;
}

static bool shares_caller(const struct callers *a, const struct callers *b)
{
	for (u32 i = 0; i < a->n; i++)
		for (u32 k = 0; k < b->n; k++)
			if (a->function[i] == b->function[k])
				return true;
	return false;
}

static bool find_all_tracers(struct search *s)
{
	bool found = disassembler_open(&s->d) && find_tracers(s);

	disassembler_close(&s->d);
	return found;
}

bool hotspot_alloc_code(struct image *img, struct hotspot_alloc_code *ret)
{
	cleanup(free) struct tracer *tracers = calloc(TRACERS_MAX, sizeof(*tracers));
	struct search s = {.img = img, .tracers = tracers};
	struct callers refill = {0}, outside = {0};

	return tracers && img->cfi && find_all_tracers(&s) && find_pair(&s, ret) &&
	       find_callers(img, ret, &refill, &outside) && shares_caller(&refill, &outside);
}
