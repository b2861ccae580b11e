/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_exits.h"

#include <capstone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cleanup.h"
#include "unwind/symbols/symbols.h"

#define CODE_MAX (1u << 20)

struct sweep {
	const char *what;
	struct image *img;
	char name[256];
	u64 start;
	struct {
		u64 start, end;
	} part[2]; /* the function, and its cold part */
	u32 nparts;
	bool grows; /* the last call or jump was a call of what makes the stack larger */
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

/* Is it in the function's cold part? That is swept, too. */
static bool is_cold(struct sweep *s, u64 addr)
{
	size_t len = strlen(s->name);
	struct symbol sym;

	if (!symbols_find(s->img, addr, &sym) || strncmp(sym.name, s->name, len) != 0 ||
	        strncmp(sym.name + len, ".cold", 5) != 0 || s->nparts == 2)
		return false;
	s->part[s->nparts].start = sym.start;
	s->part[s->nparts++].end = sym.end;
	return true;
}

static struct error *take(struct sweep *s, u64 addr)
{
	if (s->exits->n == HIT_EXITS_MAX)
		return refuse(s, addr, "more than 256 returns");
	s->exits->addr[s->exits->n++] = addr;
	return NULL;
}

static struct error *take_jump(struct sweep *s, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (insn->detail->x86.op_count != 1 || op->type != X86_OP_IMM)
		return refuse(s, insn->address, "a jump through a register or a table");
	if ((u64)op->imm == s->start && !s->grows)
		return refuse(s, insn->address, "a jump to its own start");
	if ((u64)op->imm == s->start)
		s->exits->again = insn->address;
	if (is_inside(s, (u64)op->imm) || is_cold(s, (u64)op->imm))
		return NULL;
	return insn->id == X86_INS_JMP ? take(s, insn->address)
	                               : refuse(s, insn->address, "a conditional jump out of it");
}

static bool in_group(const cs_insn *insn, u8 group)
{
	for (u8 i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == group)
			return true;
	return false;
}

/*
 * Functions that look for room on a stack that can grow begin again behind that: runtime.morestack_noctxt(), and
 * __morestack() of libgcc.
 */
static bool is_growing(const struct sweep *s, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];
	struct symbol sym;

	return insn->id == X86_INS_CALL && op->type == X86_OP_IMM && symbols_find(s->img, (u64)op->imm, &sym) &&
	       (!strncmp(sym.name, "runtime.morestack", 17) || !strcmp(sym.name, "__morestack"));
}

static struct error *sweep_part(struct sweep *s, csh cs, cs_insn *insn, u64 start, u64 end)
{
	cleanup(free) u8 *bytes = end > start && end - start <= CODE_MAX ? malloc(end - start) : NULL;
	size_t left = end - start;
	const u8 *at = bytes;
	struct error *err = NULL;
	u64 addr = start;

	if (!bytes || !image_read(s->img, bytes, left, start))
		return refuse(s, start, "unreadable code");
	while (!err && left) {
		if (!cs_disasm_iter(cs, &at, &left, &addr, insn))
			return refuse(s, addr, "an unknown instruction");
		if (in_group(insn, CS_GRP_RET) || in_group(insn, CS_GRP_IRET))
			err = take(s, insn->address);
		else if (in_group(insn, CS_GRP_JUMP))
			err = take_jump(s, insn);
		if (in_group(insn, CS_GRP_JUMP) || in_group(insn, CS_GRP_CALL))
			s->grows = is_growing(s, insn); /* arguments are loaded again in between */
	}
	return err;
}

struct error *hit_exits_find(const char *what, struct image *img, u64 start, struct hit_exits *ret)
{
	struct sweep s = {.what = what, .img = img, .start = start, .nparts = 1, .exits = ret};
	struct error *err = NULL;
	struct symbol sym;
	cs_insn *insn;
	csh cs;

	ret->n = 0;
	ret->again = 0;
	if (!symbols_find(img, start, &sym) || sym.start != start || sym.unsized)
		return refuse(&s, start, "no symbol with its size");
	snprintf(s.name, sizeof(s.name), "%s", sym.name);
	s.part[0].start = sym.start;
	s.part[0].end = sym.end;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &cs))
		return &error_no_memory;
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(cs);
	for (u32 i = 0; insn && !err && i < s.nparts; i++)
		err = sweep_part(&s, cs, insn, s.part[i].start, s.part[i].end);
	if (insn)
		cs_free(insn, 1);
	cs_close(&cs);
	if (!err && !ret->n)
		err = refuse(&s, start, "none");
	return err;
}
