/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FDEs that are silent about what their code does: assembly that moves the stack pointer under an FDE of one row, CFA =
 * rsp + 8 (bn_gather5() of OpenSSL 3.0, the 4-wide sincos of libmvec of glibc 2.36). Compilers never do that.
 */
#include <string.h>
#include <sys/param.h>

#include "binary/image_pages.h"
#include "cfi_functions.h"
#include "cfi_internal.h"

#define PROLOGUE  64u
#define FILE_MAX  (32u << 20) /* bytes of code: their beginnings would be read from all over the file */
#define BODY_MAX  (1u << 20)
#define MOVE_SIZE 3u

/* Of `sub` or `and` with %rsp and a number. */
static bool is_move(const u8 *code)
{
	return code[0] == 0x48 && (code[1] == 0x81 || code[1] == 0x83) && (code[2] == 0xec || code[2] == 0xe4);
}

static bool begins_with_move(struct image_pages *text, const struct cfi_function *fn)
{
	size_t room;
	const u8 *code = image_pages_at(text, fn->start, &room), *end, *at;

	if (!code)
		return false;
	end = code + MIN(MIN(room, PROLOGUE), fn->end - fn->start);
	for (at = code; at + MOVE_SIZE <= end && !is_move(at); at++)
		;
	return at + MOVE_SIZE <= end;
}

static bool has_instructions(const struct cfi_function *fn)
{
	u32 i = 0;

	while (i < fn->code_size && !fn->code[i]) /* DW_CFA_nop */
		i++;
	return i < fn->code_size;
}

/* One row: the CFA is 8 above the stack pointer. */
static bool is_plain(const struct cfi_parsed *p, const struct cfi_function *fn)
{
	return !cfi_is_synthetic(fn) && fn->end > fn->start && fn->end - fn->start <= BODY_MAX &&
	       !has_instructions(fn) && cfi_begins_plainly(&p->cies[fn->cie]) &&
	       p->cies[fn->cie].initial.cfa.offset == 8;
}

/* Of all functions, which are sorted. */
static bool is_small(const struct cfi_parsed *p)
{
	return p->nfunctions && p->functions[p->nfunctions - 1].end - p->functions[0].start <= FILE_MAX;
}

struct error *cfi_silent_find(struct image *img, struct cfi_parsed *p, struct cfi_code *ret)
{
	struct image_pages text;
	struct error *err;
	size_t kept = 0;

	if (!is_small(p))
		return NULL;
	err = image_pages_create(&text, img, ".text");
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct cfi_function fn = p->functions[i];
		u32 runs = ret->nruns;

		if (!err && is_plain(p, &fn) && begins_with_move(&text, &fn))
			err = cfi_code_find_function(img, fn.start, fn.end, fn.start, ret);
		if (ret->nruns == runs)
			p->functions[kept++] = fn;
		for (; runs < ret->nruns; runs++)
			ret->runs[runs].cie = CFI_CIE_BODY;
	}
	p->nfunctions = kept;
	image_pages_free(&text);
	return err;
}
