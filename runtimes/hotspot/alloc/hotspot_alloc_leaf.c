/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_alloc_leaf.h"

#include <stdlib.h>
#include <string.h>

#include "code/insn.h"
#include "cleanup.h"
#include "runtimes/hotspot/names/hotspot_scopes.h"

#define BACK       4096 /* bytes that the initialisation may lie behind the new top */
#define CMP_BACK   64   /* and the test before it */
#define TEST_INSNS 8
#define SLOW_BYTES 512 /* of the slow path up to its call */
#define SLOW_INSNS 64
#define JUMPS      4
#define CALL_BYTES 5 /* opcode 0xe8, displacement */
#define CODE_MOST  (256u << 10)
#define STEPS_MOST 1024 /* on the ways that lead to the place */
#define NONE       UINT32_MAX

/* At each byte of a method's code: the instruction that begins there, and who goes there. */
struct step {
	u32 before;  /* the instruction in front of it; NONE: none */
	u32 jump;    /* the last jump to here; NONE: none */
	u32 sibling; /* of a jump: the one before that to the same place */
	u8 size;     /* 0: no instruction begins here */
	bool ends;   /* never goes on to the next one */
	bool seen;
};

struct search {
	const struct hotspot_code *c;
	struct memory *m;
	const struct hotspot_nmethod *nm;
	const struct hotspot_tables *tables;
	u64 trap; /* where uncommon traps lead; 0: not known yet */
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

/* ja, jae */
static bool is_above(const u8 *b)
{
	return b[0] == 0x77 || b[0] == 0x73 || (b[0] == 0x0f && (b[1] == 0x87 || b[1] == 0x83));
}

/* The target of the first conditional jump for "above" (or equal) from here on. */
static bool find_jump(struct search *s, const u8 *code, size_t size, u64 addr, u64 *ret)
{
	for (u32 i = 0; i < TEST_INSNS; i++) {
		struct insn in = insn_decode(code, size);

		if (in.kind == INSN_BAD)
			return false;
		addr += in.size;
		if (in.kind == INSN_JUMP_IF && is_above(code)) {
			*ret = addr + (u64)in.imm;
			return is_inside(s, *ret);
		}
		code += in.size;
		size -= in.size;
	}
	return false;
}

/* The return address of the first call from here on; jumps are followed. */
static bool find_call(struct search *s, u64 addr, u64 *ret)
{
	u8 bytes[SLOW_BYTES];

	for (u32 jumps = 0; jumps < JUMPS && is_inside(s, addr); jumps++) {
		size_t size = s->nm->code_end - addr < sizeof(bytes) ? s->nm->code_end - addr : sizeof(bytes), at = 0;
		struct insn in = {.kind = INSN_OTHER};

		if (!memory_read(s->m, bytes, size, addr))
			return false;
		for (u32 i = 0; i < SLOW_INSNS && in.kind != INSN_JUMP; i++) {
			in = insn_decode(bytes + at, size - at);
			at += in.size;
			if (in.kind == INSN_CALL || in.kind == INSN_CALL_INDIRECT) {
				*ret = addr + at;
				return true;
			}
			if (in.kind == INSN_BAD || in.kind == INSN_JUMP_INDIRECT)
				return false;
		}
		if (in.kind != INSN_JUMP)
			return false;
		addr += at + (u64)in.imm;
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

static bool ends(const struct insn *in)
{
	return in->kind == INSN_JUMP || in->kind == INSN_JUMP_INDIRECT || in->kind == INSN_RETURN ||
	       in->kind == INSN_TRAP;
}

/* Does a call lead to the blob that deoptimizes? Then it does not return. */
static bool is_trap(struct search *s, const u8 *code, u32 call)
{
	struct hotspot_blob blob;
	u64 target;
	s32 far;

	memcpy(&far, code + call + 1, sizeof(far));
	target = s->nm->code + call + CALL_BYTES + (u64)(s64)far;
	if (target != s->trap && hotspot_blob_at(s->c, s->m, target, &blob) && strcasestr(blob.name, "uncommon"))
		s->trap = target;
	return target == s->trap;
}

/* The instructions of a method, those of AVX-512 too, which capstone 4 does not know. */
static struct step *read_steps(struct search *s, const u8 *code, u32 size)
{
	struct step *steps = calloc(size + 1, sizeof(*steps));
	struct insn in;

	for (u32 i = 0; steps && i <= size; i++)
		steps[i].jump = steps[i].sibling = steps[i].before = NONE;
	for (u32 i = 0, last = NONE; steps && i < size; last = i, i += in.size) {
		struct step *step = &steps[i];
		u64 target;

		in = insn_decode(code + i, size - i);
		if (in.kind == INSN_BAD)
			break;
		step->size = in.size;
		step->before = last;
		step->ends = ends(&in) || (in.kind == INSN_CALL && in.size == CALL_BYTES &&
		                                  is_told(s->tables, i + CALL_BYTES) && is_trap(s, code, i));
		target = i + in.size + (u64)in.imm;
		if ((in.kind != INSN_JUMP && in.kind != INSN_JUMP_IF) || target >= size)
			continue;
		step->sibling = steps[target].jump;
		steps[target].jump = i;
	}
	return steps;
}

struct ways { /* that lead to the place, followed back */
	struct search *s;
	const u8 *code;
	struct step *steps;
	u32 top, end;
	u32 work[STEPS_MOST], n, done;
	u64 slow;   /* the return address in the slow path of the allocation that they come from; 0: none yet */
	bool store; /* one of them comes from its new top */
};

/* False: the ways come from several places. */
static bool comes_from(struct ways *w, u64 slow)
{
	bool same = !w->slow || w->slow == slow;

	w->slow = slow;
	return same;
}

static bool slow_of_store(struct ways *w, u32 store, u64 *ret)
{
	u64 addr = w->s->nm->code, slow;
	size_t test;

	return last_access(w->code, store > CMP_BACK ? store - CMP_BACK : 0, store, 0x3b, w->end, &test) &&
	       find_jump(w->s, w->code + test, store - test, addr + test, &slow) && find_call(w->s, slow, ret);
}

static bool go_back(struct ways *w, u32 from)
{
	struct step *step = &w->steps[from];
	u64 slow;

	if (is_access(w->code + from, step->size, 0x89, w->top)) {
		w->store = true;
		return slow_of_store(w, from, &slow) && comes_from(w, slow);
	}
	if (w->code[from] == 0xe8 && is_told(w->s->tables, from + CALL_BYTES))
		return comes_from(w, w->s->nm->code + from + CALL_BYTES);
	if (step->seen)
		return true;
	step->seen = true;
	if (w->done++ == STEPS_MOST)
		return false;
	w->work[w->n++] = from;
	return true;
}

/* All ways to the place, back to a new top or a call: only if each is of one allocation, the place is. */
static bool follow_back(struct ways *w, u32 place)
{
	if (!w->steps[place].size)
		return false;
	w->steps[place].seen = true;
	w->work[w->n++] = place;
	while (w->n) {
		const struct step *step = &w->steps[w->work[--w->n]];
		bool falls = step->before != NONE && !w->steps[step->before].ends;

		if (!falls && step->jump == NONE && (step->before == NONE || w->code[step->before] != 0xe8))
			return false; /* the entry, or reached in a way that is not known; behind a trap nobody comes */
		if (falls && !go_back(w, step->before))
			return false;
		for (u32 j = step->jump; j != NONE; j = w->steps[j].sibling)
			if (!go_back(w, j))
				return false;
	}
	return w->store;
}

static bool find_back(struct search *s, u64 pc, u32 top, u32 end, u64 *ret)
{
	u64 size = s->nm->code_end - s->nm->code;
	cleanup(free) u8 *code = size <= CODE_MOST ? calloc(1, size + 16) : NULL;
	cleanup(free) struct step *steps = NULL;
	cleanup(free) struct ways *w = calloc(1, sizeof(*w));
	bool found;

	if (!code || !w || !memory_read(s->m, code, size, s->nm->code))
		return false;
	steps = read_steps(s, code, (u32)size);
	if (!steps)
		return false;
	w->s = s;
	w->code = code;
	w->steps = steps;
	w->top = top;
	w->end = end;
	found = follow_back(w, (u32)(pc - s->nm->code));
	*ret = w->slow;
	return found;
}

bool hotspot_alloc_leaf(const struct hotspot_layout *l, const struct hotspot_code *c, struct memory *m, u32 top,
        u32 end, struct frame *f)
{
	u64 nmethod = frame_addr(f), pc, call;
	u32 compile_id = hotspot_cookie(f);
	struct hotspot_nmethod nm;
	struct search s;
	cleanup(free) struct hotspot_tables *t = NULL;

	if (!hotspot_nmethod_read(c, m, nmethod, compile_id, &nm))
		return false;
	pc = nm.code + hotspot_pc_offset(f);
	t = hotspot_tables_read(l, c, m, nmethod, compile_id, false);
	if (!t || pc <= nm.code || pc > nm.code_end || (frame_flags(f) & FRAME_RETADDR && is_told(t, pc - nm.code)))
		return false;
	s = (struct search){.c = c, .m = m, .nm = &nm, .tables = t};
	if (!(find_back(&s, pc, top, end, &call) || find_slow(&s, pc, top, end, &call)) ||
	        !is_told(t, call - nm.code)) {
		f->where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, frame_flags(f) | FRAME_APPROX, nmethod);
		return false;
	}
	f->where = frame_where(FRAME_SCRIPT, RUNTIME_HOTSPOT, FRAME_RETADDR, nmethod);
	f->detail = hotspot_nmethod(compile_id, call - nm.code);
	return true;
}
