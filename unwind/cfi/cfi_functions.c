/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_functions.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cleanup.h"

#define ENTRY_SIZE 64 /* how much of the code at the entry point is taken for its own */

/* By start; of those at one address the first in the file first. */
static int compare_functions(const void *a, const void *b)
{
	const struct cfi_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

void cfi_sort_functions(struct cfi_parsed *p)
{
	struct cfi_function *fn = p->functions;
	size_t n = p->nfunctions;

	for (size_t i = 1; i < n; i++) {
		if (compare_functions(&fn[i - 1], &fn[i]) > 0) {
			qsort(fn, n, sizeof(*fn), compare_functions);
			return;
		}
	}
}

bool cfi_is_synthetic(const struct cfi_function *fn)
{
	return fn->cie >= CFI_CIE_PROVIDED;
}

static bool is_debug(const struct cfi_parsed *p, const struct cfi_function *fn)
{
	return !cfi_is_synthetic(fn) && p->cies[fn->cie].source->debug;
}

void cfi_drop_known(struct cfi_parsed *p)
{
	struct cfi_function *fn = p->functions;
	size_t kept = 0;
	u64 before = 0, after;

	for (size_t i = 0, next = 0; i < p->nfunctions; i++) {
		if (!is_debug(p, &fn[i])) {
			before = MAX(before, fn[i].end);
			fn[kept++] = fn[i];
			continue;
		}
		for (next = MAX(next, i + 1); next < p->nfunctions && is_debug(p, &fn[next]);)
			next++;
		after = next < p->nfunctions ? fn[next].start : UINT64_MAX;
		if (fn[i].start >= before && fn[i].end <= after)
			fn[kept++] = fn[i];
	}
	p->nfunctions = kept;
}

/* Adds a function that the file does not describe, as far as no FDE covers its beginning. */
static struct error *add_function(struct cfi_parsed *p, struct cfi_function fn)
{
	size_t at;

	for (at = 0; at < p->nfunctions && p->functions[at].start <= fn.start; at++)
		if (p->functions[at].end > fn.start)
			return NULL;
	if (at < p->nfunctions)
		fn.end = MIN(fn.end, p->functions[at].start);
	if (fn.end <= fn.start)
		return NULL;
	if (p->nfunctions == p->functions_room) {
		struct cfi_function *grown = reallocarray(p->functions, p->nfunctions + 1, sizeof(*grown));

		if (!grown)
			return &error_no_memory;
		p->functions = grown;
		p->functions_room++;
	}
	memmove(p->functions + at + 1, p->functions + at, (p->nfunctions - at) * sizeof(*p->functions));
	p->functions[at] = fn;
	p->nfunctions++;
	return NULL;
}

struct error *cfi_add_entry(const struct image *img, struct cfi_parsed *p)
{
	struct cfi_function root = {.start = img->entry, .end = 0, .cie = CFI_CIE_ROOT};

	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (seg->flags & PF_X && root.start >= seg->vaddr && root.start - seg->vaddr < seg->filesz)
			root.end = MIN(root.start + ENTRY_SIZE, seg->vaddr + seg->filesz);
	}
	return add_function(p, root);
}

struct error *cfi_add_stubs(struct image *img, struct cfi_parsed *p)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
	struct error *err = NULL;
	u64 addr, size;

	for (size_t i = 0; !err && i < sizeof(names) / sizeof(*names); i++)
		if (image_section_range(img, names[i], &addr, &size))
			err = add_function(
			        p, (struct cfi_function){.start = addr, .end = addr + size, .cie = CFI_CIE_STUB});
	return err;
}

/* Drops the functions that share code with a provider's. Both are sorted. */
static void drop_provided(struct cfi_parsed *p, const struct cfi_function *provided, u32 n)
{
	size_t kept = 0;
	u32 at = 0;

	for (size_t i = 0; i < p->nfunctions; i++) {
		while (at < n && provided[at].end <= p->functions[i].start)
			at++;
		if (at == n || provided[at].start >= p->functions[i].end)
			p->functions[kept++] = p->functions[i];
	}
	p->nfunctions = kept;
}

/* Both are sorted, and share no code. */
static struct error *merge_provided(struct cfi_parsed *p, const struct cfi_function *provided, u32 n)
{
	struct cfi_function *all = calloc(p->nfunctions + n + 1, sizeof(*all));
	size_t i = 0, k = 0;

	if (!all)
		return &error_no_memory;
	while (i < p->nfunctions || k < n)
		if (k == n || (i < p->nfunctions && p->functions[i].start < provided[k].start)) {
			all[i + k] = p->functions[i];
			i++;
		} else {
			all[i + k] = provided[k];
			k++;
		}
	free(p->functions);
	p->functions = all;
	p->nfunctions += n;
	p->functions_room = p->nfunctions + 1;
	return NULL;
}

struct error *cfi_add_provided(
        const struct image *img, struct cfi_parsed *p, const struct cfi_provider *provider, void *functions, u32 n)
{
	cleanup(free) struct cfi_function *provided = calloc(n + 1, sizeof(*provided));
	u64 before = 0;
	u32 kept = 0;

	for (u32 i = 0; provided && i < n; i++) {
		struct cfi_function *fn = &provided[kept];

		*fn = (struct cfi_function){.code_size = i, .cie = CFI_CIE_PROVIDED};
		if (!provider->extent(functions, i, &fn->start, &fn->end) || fn->start < before ||
		        fn->start >= fn->end || !image_has_code(img, fn->start, fn->end))
			continue;
		before = fn->end;
		kept++;
	}
	if (!provided)
		return &error_no_memory;
	drop_provided(p, provided, kept);
	return merge_provided(p, provided, kept);
}

struct error *cfi_each_gap(
        const struct cfi_parsed *p, u64 at, u64 end, struct error *(*gap)(void *ctx, u64 start, u64 end), void *ctx)
{
	struct error *err = NULL;

	for (size_t i = 0; !err && i <= p->nfunctions && at < end; i++) {
		u64 next = i < p->nfunctions ? MIN(p->functions[i].start, end) : end;

		if (next > at)
			err = gap(ctx, at, next);
		if (i < p->nfunctions)
			at = MAX(at, p->functions[i].end);
	}
	return err;
}
