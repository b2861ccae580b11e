/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_exits.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>

#include "unwind/binary/endbr64.h"
#include "unwind/code/capstone_group.h"
#include "unwind/code/capstone_registers.h"
#include "unwind/code/disassembler.h"
#include "unwind/cfi/cfi.h"
#include "unwind/code/insn.h"
#include "unwind/cleanup.h"
#include "unwind/symbols/symbols.h"

#define CODE_MAX (1u << 20)
#define SP       7 /* DWARF's number */

struct sweep {
	const char *what;
	struct image *img;
	char name[256];
	u64 start, probed;
	struct {
		u64 start, end;
	} part[LATENCY_PARTS]; /* the function, and what of it lies elsewhere */
	u32 nparts;
	struct hit_exits *exits;
};

static struct error *refuse(const struct sweep *s, u64 addr, const char *why)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "-e %s: not all places where it returns are known: %s at 0x%lx",
	                          s->what, why, addr),
	        "choose a function that calls it; yrt probe shows its calls");
}

static bool is_inside(const struct sweep *s, u64 addr)
{
	for (u32 i = 0; i < s->nparts; i++)
		if (addr >= s->part[i].start && addr < s->part[i].end)
			return true;
	return false;
}

static bool add_part(struct sweep *s, u64 start, u64 end)
{
	if (s->nparts == LATENCY_PARTS)
		return false;
	s->part[s->nparts].start = start;
	s->part[s->nparts++].end = end;
	return true;
}

enum frame_state { FRAME_UNKNOWN, FRAME_NONE /* the stack is as at the entry */, FRAME_OPEN };

static enum frame_state frame_at(const struct sweep *s, u64 addr)
{
	struct cfi_rule rule;

	if (!s->img->cfi || !cfi_find(s->img->cfi, addr, &rule) || (rule.kind != CFI_REG && rule.kind != CFI_DEREF) ||
	        rule.flags & CFI_FROM_CODE)
		return FRAME_UNKNOWN;
	return rule.kind == CFI_REG && rule.cfa_reg == SP && rule.cfa_off == 8 ? FRAME_NONE : FRAME_OPEN;
}

/*
 * Is it a part of the function that lies elsewhere? That is swept, too. Without a symbol it is one if there is a frame,
 * and if compilers do not call so: no caller passes a function that has no name by a conditional jump.
 */
static bool is_part(struct sweep *s, u64 addr, enum frame_state frame, bool conditional)
{
	size_t len = strlen(s->name);
	const struct cfi_fde *fde;
	struct symbol sym;

	if (!symbols_find(s->img, addr, &sym))
		sym.start = 0;
	else if (!strncmp(sym.name, s->name, len) && !strncmp(sym.name + len, ".cold", 5))
		return add_part(s, sym.start, sym.end);
	if (frame == FRAME_UNKNOWN || (frame == FRAME_NONE && (!conditional || sym.start == addr)))
		return false;
	fde = cfi_fde_at(s->img->cfi, addr);
	return fde && addr < fde->end && add_part(s, fde->start, fde->end);
}

static struct error *take(struct sweep *s, const cs_insn *insn, struct hit_exit exit)
{
	if (s->exits->n == HIT_EXITS_MAX)
		return refuse(s, insn->address, "more than 256 returns");
	exit.jump.at = insn->address;
	s->exits->of[s->exits->n++] = exit;
	return NULL;
}

/* Of a jcc: its opcode's low bits. */
static u8 condition_of(const cs_insn *insn)
{
	const u8 *code = insn->bytes;

	while (*code == 0x2e || *code == 0x3e || *code == 0xf2) /* hints */
		code++;
	if ((*code & 0xf0) == 0x70)
		return *code & 15;
	return *code == 0x0f && (code[1] & 0xf0) == 0x80 ? code[1] & 15 : LATENCY_NONE;
}

static struct error *take_direct(struct sweep *s, const cs_insn *insn, u64 to)
{
	struct hit_exit exit = {.again = to == s->start || to == s->probed, .asks = insn->id != X86_INS_JMP, .to = to};
	enum frame_state frame = frame_at(s, insn->address);

	if (!exit.again && (is_inside(s, to) || is_part(s, to, frame, exit.asks)))
		return NULL;
	if (frame == FRAME_OPEN && exit.again)
		return NULL;
	exit.jump.condition = condition_of(insn);
	if (exit.asks && (exit.jump.condition == LATENCY_NONE || (!exit.again && frame != FRAME_NONE)))
		return refuse(s, insn->address, "a conditional jump out of it");
	exit.tail = !exit.again;
	return take(s, insn, exit);
}

/* Offset of a register in struct pt_regs; false: struct pt_regs does not have it. */
static bool place_of(unsigned reg, u8 *ret)
{
	static const u8 places[] = {offsetof(struct user_regs_struct, rax), offsetof(struct user_regs_struct, rdx),
	        offsetof(struct user_regs_struct, rcx), offsetof(struct user_regs_struct, rbx),
	        offsetof(struct user_regs_struct, rsi), offsetof(struct user_regs_struct, rdi),
	        offsetof(struct user_regs_struct, rbp), offsetof(struct user_regs_struct, rsp),
	        offsetof(struct user_regs_struct, r8), offsetof(struct user_regs_struct, r9),
	        offsetof(struct user_regs_struct, r10), offsetof(struct user_regs_struct, r11),
	        offsetof(struct user_regs_struct, r12), offsetof(struct user_regs_struct, r13),
	        offsetof(struct user_regs_struct, r14), offsetof(struct user_regs_struct, r15)};
	u8 number = reg == X86_REG_INVALID ? CAPSTONE_NO_REG : capstone_register(reg);

	*ret = number < sizeof(places) ? places[number] : LATENCY_NONE;
	return reg == X86_REG_INVALID || *ret != LATENCY_NONE;
}

/* notrack: compilers give it to jumps through their own tables only. */
static struct error *take_indirect(struct sweep *s, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];
	struct hit_exit exit = {.asks = true, .tail = true, .jump.condition = LATENCY_NONE};
	struct latency_jump *jump = &exit.jump;

	if (frame_at(s, insn->address) == FRAME_OPEN || *insn->bytes == 0x3e)
		return NULL;
	if (op->type == X86_OP_REG) {
		jump->index = LATENCY_NONE;
		return place_of(op->reg, &jump->base) ? take(s, insn, exit)
		                                      : refuse(s, insn->address, "an unknown jump");
	}
	if (op->type != X86_OP_MEM || op->mem.segment != X86_REG_INVALID)
		return refuse(s, insn->address, "an unknown jump");
	if (op->mem.base == X86_REG_RIP) { /* through a table that the linker fills: always out of it */
		jump->slot = insn->address + insn->size + (u64)op->mem.disp;
		return take(s, insn, exit);
	}
	if (!place_of(op->mem.base, &jump->base) || !place_of(op->mem.index, &jump->index) ||
	        op->mem.disp != (s32)op->mem.disp)
		return refuse(s, insn->address, "an unknown jump");
	jump->in_memory = true;
	jump->disp = (s32)op->mem.disp;
	jump->scale = (u8)op->mem.scale;
	return take(s, insn, exit);
}

static struct error *take_jump(struct sweep *s, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (insn->detail->x86.op_count != 1)
		return refuse(s, insn->address, "an unknown jump");
	return op->type == X86_OP_IMM ? take_direct(s, insn, (u64)op->imm) : take_indirect(s, insn);
}

static struct error *sweep_part(struct sweep *s, struct disassembler *d, u64 start, u64 end)
{
	cleanup(free) u8 *bytes = end > start && end - start <= CODE_MAX ? malloc(end - start) : NULL;
	size_t left = end - start;
	const u8 *at = bytes;
	struct error *err = NULL;
	const cs_insn *insn = d->in;
	u64 addr = start;

	if (!bytes || !image_read(s->img, bytes, left, start))
		return refuse(s, start, "unreadable code");
	while (!err && left) {
		if (!cs_disasm_iter(d->handle, &at, &left, &addr, d->in)) {
			struct insn plain = insn_decode(at, left); /* capstone 4 knows part of AVX-512 only */

			if (plain.kind != INSN_OTHER)
				return refuse(s, addr, "an unknown instruction");
			at += plain.size;
			left -= plain.size;
			addr += plain.size;
			continue;
		}
		if (capstone_in_group(insn, CS_GRP_RET) || capstone_in_group(insn, CS_GRP_IRET))
			err = take(s, insn, (struct hit_exit){0});
		else if (capstone_in_group(insn, CS_GRP_JUMP))
			err = take_jump(s, insn);
	}
	return err;
}

static u32 ways_out(const struct hit_exits *exits)
{
	u32 n = 0;

	for (u32 i = 0; i < exits->n; i++)
		n += !exits->of[i].again;
	return n;
}

/* All parts are known now. */
static void tell_parts(const struct sweep *s)
{
	for (u32 i = 0; i < s->exits->n; i++) {
		struct latency_jump *jump = &s->exits->of[i].jump;

		jump->nparts = s->nparts;
		for (u32 k = 0; k < s->nparts; k++) {
			jump->start[k] = s->part[k].start;
			jump->end[k] = s->part[k].end;
		}
	}
}

/* By its symbol, else by unwind information. */
static bool bounds_of(struct sweep *s, u64 *end)
{
	const struct cfi_fde *fde;
	struct symbol sym;

	if (symbols_find(s->img, s->start, &sym) && sym.start == s->start && !sym.unsized) {
		snprintf(s->name, sizeof(s->name), "%s", sym.name);
		*end = sym.end;
		return true;
	}
	fde = cfi_fde_at(s->img->cfi, s->start);
	if (!fde || fde->start != s->start)
		return false;
	*end = fde->end;
	return true;
}

struct error *hit_exits_sweep(const char *what, struct image *img, u64 start, struct hit_exits *ret)
{
	struct sweep s = {.what = what, .img = img, .start = start, .probed = probed_entry(img, start), .exits = ret};
	struct error *err = NULL;
	struct disassembler d;
	u64 end;

	ret->n = 0;
	if (!bounds_of(&s, &end))
		return refuse(&s, start, "no symbol with its size");
	add_part(&s, start, end);
	if (!disassembler_open(&d))
		return &error_no_memory;
	for (u32 i = 0; !err && i < s.nparts; i++)
		err = sweep_part(&s, &d, s.part[i].start, s.part[i].end);
	disassembler_close(&d);
	tell_parts(&s);
	return err;
}

struct error *hit_exits_find(const char *what, struct image *img, u64 start, struct hit_exits *ret)
{
	struct error *err = hit_exits_sweep(what, img, start, ret);

	if (!err && !ways_out(ret))
		err = error_hint(error_new(ERROR_UNSUPPORTED, "-e %s: its code never returns", what),
		        "yrt probe shows its calls");
	return err;
}
