/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lost walk can resume: most of the loop has one rule, which holds wherever its frame is set up. */
#include <string.h>

#include "cfi/cfi.h"
#include "python_image.h"

#define STRIDE    16
#define MOSTLY(n) ((n) / 4 * 3) /* of the loop */

static bool is_torn(const struct python_eval *eval, u64 addr)
{
	for (u32 i = 0; i < eval->ntorn; i++)
		if (addr >= eval->torn[i].start && addr < eval->torn[i].end)
			return true;
	return false;
}

static bool is_plain(const struct cfi_rule *rule)
{
	return rule->kind == CFI_REG && (rule->cfa_reg == REG_SP || rule->cfa_reg == REG_FP) && rule->cfa_off > 0 &&
	       rule->ra_reg == CFI_NO_REG;
}

/* How many places of the loop have this rule. */
static u32 count(struct image *img, const struct python_range *loop, const struct cfi_rule *rule)
{
	struct cfi_rule other;
	u32 n = 0;

	for (u64 at = loop->start; at < loop->end; at += STRIDE)
		n += cfi_find(img->cfi, at, &other) && !memcmp(&other, rule, sizeof(other));
	return n;
}

void python_resume_find(struct image *img, const struct python_eval *eval, struct python_vm *vm)
{
	const struct python_range *loop = &eval->ranges[0];
	u64 from = eval->link_end > loop->start ? eval->link_end : loop->start;
	struct cfi_rule rule;

	if (!img->cfi || !eval->n || !eval->dispatches)
		return;
	for (u64 at = from + (loop->end - from) / 2; at < loop->end; at += STRIDE) {
		if (is_torn(eval, at) || !cfi_find(img->cfi, at, &rule) || !is_plain(&rule))
			continue;
		if (count(img, loop, &rule) < MOSTLY((loop->end - loop->start) / STRIDE))
			return;
		vm->resume_pc = at + ARCH_CALL_BACK;
		vm->resume_reg = rule.cfa_reg;
		vm->resume_off = (u32)rule.cfa_off;
		return;
	}
}
