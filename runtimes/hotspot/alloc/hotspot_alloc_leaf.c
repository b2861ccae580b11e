/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_alloc_leaf.h"

#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "runtimes/hotspot/names/hotspot_scopes.h"

#define BACK       4096 /* bytes that the initialisation may lie behind the new top */
#define CMP_BACK   64   /* and the test before it */
#define TEST_INSNS 8
#define SLOW_BYTES 512 /* of the slow path up to its call */
#define SLOW_INSNS 64
#define JUMPS      4
#define CALL_BYTES 5 /* opcode 0xe8, displacement */

struct search {
	struct memory *m;
	const struct hotspot_nmethod *nm;
	const struct hotspot_tables *tables;
	csh handle;
	cs_insn *insn;
};

/*
 * Is there "op [r15 + at], reg" or "op reg, [r15 + at]" of 64 bits at these bytes? REX.WB or REX.WRB, opcode, ModRM
 * with r15 as base and a displacement of one or four bytes.
 */
static bool is_access(const u8 *b, size_t left, u8 opcode, u32 at)
{
	u32 far;

	if (left < 4 || (b[0] != 0x49 && b[0] != 0x4d) || b[1] != opcode || (b[2] & 7) != 7)
		return false;
	if (b[2] >> 6 == 1)
		return b[3] == at;
	if (b[2] >> 6 != 2 || left < 7)
		return false;
	memcpy(&far, b + 3, 4);
	return far == at;
}

/* The last of them that begins before end and not before start. */
static bool last_access(const u8 *b, size_t start, size_t end, u8 opcode, u32 at, size_t *ret)
{
	for (size_t i = end; i-- > start;)
		if (is_access(b + i, end - i, opcode, at)) {
			*ret = i;
			return true;
		}
	return false;
}

static bool is_inside(const struct search *s, u64 addr)
{
	return addr >= s->nm->code && addr < s->nm->code_end;
}

/* The target of the first conditional jump for "above" (or equal) from here on. */
static bool find_jump(struct search *s, const u8 *code, size_t size, u64 addr, u64 *ret)
{
	for (u32 i = 0; i < TEST_INSNS && cs_disasm_iter(s->handle, &code, &size, &addr, s->insn); i++)
		if (s->insn->id == X86_INS_JA || s->insn->id == X86_INS_JAE) {
			*ret = (u64)s->insn->detail->x86.operands[0].imm;
			return is_inside(s, *ret);
		}
	return false;
}

/* The return address of the first call from here on; jumps are followed. */
static bool find_call(struct search *s, u64 addr, u64 *ret)
{
	u8 bytes[SLOW_BYTES];

	for (u32 jumps = 0; jumps < JUMPS && is_inside(s, addr); jumps++) {
		size_t size = s->nm->code_end - addr < sizeof(bytes) ? s->nm->code_end - addr : sizeof(bytes);
		const u8 *code = bytes;
		u64 target = 0;

		if (!memory_read(s->m, bytes, size, addr))
			return false;
		for (u32 i = 0; i < SLOW_INSNS && !target; i++) {
			if (!cs_disasm_iter(s->handle, &code, &size, &addr, s->insn))
				return false;
			if (s->insn->id == X86_INS_CALL) {
				*ret = addr;
				return true;
			}
			if (s->insn->id == X86_INS_JMP) {
				if (s->insn->detail->x86.operands[0].type != X86_OP_IMM)
					return false;
				target = (u64)s->insn->detail->x86.operands[0].imm;
			}
		}
		addr = target;
	}
	return false;
}

/* Does a call that has a PcDesc, other than the one that returns to slow, lie in this code? */
static bool has_call(const struct search *s, const u8 *code, size_t size, u64 addr, u64 slow)
{
	const struct hotspot_tables *t = s->tables;
	u64 offset = addr - s->nm->code;
	const struct hotspot_pc *before, *pc;

	hotspot_pcs_around(t, (u32)offset + CALL_BYTES, &before, &pc);
	for (; pc && pc < t->pcs + t->npcs && (u64)pc->pc < offset + size; pc++)
		if (code[(u64)pc->pc - offset - CALL_BYTES] == 0xe8 && s->nm->code + (u64)pc->pc != slow)
			return true;
	return false;
}

static bool find_slow(struct search *s, u64 pc, u32 top, u32 end, u64 *ret)
{
	u64 start = pc - s->nm->code > BACK ? pc - BACK : s->nm->code, slow;
	size_t size = pc - start, store, test;
	u8 bytes[BACK];

	return memory_read(s->m, bytes, size, start) && last_access(bytes, 0, size, 0x89, top, &store) &&
	       last_access(bytes, store > CMP_BACK ? store - CMP_BACK : 0, store, 0x3b, end, &test) &&
	       find_jump(s, bytes + test, store - test, start + test, &slow) && find_call(s, slow, ret) &&
	       !has_call(s, bytes + store, size - store, start + store, *ret);
}

/* Has this place a PcDesc? */
static bool is_told(const struct hotspot_tables *t, u64 offset)
{
	const struct hotspot_pc *before, *after;

	hotspot_pcs_around(t, (u32)offset, &before, &after);
	return after && (u64)after->pc == offset;
}

static bool disassemble(struct memory *m, const struct hotspot_nmethod *nm, const struct hotspot_tables *t, u64 pc,
        u32 top, u32 end, u64 *ret)
{
	struct search s = {.m = m, .nm = nm, .tables = t};
	bool found;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &s.handle) != CS_ERR_OK)
		return false;
	cs_option(s.handle, CS_OPT_DETAIL, CS_OPT_ON);
	s.insn = cs_malloc(s.handle);
	found = s.insn && find_slow(&s, pc, top, end, ret);
	if (s.insn)
		cs_free(s.insn, 1);
	cs_close(&s.handle);
	return found;
}

bool hotspot_alloc_leaf(const struct hotspot_layout *l, const struct hotspot_code *c, struct memory *m, u32 top,
        u32 end, struct frame *f)
{
	u64 nmethod = frame_addr(f), pc, call;
	u32 compile_id = hotspot_cookie(f);
	struct hotspot_nmethod nm;
	cleanup(free) struct hotspot_tables *t = NULL;

	if (!hotspot_nmethod_read(c, m, nmethod, compile_id, &nm))
		return false;
	pc = nm.code + hotspot_pc_offset(f);
	t = hotspot_tables_read(l, c, m, nmethod, compile_id, false);
	if (!t || pc <= nm.code || pc > nm.code_end || (frame_flags(f) & FRAME_RETADDR && is_told(t, pc - nm.code)))
		return false;
	if (!disassemble(m, &nm, t, pc, top, end, &call) || !is_told(t, call - nm.code)) {
		f->where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, frame_flags(f) | FRAME_APPROX, nmethod);
		return false;
	}
	f->where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, FRAME_RETADDR, nmethod);
	f->detail = hotspot_nmethod(compile_id, call - nm.code);
	return true;
}
