/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>

#include "cfi_code_state.h"
#include "cfi_internal.h"
#include "cleanup.h"
#include "search.h"

#define GAP_IGNORED 32          /* bytes without an FDE that belong to the function before them */
#define GAP_MAX     (64u << 10) /* a longer stretch without CFI ends the piece */
#define ENTRY_SIZE  64          /* how much of the code at the entry point is taken for its own */

struct cfi_own {
	struct cfi cfi;
	struct cfi_blob *blob;
	bool mapped;
};

struct compiler {
	struct image *img;
	struct cfi_parsed parsed;
	struct cfi_rows rows; /* of one function */
	struct cfi_code code;
	const struct cfi_teller *teller; /* of told */
	void *told;
	struct cfi_layout *layout;
	struct cfi_fde *fdes;
	u32 nfdes;
	u64 covered; /* end of what is laid out */
};

static void free_blob(struct cfi_blob *blob, bool mapped)
{
	if (mapped)
		munmap(blob, blob->size);
	else
		free(blob);
}

struct error *cfi_from_blob(struct cfi_blob *blob, bool mapped, struct cfi **ret)
{
	const struct cfi_blob_piece *from = (const struct cfi_blob_piece *)(blob + 1);
	struct cfi_piece *pieces = calloc(blob->npieces ? blob->npieces : 1, sizeof(*pieces));
	struct cfi_own *own = calloc(1, sizeof(*own));

	if (!own || !pieces) {
		free(own);
		free(pieces);
		free_blob(blob, mapped);
		return &error_no_memory;
	}
	for (u32 i = 0; i < blob->npieces; i++)
		pieces[i] =
		        (struct cfi_piece){from[i].start, from[i].end, (u32)from[i].size, (u8 *)blob + from[i].offset};
	own->blob = blob;
	own->mapped = mapped;
	own->cfi = (struct cfi){
	        .npieces = blob->npieces, .pieces = pieces, .nfdes = blob->nfdes, .ncorrupt = blob->ncorrupt};
	own->cfi.fdes = (const struct cfi_fde *)(from + blob->npieces);
	own->cfi.private = own;
	*ret = &own->cfi;
	return NULL;
}

struct cfi_blob *cfi_blob_of(const struct cfi *cfi)
{
	return ((struct cfi_own *)cfi->private)->blob;
}

void cfi_destroy(struct cfi *cfi)
{
	struct cfi_own *own = cfi ? cfi->private : NULL;

	if (!own)
		return;
	free_blob(own->blob, own->mapped);
	free(cfi->pieces);
	free(own);
}

/* By start; of those at one address the first in the file first. */
static int compare_functions(const void *a, const void *b)
{
	const struct cfi_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

static void sort_functions(struct cfi_function *fn, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (compare_functions(&fn[i - 1], &fn[i]) > 0) {
			qsort(fn, n, sizeof(*fn), compare_functions);
			return;
		}
	}
}

static bool is_synthetic(const struct cfi_function *fn)
{
	return fn->cie >= CFI_CIE_TOLD;
}

static bool is_debug(const struct cfi_parsed *p, const struct cfi_function *fn)
{
	return !is_synthetic(fn) && p->cies[fn->cie].source->debug;
}

/* Drops the functions of .debug_frame that .eh_frame covers, even in part. */
static void drop_known(struct cfi_parsed *p)
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

/* Hand-written entry points have no FDE, but nobody called them. */
static struct error *add_entry(const struct image *img, struct cfi_parsed *p)
{
	struct cfi_function root = {.start = img->entry, .end = 0, .cie = CFI_CIE_ROOT};

	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (seg->flags & PF_X && root.start >= seg->vaddr && root.start - seg->vaddr < seg->filesz)
			root.end = MIN(root.start + ENTRY_SIZE, seg->vaddr + seg->filesz);
	}
	return add_function(p, root);
}

/* The linker describes the stubs of dynamic programs only; those of IFUNCs in static ones jump and push nothing. */
static struct error *add_stubs(struct image *img, struct cfi_parsed *p)
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

/*
 * glibc's clone() and clone3() end their FDE just before the system call, because the rest is not true of the child:
 * for the caller it is. The next FDE is that of the child, a root.
 */
static bool is_clone(struct compiler *c, u64 start)
{
	u8 code[16];

	return c->img && c->rows.n && c->rows.entry[0].rule.kind == CFI_ROOT && start - c->covered <= GAP_IGNORED &&
	       image_read(c->img, code, sizeof(code), c->covered - 8) &&
	       code_newborn_size(code + 8, 8, sizeof(code) - 8);
}

/* Says that nothing is known from what was laid out to start. A few bytes are padding. */
static struct error *lay_gap(struct compiler *c, u64 start)
{
	const struct cfi_rule none = {.kind = CFI_NONE, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};
	struct cfi_rule newborn = cfi_plain_rule(CFI_NEWBORN);

	if (c->covered && start > c->covered && is_clone(c, start))
		return cfi_layout_row(c->layout, c->covered + 2, &newborn);
	if (!c->covered || start <= c->covered + GAP_IGNORED)
		return NULL;
	if (start - c->covered > GAP_MAX)
		return cfi_layout_end(c->layout, c->covered);
	return cfi_layout_row(c->layout, c->covered, &none);
}

/*
 * No call returns to the first byte of a function. Who finds such a return address is on a stack that was built by hand
 * (makecontext() returns to __start_context, whose CFI does not say so): its outermost frame. The address is looked up
 * one byte back, in the gap. Functions that move the stack pointer are not entered that way.
 */
static struct error *lay_return_to_start(struct compiler *c, const struct cfi_function *fn, u64 start)
{
	const struct cfi_rule root = {.kind = CFI_ROOT, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};

	if (!c->covered || start <= c->covered || c->rows.n != 1 || is_synthetic(fn) || start - c->covered > GAP_MAX)
		return NULL;
	return cfi_layout_row(c->layout, start - 1, &root);
}

/* The one rule of a function that is not from the file. */
static struct cfi_rule synthetic_rule(const struct cfi_function *fn)
{
	if (fn->cie == CFI_CIE_ROOT)
		return (struct cfi_rule){.kind = CFI_ROOT, .slot_reg = CFI_NO_REG, .ra_reg = CFI_NO_REG};
	return cfi_plain_rule(CFI_REG);
}

static enum cfi_run copy_code(struct compiler *c, const struct cfi_function *fn)
{
	u32 first = fn->code_size, n = 0;

	while (first + n < c->code.nrows && c->code.rows[first + n].addr < fn->end)
		n++;
	if (n > c->rows.room) {
		struct cfi_entry *grown = reallocarray(c->rows.entry, n, sizeof(*grown));

		if (!grown)
			return CFI_RUN_NO_MEMORY;
		c->rows.entry = grown;
		c->rows.room = n;
	}
	memcpy(c->rows.entry, c->code.rows + first, n * sizeof(*c->rows.entry));
	c->rows.n = n;
	return CFI_RUN_OK;
}

static bool add_told_row(void *ctx, u64 addr, const struct cfi_rule *rule)
{
	struct cfi_rows *rows = ctx;

	if (rows->n == rows->room) {
		size_t room = rows->room * 2 + 1;
		struct cfi_entry *grown = reallocarray(rows->entry, room, sizeof(*grown));

		if (!grown)
			return false;
		rows->entry = grown;
		rows->room = room;
	}
	rows->entry[rows->n++] = (struct cfi_entry){.addr = addr, .rule = *rule};
	return true;
}

static enum cfi_run run_function(struct compiler *c, const struct cfi_function *fn)
{
	c->rows.n = 0;
	if (fn->cie == CFI_CIE_TOLD)
		return c->teller->rows(c->told, fn->code_size, add_told_row, &c->rows) ? CFI_RUN_OK : CFI_RUN_CORRUPT;
	if (fn->cie == CFI_CIE_CODE)
		return copy_code(c, fn);
	if (!is_synthetic(fn))
		return cfi_run_function(&c->parsed.cies[fn->cie], fn, &c->rows);
	c->rows.entry[c->rows.n++] = (struct cfi_entry){.addr = fn->start, .rule = synthetic_rule(fn)};
	return CFI_RUN_OK;
}

/* Where functions overlap, the one that starts first is believed. */
static struct error *lay_function(struct compiler *c, const struct cfi_function *fn)
{
	u64 start = MAX(fn->start, c->covered);
	struct error *err;

	if (fn->end <= start)
		return NULL;
	switch (run_function(c, fn)) {
	case CFI_RUN_NO_MEMORY:
		return &error_no_memory;
	case CFI_RUN_CORRUPT:
		c->parsed.ncorrupt++;
		return NULL;
	case CFI_RUN_OK:
		break;
	}
	err = lay_gap(c, start);
	if (!err)
		err = lay_return_to_start(c, fn, start);
	for (size_t i = 0; !err && i < c->rows.n; i++)
		err = cfi_layout_row(c->layout, MAX(c->rows.entry[i].addr, start), &c->rows.entry[i].rule);
	if (!is_synthetic(fn) || fn->cie == CFI_CIE_TOLD)
		c->fdes[c->nfdes++] = (struct cfi_fde){start, fn->end};
	c->covered = fn->end;
	return err;
}

/* Following code between FDEs would take the entry point for a function that somebody calls. */
static struct error *find_gaps(struct image *img, struct compiler *c)
{
	struct error *err = add_entry(img, &c->parsed);

	return err ? err : cfi_code_find_gaps(img, &c->parsed, &c->code);
}

/* Adds what the code itself showed. */
static struct error *merge_code(struct compiler *c)
{
	struct cfi_parsed *p = &c->parsed;
	struct cfi_function *grown;

	if (!c->code.nruns)
		return NULL;
	grown = reallocarray(p->functions, p->nfunctions + c->code.nruns, sizeof(*grown));
	if (!grown)
		return &error_no_memory;
	memcpy(grown + p->nfunctions, c->code.runs, c->code.nruns * sizeof(*grown));
	p->functions = grown;
	p->nfunctions = p->functions_room = p->nfunctions + c->code.nruns;
	sort_functions(p->functions, p->nfunctions);
	return NULL;
}

/* Follows the code itself, if the file describes too little of it. */
static struct error *add_code(struct image *img, struct compiler *c)
{
	struct cfi_parsed *p = &c->parsed;
	struct error *err;
	u64 told = 0;

	for (size_t i = 0; i < p->nfunctions; i++)
		told += p->functions[i].end - p->functions[i].start;
	if (!cfi_code_wanted(img, told))
		return NULL;
	err = cfi_code_whole(img, told) ? cfi_code_find(img, p, &c->code) : find_gaps(img, c);
	return err ? err : merge_code(c);
}

/* Drops the functions that share code with those of a teller. Both are sorted. */
static void drop_told(struct cfi_parsed *p, const struct cfi_function *told, u32 n)
{
	size_t kept = 0;
	u32 at = 0;

	for (size_t i = 0; i < p->nfunctions; i++) {
		while (at < n && told[at].end <= p->functions[i].start)
			at++;
		if (at == n || told[at].start >= p->functions[i].end)
			p->functions[kept++] = p->functions[i];
	}
	p->nfunctions = kept;
}

/* Both are sorted, and share no code. */
static struct error *merge_told(struct cfi_parsed *p, const struct cfi_function *told, u32 n)
{
	struct cfi_function *all = calloc(p->nfunctions + n + 1, sizeof(*all));
	size_t i = 0, k = 0;

	if (!all)
		return &error_no_memory;
	while (i < p->nfunctions || k < n)
		if (k == n || (i < p->nfunctions && p->functions[i].start < told[k].start)) {
			all[i + k] = p->functions[i];
			i++;
		} else {
			all[i + k] = told[k];
			k++;
		}
	free(p->functions);
	p->functions = all;
	p->nfunctions += n;
	p->functions_room = p->nfunctions + 1;
	return NULL;
}

/* Is it code that the file has? What says so is untrusted: the table has a row for each page in between. */
static bool is_code(const struct image *img, u64 start, u64 end)
{
	for (u32 i = 0; i < img->nsegments; i++) {
		const struct image_segment *s = &img->segments[i];

		if (s->flags & PF_X && start >= s->vaddr && start < end && end - s->vaddr <= s->filesz)
			return true;
	}
	return false;
}

static struct error *add_told(const struct image *img, struct compiler *c, u32 n)
{
	cleanup(free) struct cfi_function *told = calloc(n + 1, sizeof(*told));
	struct cfi_parsed *p = &c->parsed;
	u64 before = 0;
	u32 kept = 0;

	for (u32 i = 0; told && i < n; i++) {
		struct cfi_function *fn = &told[kept];

		*fn = (struct cfi_function){.code_size = i, .cie = CFI_CIE_TOLD};
		if (!c->teller->extent(c->told, i, &fn->start, &fn->end) || fn->start < before ||
		        !is_code(img, fn->start, fn->end))
			continue;
		before = fn->end;
		kept++;
	}
	if (told)
		drop_told(p, told, kept);
	return told ? merge_told(p, told, kept) : &error_no_memory;
}

/* Functions whose rows the file has in a language's own form. */
static struct error *ask_tellers(struct image *img, const struct cfi_options *options, struct compiler *c)
{
	struct error *err = NULL;
	u32 n = 0;

	for (u32 i = 0; !err && options && options->tellers[i] && !c->told; i++) {
		c->teller = options->tellers[i];
		err = c->teller->open(img, &c->told, &n);
	}
	return err || !c->told ? err : add_told(img, c, n);
}

/* Lays out all functions, which are sorted. */
static struct error *lay_functions(struct compiler *c, struct cfi **ret)
{
	struct error *err = cfi_layout_create(&c->layout);

	if (err)
		return err;
	c->fdes = calloc(c->parsed.nfunctions + 1, sizeof(*c->fdes));
	c->rows = (struct cfi_rows){.entry = calloc(1, sizeof(*c->rows.entry)), .room = 1};
	if (!c->fdes || !c->rows.entry)
		return &error_no_memory;
	for (size_t i = 0; !err && i < c->parsed.nfunctions; i++)
		err = lay_function(c, &c->parsed.functions[i]);
	if (!err)
		err = cfi_layout_end(c->layout, c->covered);
	return err ? err : cfi_layout_finish(c->layout, c->fdes, c->nfdes, c->parsed.ncorrupt, ret);
}

static struct error *compile_into(
        struct image *img, const struct cfi_options *options, struct compiler *c, struct cfi **ret)
{
	struct error *err = cfi_parse(img, options ? options->debug : NULL, &c->parsed);

	if (err)
		return err;
	sort_functions(c->parsed.functions, c->parsed.nfunctions);
	drop_known(&c->parsed);
	err = ask_tellers(img, options, c);
	if (!err)
		err = add_code(img, c);
	if (!err)
		err = add_entry(img, &c->parsed);
	if (!err)
		err = add_stubs(img, &c->parsed);
	return err ? err : lay_functions(c, ret);
}

static void free_compiler(struct compiler *c)
{
	cfi_parsed_free(&c->parsed);
	cfi_code_free(&c->code);
	if (c->told)
		c->teller->close(c->told);
	cfi_layout_destroy(c->layout);
	free(c->rows.entry);
	free(c->fdes);
}

static struct error *compile(struct image *img, const struct cfi_options *options, struct cfi **ret)
{
	struct compiler c = {.img = img};
	struct error *err = compile_into(img, options, &c, ret);

	free_compiler(&c);
	return err;
}

struct error *cfi_from_memory(
        const struct cfi_section *sections, u32 n, const struct cfi_memory_code *code, struct cfi **ret)
{
	cleanup(free) struct cfi_source *sources = calloc(n + 1, sizeof(*sources));
	struct image img = {.fd = -1,
	        .segments = (struct image_segment *)code->segments,
	        .nsegments = code->n,
	        .copy = (void *)code->bytes,
	        .size = code->size};
	struct compiler c = {0};
	struct error *err = sources ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < n; i++) {
		sources[i] = (struct cfi_source){
		        .data = sections[i].data, .size = sections[i].size, .addr = sections[i].addr, .open = true};
		err = cfi_parse_source(&img, &c.parsed, &sources[i]);
	}
	if (!err) {
		sort_functions(c.parsed.functions, c.parsed.nfunctions);
		err = cfi_code_find_in_memory(&img, &c.parsed, &c.code);
	}
	if (!err)
		err = merge_code(&c);
	if (!err)
		err = lay_functions(&c, ret);
	free_compiler(&c);
	return err;
}

/* Puts the tables into the cache, and takes them from there if that succeeded: a file's pages need no memory of ours
 * while nobody looks at them. */
static struct cfi *store(const char *dir, const struct image *img, u64 debug_size, struct cfi *cfi)
{
	struct cfi *stored;

	cfi_cache_store(dir, img, debug_size, cfi);
	stored = cfi_cache_load(dir, img, debug_size);
	if (!stored)
		return cfi;
	cfi_destroy(cfi);
	stored->from_cache = false;
	return stored;
}

struct error *cfi_load(struct image *img, const struct cfi_options *options, struct cfi **ret)
{
	const char *dir = options ? options->cache_dir : NULL;
	u64 debug_size = options && options->debug ? options->debug->size : 0;
	struct cfi *cfi = dir ? cfi_cache_load(dir, img, debug_size) : NULL;
	struct error *err;

	if (!cfi) {
		err = compile(img, options, &cfi);
		if (err)
			return err;
		if (dir)
			cfi = store(dir, img, debug_size, cfi);
	}
	img->destroy.cfi = cfi_destroy;
	*ret = cfi;
	return NULL;
}

void cfi_rest(struct cfi *cfi)
{
	struct cfi_own *own = cfi->private;

	if (own->mapped)
		madvise(own->blob, own->blob->size, MADV_DONTNEED);
}

const struct cfi_fde *cfi_fde_at(const struct cfi *cfi, u64 addr)
{
	u32 at = SEARCH(cfi ? cfi->nfdes : 0, k, cfi->fdes[k].end <= addr);

	return cfi && at < cfi->nfdes && cfi->fdes[at].start <= addr ? &cfi->fdes[at] : NULL;
}

bool cfi_is_sparse(const struct image *img, const struct cfi *cfi)
{
	u64 told = 0;

	for (u32 i = 0; i < cfi->nfdes; i++)
		told += cfi->fdes[i].end - cfi->fdes[i].start;
	return cfi_tells_little(img, told);
}

static bool entries_sorted(const struct cfi_entry *entries, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (entries[i].addr < entries[i - 1].addr)
			return false;
	return true;
}

struct error *cfi_from_entries(const struct cfi_entry *entries, size_t n, u64 start, u64 end, struct cfi **ret)
{
	struct cfi_layout *layout;
	struct error *err;

	if (end <= start || !entries_sorted(entries, n))
		return error_new(ERROR_INPUT, "unwind rows of [%#llx, %#llx) are not in order",
		        (unsigned long long)start, (unsigned long long)end);
	err = cfi_layout_create(&layout);
	if (err)
		return err;
	for (size_t i = 0; !err && i < n && entries[i].addr < end; i++)
		err = cfi_layout_row(layout, MAX(entries[i].addr, start), &entries[i].rule);
	if (!err)
		err = cfi_layout_end(layout, end);
	if (!err)
		err = cfi_layout_finish(layout, NULL, 0, 0, ret);
	cfi_layout_destroy(layout);
	return err;
}

static const struct cfi_piece *find_piece(const struct cfi *cfi, u64 addr)
{
	u32 i = SEARCH(cfi->npieces, k, cfi->pieces[k].end <= addr);

	return i < cfi->npieces && addr >= cfi->pieces[i].start ? &cfi->pieces[i] : NULL;
}

bool cfi_find(const struct cfi *cfi, u64 addr, struct cfi_rule *ret)
{
	const struct cfi_piece *piece = find_piece(cfi, addr);
	const struct cfi_table *t = piece ? piece->bytes : NULL;
	const u32 *rows;
	const u16 *index;
	u64 page;
	u32 i;

	if (!t)
		return false;
	page = (addr - piece->start) >> CFI_PAGE_BITS;
	index = (const u16 *)((const u8 *)t + t->index) + page;
	rows = (const u32 *)((const u8 *)t + t->rows);
	for (i = index[1] - 1u; (rows[i] & (CFI_PAGE_SIZE - 1)) > (addr & (CFI_PAGE_SIZE - 1)); i--)
		;
	*ret = ((const struct cfi_rule *)((const u8 *)t + t->rules))[rows[i] >> CFI_PAGE_BITS];
	return ret->kind != CFI_NONE;
}
