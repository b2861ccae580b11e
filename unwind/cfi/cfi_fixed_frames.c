/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for compiled code without unwind information and frame pointers, of any size, whose functions take their frame
 * with one `sub` and give it back with `add; ret`, as ahead-of-time compilers of languages with a collector make it:
 * they save no registers. Such code is known by its ends: it has one in 500 bytes; gcc's has one in 8,000, Go's none.
 *
 * One pass marks what is called, the other one adds up what each instruction does to the stack pointer. A jump takes
 * the depth forward; what nothing before jumps to has the depth of its function's body.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cfi_functions.h"
#include "code/insn.h"

#define GAP_MIN   (1u << 20)
#define GAP_MAX   (128u << 20)
#define PER_END   2048 /* bytes of code, at most */
#define ALIGNMENT 16
#define DEPTH_MAX 0xfff0
#define UNKNOWN   0
#define ENTRY     8

struct sweep {
	u64 start;
	u32 size;
	const u8 *code;
	bool *called;
	u16 *depth;                /* that a jump takes there; 0: none does */
	u32 body;                  /* the function's deepest so far */
	u32 now;                   /* at this instruction */
	u32 last;                  /* of the last row */
	bool ends;                 /* nothing falls through to this instruction */
	bool called_last, may_end; /* a nop behind a call may be the last of a function: the callee does not return */
	struct cfi_code *ret;
};

/* How far an instruction moves the stack pointer down; false: that is not known. */
static bool moves(const u8 *code, const struct insn *in, s32 *by)
{
	u32 rex = code[0] >= 0x40 && code[0] <= 0x4f;
	u8 op = code[rex];

	*by = 0;
	if (in->kind == INSN_PUSH || in->kind == INSN_PUSH_FP || (op == 0x9c && in->size == 1 + rex))
		*by = 8;
	else if (in->size == 1 + rex && !in->writes_sp && ((op >= 0x58 && op <= 0x5f) || op == 0x9d))
		*by = -8;
	else if (code[0] == 0x48 && op == 0x83 && in->size == 4 && (code[2] == 0xec || code[2] == 0xc4))
		*by = code[2] == 0xec ? (s8)code[3] : -(s8)code[3];
	else if (code[0] == 0x48 && op == 0x81 && in->size == 7 && (code[2] == 0xec || code[2] == 0xc4)) {
		memcpy(by, code + 3, sizeof(*by));
		if (*by < -DEPTH_MAX || *by > DEPTH_MAX)
			return false;
		*by = code[2] == 0xec ? *by : -*by;
	} else
		return !in->writes_sp && op != 0xc9 && op != 0x8f;
	return true;
}

static bool fixed_frames(const u8 *code, u32 size)
{
	u32 found = 0;

	for (const u8 *end = code + size, *p = code; (p = memchr(p, 0xc3, (size_t)(end - p))); p++)
		found += (p - code >= 4 && !memcmp(p - 4, "\x48\x83\xc4", 3)) ||
		         (p - code >= 7 && !memcmp(p - 7, "\x48\x81\xc4", 3));
	return found >= size / PER_END;
}

/* Where a call or jump leads to, from the start; false: elsewhere. */
static bool target(const struct sweep *s, u32 at, const struct insn *in, u32 *ret)
{
	s64 to = (s64)at + in->size + in->imm;

	*ret = (u32)to;
	return to >= 0 && to < (s64)s->size;
}

static void mark_called(struct sweep *s)
{
	u32 to;

	for (u32 at = 0; at < s->size;) {
		struct insn in = insn_decode(s->code + at, s->size - at);

		if (in.kind == INSN_CALL && target(s, at, &in, &to) && to % ALIGNMENT == 0)
			s->called[to] = true;
		at += in.kind == INSN_BAD ? 1 : in.size;
	}
}

static bool is_padding(const u8 *code, const struct insn *in)
{
	u32 at = 0;

	while (at + 2 < in->size && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	return code[0] == 0xcc || (code[in->size - 1] == 0x90 && (in->size == 1 || code[0] == 0x66)) ||
	       (in->size >= at + 3 && code[at] == 0x0f && code[at + 1] == 0x1f);
}

static bool takes_frame(const u8 *code, const struct insn *in)
{
	return code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) && in->size >= 4 && code[2] == 0xec;
}

/* Does a function begin at an instruction? */
static bool begins(const struct sweep *s, u32 at, const struct insn *in, bool padded)
{
	if ((s->start + at) % ALIGNMENT || !(s->ends || s->may_end))
		return false;
	return s->called[at] || padded || (!s->depth[at] && takes_frame(s->code + at, in));
}

static struct error *add_row(struct sweep *s, u32 at)
{
	struct cfi_rule rule = cfi_plain_rule(CFI_REG);
	struct cfi_code *c = s->ret;
	struct error *err = NULL;

	if (s->last == UNKNOWN) {
		err = cfi_reserve(&c->runs, c->nruns, &c->runs_room, sizeof(*c->runs));
		if (err)
			return err;
		c->runs[c->nruns++] =
		        (struct cfi_function){.start = s->start + at, .code_size = c->nrows, .cie = CFI_CIE_CODE};
	}
	rule.cfa_off = (s32)s->now;
	rule.flags = CFI_FROM_CODE;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = CFI_UNDEFINED;
	err = cfi_reserve(&c->rows, c->nrows, &c->rows_room, sizeof(*c->rows));
	if (!err)
		c->rows[c->nrows++] = (struct cfi_entry){s->start + at, rule};
	return err;
}

static struct error *set_row(struct sweep *s, u32 at)
{
	struct error *err = NULL;

	if (s->now == s->last)
		return NULL;
	if (s->now != UNKNOWN)
		err = add_row(s, at);
	else
		s->ret->runs[s->ret->nruns - 1].end = s->start + at;
	s->last = s->now;
	return err;
}

/* The depth behind an instruction, and where it jumps to. */
static void step(struct sweep *s, u32 at, const struct insn *in)
{
	u32 to;
	s32 by;
	bool moved = moves(s->code + at, in, &by);

	if (s->now != UNKNOWN)
		s->now = moved && (s32)s->now + by >= ENTRY && (s32)s->now + by <= DEPTH_MAX ? (u32)((s32)s->now + by)
		                                                                             : UNKNOWN;
	s->body = MAX(s->body, s->now);
	if ((in->kind == INSN_JUMP || in->kind == INSN_JUMP_IF) && target(s, at, in, &to) && to > at && !s->depth[to])
		s->depth[to] = (u16)s->now;
	s->may_end = s->called_last || in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;
	s->called_last = in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;
	s->ends = in->kind == INSN_RETURN || in->kind == INSN_JUMP || in->kind == INSN_JUMP_INDIRECT ||
	          in->kind == INSN_TRAP;
}

static struct error *add_rows(struct sweep *s, u64 entry)
{
	struct error *err = NULL;
	bool padded = true;

	s->ends = true;
	for (u32 at = 0; !err && at < s->size;) {
		struct insn in = insn_decode(s->code + at, s->size - at);

		if (in.kind != INSN_BAD && (s->ends || padded) && is_padding(s->code + at, &in)) {
			padded |= s->code[at] == 0xcc; /* nops also align loops */
			s->ends = true;
			at += in.size;
			continue;
		}
		if (s->start + at == entry)
			s->now = s->body = UNKNOWN;
		else if (begins(s, at, &in, padded))
			s->now = s->body = ENTRY;
		else if (s->ends)
			s->now = s->depth[at] ? s->depth[at] : s->body;
		else if (s->now == UNKNOWN)
			s->now = s->depth[at];
		if (in.kind == INSN_BAD)
			s->now = s->body = UNKNOWN;
		err = set_row(s, at);
		step(s, at, &in);
		padded = s->code[at] == 0xcc;
		at += in.kind == INSN_BAD ? 1 : in.size;
	}
	s->now = UNKNOWN;
	return err ? err : set_row(s, s->size);
}

struct search {
	struct image *img;
	struct cfi_code *ret;
};

static struct error *search_gap(void *ctx, u64 start, u64 end)
{
	struct search *search = ctx;
	struct sweep s = {.start = start, .size = (u32)(end - start), .ret = search->ret};
	struct error *err = NULL;
	u8 *code;

	if (end - start < GAP_MIN || end - start > GAP_MAX)
		return NULL;
	s.code = code = malloc(s.size);
	s.called = calloc(s.size, sizeof(*s.called));
	s.depth = calloc(s.size, sizeof(*s.depth));
	if (!code || !s.called || !s.depth) {
		err = &error_no_memory;
	} else if (image_read(search->img, code, s.size, start) && fixed_frames(code, s.size)) {
		mark_called(&s);
		err = add_rows(&s, search->img->entry);
	}
	free(code);
	free(s.called);
	free(s.depth);
	return err;
}

struct error *cfi_fixed_frames_find(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	struct search s = {img, ret};
	u64 at, size;

	if (img->machine != EM_X86_64 || !image_section_range(img, ".text", &at, &size) || at + size < at)
		return NULL;
	return cfi_each_gap(p, at, at + size, search_gap, &s);
}
