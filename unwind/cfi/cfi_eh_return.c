/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How libgcc's unwinder goes to a landing pad (uw_install_context() of unwind-dw2.c, gcc 4.5 to 15):
 *
 *	call uw_install_context_1	overwrites saved registers and return address of this frame by those of the
 *					function that catches
 *	mov N+8(%rbp), %rsi		context.ra: where that goes on
 *	mov N(%rbp), %rdi		context.cfa: its stack pointer
 *	call _Unwind_DebugHook
 *	...
 *	mov %rcx, %rsp			__builtin_eh_return(): cfi_rule.c
 *	pop %rcx; jmp *%rcx		with shadow stacks, since gcc 12; otherwise a return
 *
 * From that call on the function that catches is the caller: the context, which the frame keeps to its end, tells where
 * each register is (CFI_CONTEXT). The frame's own slots have some values of its caller and some of the other's.
 */
#include <string.h>

#include "binary/image_pages.h"
#include "cfi_internal.h"

#define REACH 192 /* bytes from the first call to the end */
#define NEAR  24  /* bytes behind it in which the context is read */
#define CALL  5
#define MOV   7

static bool is_way_out(const struct cfi_entry *row)
{
	return row->rule.cfa_reg == DWREG_RCX && row->rule.flags & CFI_SIGNAL_FRAME;
}

/* mov N(%rbp), %rsi or %rdi, with 4 bytes of N. */
static bool loads(const u8 *code, u8 reg, s32 *ret)
{
	const u8 mov[] = {0x48, 0x8b, (u8)(0x85 | reg << 3)};

	memcpy(ret, code + sizeof(mov), sizeof(*ret));
	return !memcmp(code, mov, sizeof(mov));
}

/* Where the frame has the context's cfa, seen from rbp, if these bytes behind a call read it; 0: they do not. */
static s32 context_of(const u8 *code)
{
	enum { RSI = 6, RDI = 7 };
	s32 ra = 0, cfa = 0, at;

	for (u32 i = 0; i + MOV <= NEAR; i++) {
		if (loads(code + i, RSI, &at))
			ra = at;
		if (loads(code + i, RDI, &at))
			cfa = at;
	}
	return ra && cfa && ra - cfa == 8 && cfa % 8 == 0 && cfa < 0 ? cfa : 0;
}

/* Finds the call of uw_install_context_1() before a way out: *size is how far before. Returns context_of(); 0: none. */
static s32 find_install(const u8 *code, u32 *size)
{
	s32 cfa = 0;

	for (u32 i = 0; i + CALL + NEAR <= REACH && !cfa; i++) {
		*size = REACH - i;
		if (code[i] == 0xe8)
			cfa = context_of(code + i + CALL);
	}
	return cfa;
}

static struct cfi_rule install_rule(s32 cfa)
{
	struct cfi_rule rule = cfi_plain_rule(CFI_CONTEXT);

	rule.cfa_reg = REG_FP;
	rule.cfa_off = cfa - CFI_CONTEXT_CFA;
	rule.flags = CFI_SIGNAL_FRAME;
	return rule;
}

/* From the first call on to row i, the way out; one row holds there. False: no memory. */
static bool mend_install(struct image_pages *text, struct cfi_rows *rows, size_t i)
{
	const struct cfi_entry *body = &rows->entry[i - 1], *end = &rows->entry[i];
	size_t room;
	const u8 *code = image_pages_at(text, end->addr - REACH, &room);
	u32 size;
	s32 cfa = code && room >= REACH ? find_install(code, &size) : 0;
	struct cfi_rule rule;
	u64 start;

	if (!cfa || body->rule.kind != CFI_REG || body->rule.cfa_reg != REG_FP || body->addr > end->addr - size)
		return true;
	rule = install_rule(cfa);
	start = end->addr - size + 1; /* a return address is looked up one byte back */
	if (!cfi_rows_add(rows, start, &rule))
		return false;
	memmove(rows->entry + i + 1, rows->entry + i, (rows->n - 1 - i) * sizeof(*rows->entry));
	rows->entry[i] = (struct cfi_entry){.addr = start, .rule = rule};
	return true;
}

/* What is true of the first row of a way out is true of those that follow at once. */
static void mend_way_out(struct cfi_rows *rows, size_t i)
{
	const u64 mov = 3, pop = 1, end = rows->entry[i].addr + mov + pop;

	for (size_t k = i + 1; k < rows->n && rows->entry[k].addr <= end; k++) {
		struct cfi_rule *rule = &rows->entry[k].rule;

		rule->flags |= CFI_SIGNAL_FRAME;
		for (u32 r = 0; r < ARCH_NSAVED; r++)
			rule->slot[r] = CFI_SAME;
	}
}

bool cfi_eh_return_mend(struct image_pages *text, struct cfi_rows *rows)
{
	size_t n;

	for (size_t i = 1; i < rows->n; i += 1 + rows->n - n) {
		n = rows->n;
		if (!is_way_out(&rows->entry[i]))
			continue;
		mend_way_out(rows, i);
		if (!mend_install(text, rows, i))
			return false;
	}
	return true;
}
