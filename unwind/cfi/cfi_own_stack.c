/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for Haskell's code, as GHC generates it, which has no unwind information. Its functions have a stack of their
 * own in rbp, and go on to each other by jumps. The stack pointer stays where StgRun(), which C called, has left it:
 * below 16 KiB for spilled values, the registers of its caller and the return address (rts/StgCRun.c, GHC 7 to 9.12:
 * RESERVED_C_STACK_BYTES, STG_RUN_STACK_FRAME_SIZE). Only calls of C move it, by a multiple of 8 that the instruction
 * behind the call takes back (compiler/GHC/CmmToAsm/X86/CodeGen.hs, genCCall64).
 *
 * Such code is known by its jumps: to what is on top of its stack, and to the heap's and the stack's overflow, which
 * stand before the structure that r13 points to (rts/include/stg/MachRegs.h, Regs.h: stgGCEnter1, stgGCFun).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "binary/image_pages.h"
#include "cfi_functions.h"
#include "cleanup.h"

#define SAVED     ((s32)(ARCH_NSAVED + 1) * 8)
#define FRAME     (16384 + SAVED)
#define GAP_MIN   256
#define BLOCK     (1u << 20)
#define PER_JUMP  4096 /* a block has a jump of this kind in as many bytes, or more: C has none in as many millions */
#define ADD_SIZE  4
#define CALL_MAX  7
#define CALL_NEAR 64 /* between the instruction that moves the stack pointer and the call */

static const u8 jump[] = {0xff, 0x65, 0x00}, overflow[] = {0x41, 0xff, 0x65}, sub_8[] = {0x48, 0x83, 0xec, 8},
                add[] = {0x48, 0x83, 0xc4};

struct search {
	struct image *img;
	struct cfi_code *ret;
};

static u32 count(const u8 *code, size_t size, const u8 *what, size_t n)
{
	const u8 *end = code + size;
	u32 found = 0;

	for (; (code = memmem(code, (size_t)(end - code), what, n)); code += n)
		found++;
	return found;
}

static bool is_such_code(const u8 *code, size_t size)
{
	u64 jumps = count(code, size, jump, sizeof(jump)) + count(code, size, overflow, sizeof(overflow));

	return jumps > 1 && jumps * PER_JUMP >= size;
}

static struct error *add_row(struct cfi_code *c, u64 addr, s32 depth)
{
	struct cfi_rule rule = cfi_plain_rule(CFI_REG);
	struct error *err = cfi_reserve(&c->rows, c->nrows, &c->rows_room, sizeof(*c->rows));

	rule.cfa_off = FRAME + depth;
	rule.flags = CFI_FROM_CODE | CFI_OWN_STACK;
	for (u32 i = 0; i < ARCH_NSAVED; i++)
		rule.slot[i] = cfi_slot(((s32)i - ARCH_NSAVED - 1) * 8, 0);
	if (!err)
		c->rows[c->nrows++] = (struct cfi_entry){addr, rule};
	return err;
}

/* The size of the call that ends at code + at; 0: none does. */
static u32 call_before(const u8 *code, u32 at)
{
	if (at >= 5 && code[at - 5] == 0xe8)
		return 5;
	for (u32 size = 2; size <= MIN(at, CALL_MAX); size++)
		if (code[at - size] == 0xff && (code[at - size + 1] & 0x38) == 0x10)
			return size;
	return 0;
}

/* From where on the stack pointer is as it is at the call. */
static u32 moved_from(const u8 *code, u32 start, u32 call, u32 depth)
{
	u32 first = MAX(start + CALL_NEAR, call) - CALL_NEAR;

	for (u32 at = call; depth == 8 && at >= first + sizeof(sub_8); at--)
		if (!memcmp(code + at - sizeof(sub_8), sub_8, sizeof(sub_8)))
			return at;
	return call;
}

static struct error *add_rows(struct cfi_code *c, const u8 *code, u32 size, u64 addr)
{
	struct error *err = add_row(c, addr, 0);
	const u8 *p = code;
	u32 done = 0;

	for (; !err && (p = memmem(p, size - (size_t)(p - code), add, sizeof(add))); p++) {
		u32 at = (u32)(p - code), call = call_before(code, at), depth = at + 3 < size ? code[at + 3] : 0, from;

		if (!call || at - call < done || !depth || depth & 0x87)
			continue;
		from = moved_from(code, done, at - call, depth);
		err = add_row(c, addr + from, (s32)depth);
		done = at + ADD_SIZE;
		if (!err && done < size)
			err = add_row(c, addr + done, 0);
	}
	return err;
}

static struct error *search_block(struct search *s, u8 *code, u32 size, u64 addr)
{
	struct cfi_code *c = s->ret;
	struct error *err;

	if (!image_read(s->img, code, size, addr) || !is_such_code(code, size))
		return NULL;
	err = cfi_reserve(&c->runs, c->nruns, &c->runs_room, sizeof(*c->runs));
	if (err)
		return err;
	c->runs[c->nruns++] =
	        (struct cfi_function){.start = addr, .end = addr + size, .code_size = c->nrows, .cie = CFI_CIE_CODE};
	return add_rows(c, code, size, addr);
}

static struct error *search_blocks(struct search *s, u64 start, u64 end)
{
	cleanup(free) u8 *code = malloc(MIN(end - start, 2 * BLOCK));
	struct error *err = NULL;
	u64 size;

	if (!code)
		return &error_no_memory;
	for (u64 at = start; !err && at < end; at += size) {
		size = end - at < 2 * BLOCK ? end - at : BLOCK;
		err = search_block(s, code, (u32)size, at);
	}
	return err;
}

static struct error *search_gap(void *ctx, u64 start, u64 end)
{
	return end - start < GAP_MIN ? NULL : search_blocks(ctx, start, end);
}

struct error *cfi_own_stack_find(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	struct search s = {img, ret};
	u64 at, size;

	if (!image_section_range(img, ".text", &at, &size) || at + size < at)
		return NULL;
	return cfi_each_gap(p, at, at + size, search_gap, &s);
}

/* Where these bytes of a function end; 0: it has none from at on. */
static u32 behind(const u8 *code, size_t size, u32 at, const u8 *what, size_t n)
{
	const u8 *found = at < size ? memmem(code + at, size - at, what, n) : NULL;

	return found ? (u32)(found - code + (ptrdiff_t)n) : 0;
}

bool cfi_own_stack_mend(struct image_pages *text, const struct cfi_function *fn, struct cfi_rows *rows)
{
	static const u8 push_saved[] = {0x48, 0x83, 0xec, SAVED - 8}, pop_saved[] = {0x48, 0x83, 0xc4, SAVED - 8},
	                push_space[] = {0x48, 0x81, 0xec, 0, 0x40, 0, 0},
	                pop_space[] = {0x48, 0x81, 0xc4, 0, 0x40, 0, 0};
	const struct cfi_rule plain = cfi_plain_rule(CFI_REG);
	struct cfi_rule entered = plain, body, left;
	u32 first, second, third, fourth;
	const u8 *code;
	size_t room;
	u64 from;

	if (rows->n != 2 || rows->entry[1].rule.kind != CFI_REG || rows->entry[1].rule.cfa_off != FRAME)
		return true;
	body = left = rows->entry[1].rule;
	from = rows->entry[1].addr;
	code = image_pages_at(text, fn->start, &room);
	room = code ? MIN(room, fn->end - fn->start) : 0;
	first = behind(code, room, 0, push_saved, sizeof(push_saved));
	second = behind(code, room, first, push_space, sizeof(push_space));
	third = behind(code, room, second, pop_space, sizeof(pop_space));
	fourth = behind(code, room, third, pop_saved, sizeof(pop_saved));
	if (!first || !second || !third || !fourth || fn->start + second > from || fn->start + third <= from)
		return true;
	rows->n = 1;
	entered.cfa_off = SAVED;
	left.cfa_off = SAVED;
	if (!cfi_rows_add(rows, fn->start + first, &entered))
		return false;
	entered.cfa_off = FRAME;
	return cfi_rows_add(rows, fn->start + second, &entered) && cfi_rows_add(rows, from, &body) &&
	       cfi_rows_add(rows, fn->start + third, &left) && cfi_rows_add(rows, fn->start + fourth, &plain);
}
