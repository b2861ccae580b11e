/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dart's compiler writes one FDE for all of its code: CFA = rbp + 16. A sample at the beginning or the end of a
 * function, or in one without a frame, lacked the caller by that.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cfi_code_flow.h"
#include "cfi_internal.h"
#include "cleanup.h"

#define PART_SIZE (4u << 20)

static const u8 push_frame[] = {0x55, 0x48, 0x89, 0xe5}; /* push %rbp; mov %rsp, %rbp */

const u8 *code_find_frame(const u8 *code, const u8 *end)
{
	return memmem(code, (size_t)(end - code), push_frame, sizeof(push_frame));
}

static bool is_frame(const struct cfi_rule *rule)
{
	return rule->kind == CFI_REG && rule->cfa_reg == REG_FP && rule->cfa_off == 16 && !rule->flags &&
	       rule->ra_reg == CFI_NO_REG && rule->slot[ARCH_SLOT_RA] == cfi_slot(-8, 0) &&
	       rule->slot[arch_saved_slot(REG_FP)] == cfi_slot(-16, 0);
}

/* Does more than one function begin in it? */
static bool is_shared(struct image *img, const struct cfi_function *fn)
{
	u64 size = MIN(fn->end - fn->start, PART_SIZE);
	cleanup(free) u8 *code = malloc(size);
	const u8 *first, *end = code + size;

	if (!code || !image_read(img, code, size, fn->start))
		return false;
	first = code_find_frame(code, end);
	return first && code_find_frame(first + 1, end);
}

bool cfi_begins_plainly(const struct cfi_cie *cie)
{
	return cie->initial.cfa.kind == CFI_REG && cie->initial.cfa.reg == REG_SP;
}

/* ret: the only rule of such an FDE. */
static bool describes_bodies(
        struct image *img, const struct cfi_parsed *p, const struct cfi_function *fn, struct cfi_rule *ret)
{
	struct cfi_rows rows = {0};
	bool found = fn->cie < p->ncies && !cfi_begins_plainly(&p->cies[fn->cie]) && fn->end > fn->start &&
	             cfi_run_function(&p->cies[fn->cie], fn, &rows) == CFI_RUN_OK && rows.n == 1 &&
	             is_frame(&rows.entry->rule) && is_shared(img, fn);

	if (found)
		*ret = rows.entry->rule;
	free(rows.entry);
	return found;
}

/* All of [start, end) has the rule. */
static struct error *add_body(u64 start, u64 end, const struct cfi_rule *body, struct cfi_code *c)
{
	struct error *err = cfi_reserve(&c->rows, c->nrows, &c->rows_room, sizeof(*c->rows));

	if (!err)
		err = cfi_reserve(&c->runs, c->nruns, &c->runs_room, sizeof(*c->runs));
	if (err)
		return err;
	c->runs[c->nruns++] =
	        (struct cfi_function){.start = start, .end = end, .code_size = c->nrows, .cie = CFI_CIE_BODY};
	c->rows[c->nrows++] = (struct cfi_entry){start, *body};
	return NULL;
}

static struct error *follow(struct image *img, const struct cfi_function *fn, const struct cfi_rule *body,
        const struct cfi_parsed *p, const struct code_starts *starts, struct cfi_code *ret)
{
	struct error *err = NULL;

	for (u64 at = fn->start, size; !err && at < fn->end; at += size) {
		u32 before = ret->nruns;

		size = MIN(fn->end - at, PART_SIZE);
		err = code_stretch(img, at, size, true, body, p, starts, ret);
		if (!err && ret->nruns == before)
			err = add_body(at, at + size, body, ret);
	}
	return err;
}

struct error *cfi_code_find_bodies(struct image *img, struct cfi_parsed *p, struct cfi_code *ret)
{
	struct code_starts starts = {0};
	struct error *err = NULL;
	struct cfi_function fn;
	struct cfi_rule body;

	for (size_t i = 0; !err && i < p->nfunctions;) {
		fn = p->functions[i];
		if (!describes_bodies(img, p, &fn, &body)) {
			i++;
			continue;
		}
		memmove(p->functions + i, p->functions + i + 1, (--p->nfunctions - i) * sizeof(fn));
		if (!starts.list)
			err = code_starts_find(&starts, img);
		if (!err)
			err = follow(img, &fn, &body, p, &starts, ret);
	}
	code_starts_free(&starts);
	return err;
}
