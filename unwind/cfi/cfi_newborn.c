/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clone() whose FDE covers its child, too: musl's assembly gets CFI from its pushes and pops, in .debug_frame, which
 * programs that are linked statically keep (tools/add-cfi.x86_64.awk, musl 1.1.7 to 1.2.5). The child pops its argument
 * from a stack that nobody called it on, so that its CFA is the stack pointer and its return address lies below that:
 * where the call of the thread's function left its own. A child is a root.
 */
#include <sys/param.h>

#include "binary/image_pages.h"
#include "cfi_code_state.h"
#include "cfi_internal.h"

#define JNE       0x75
#define JUMP_SIZE 2

/* The stack pointer is where a return address was popped from. */
static bool is_popped(const struct cfi_rule *rule)
{
	return rule->kind == CFI_REG && rule->cfa_reg == REG_SP && rule->cfa_off < 8;
}

/* The child's instructions, as offsets; false: this code makes no thread. */
static bool find_child(const u8 *code, u32 size, u32 *start, u32 *end)
{
	u32 at = 0, n = 0, behind;
	s64 target;

	while (at < size && !(n = code_newborn_size(code + at, at, size - at)))
		at++;
	if (!n)
		return false;
	behind = at + n;
	target = (s64)behind + (s8)code[behind - 1];
	if (target < behind || target > size)
		return false;
	*start = code[behind - JUMP_SIZE] == JNE ? behind : (u32)target;
	*end = code[behind - JUMP_SIZE] == JNE ? (u32)target : size;
	return true;
}

bool cfi_newborn_mend(struct image_pages *text, const struct cfi_function *fn, struct cfi_rows *rows)
{
	const struct cfi_rule plain = cfi_plain_rule(CFI_REG);
	size_t room, popped = 0;
	u32 start, end;
	const u8 *code;

	while (popped < rows->n && !is_popped(&rows->entry[popped].rule))
		popped++;
	if (popped == rows->n)
		return true;
	code = image_pages_at(text, fn->start, &room);
	if (!code || !find_child(code, (u32)MIN(room, fn->end - fn->start), &start, &end))
		return true;
	for (size_t i = popped; i < rows->n && rows->entry[i].addr < fn->start + end; i++)
		if (rows->entry[i].addr >= fn->start + start)
			rows->entry[i].rule = cfi_bare_rule(CFI_ROOT);
	return rows->entry[rows->n - 1].addr >= fn->start + end || fn->start + end >= fn->end ||
	       cfi_rows_add(rows, fn->start + end, &plain);
}
