/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "binary/endbr64.h"
#include "binary/image_pages.h"
#include "cfi_code_state.h"
#include "cfi_epilogue.h"
#include "cfi_functions.h"
#include "cfi_internal.h"
#include "cfi_kept.h"
#include "cleanup.h"

/*
 * FDEs that are silent about what their code does: assembly that moves the stack pointer under an FDE of one row, CFA =
 * rsp + 8 (bn_gather5() of OpenSSL 3.0, the 4-wide sincos of libmvec of glibc 2.36). Compilers never do that.
 */

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

/*
 * Takes FDEs from parsed that say nothing of how their code moves the stack pointer, and adds the
 * functions with rows from the code, where that can be proven. Only fails for memory.
 */
static struct error *cfi_silent_find(struct image *img, struct cfi_parsed *p, struct cfi_code *ret)
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

/*
 * A clone() whose FDE covers its child, too: musl's assembly gets CFI from its pushes and pops, in .debug_frame, which
 * programs that are linked statically keep (tools/add-cfi.x86_64.awk, musl 1.1.7 to 1.2.5). The child pops its argument
 * from a stack that nobody called it on, so that its CFA is the stack pointer and its return address lies below that:
 * where the call of the thread's function left its own. A child is a root.
 */

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

/* Ends stacks of threads at the clone() that made them. False: no memory. */
static bool cfi_newborn_mend(struct image_pages *text, const struct cfi_function *fn, struct cfi_rows *rows)
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

#define GAP_IGNORED 32          /* bytes without an FDE that belong to the function before them */
#define GAP_MAX     (64u << 10) /* a longer stretch without CFI ends the piece */

struct compiler {
	struct image *img;
	struct image_pages text; /* nothing of code in memory */
	struct cfi_parsed parsed;
	struct cfi_rows rows; /* of one function */
	struct cfi_code code;
	struct cfi_epilogues *epilogues;     /* NULL: of code in memory */
	struct cfi_kept *kept;               /* the same */
	const struct cfi_provider *provider; /* of provided */
	void *provided;
	struct cfi_layout *layout;
	struct cfi_fde *fdes;
	u32 nfdes;
	u64 covered; /* end of what is laid out */
};

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
	const struct cfi_rule none = cfi_bare_rule(CFI_NONE);
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
	const struct cfi_rule root = cfi_bare_rule(CFI_ROOT);

	if (!c->covered || start <= c->covered || c->rows.n != 1 || cfi_is_synthetic(fn) ||
	        start - c->covered > GAP_MAX)
		return NULL;
	return cfi_layout_row(c->layout, start - 1, &root);
}

/* The one rule of a function that is not from the file. */
static struct cfi_rule synthetic_rule(const struct cfi_function *fn)
{
	if (fn->cie == CFI_CIE_ROOT)
		return cfi_bare_rule(CFI_ROOT);
	return cfi_plain_rule(CFI_REG);
}

static enum cfi_run copy_code(struct compiler *c, const struct cfi_function *fn)
{
	const struct cfi_entry *row = c->code.rows + fn->code_size, *end = c->code.rows + c->code.nrows;

	for (; row < end && row->addr >= fn->start && row->addr < fn->end; row++)
		if (!cfi_rows_add(&c->rows, row->addr, &row->rule))
			return CFI_RUN_NO_MEMORY;
	return CFI_RUN_OK;
}

static bool add_provided_row(void *ctx, u64 addr, const struct cfi_rule *rule)
{
	return cfi_rows_add(ctx, addr, rule);
}

static enum cfi_run run_fde(struct compiler *c, const struct cfi_function *fn)
{
	enum cfi_run ret = cfi_run_function(&c->parsed.cies[fn->cie], fn, &c->rows);

	if (ret != CFI_RUN_OK || !c->epilogues)
		return ret;
	return cfi_eh_return_mend(&c->text, &c->rows) && cfi_own_stack_mend(&c->text, fn, &c->rows) &&
	                       cfi_newborn_mend(&c->text, fn, &c->rows) &&
	                       cfi_epilogues_mend(c->epilogues, fn, &c->rows)
	               ? CFI_RUN_OK
	               : CFI_RUN_NO_MEMORY;
}

static enum cfi_run run_function(struct compiler *c, const struct cfi_function *fn)
{
	struct cfi_rule rule;

	c->rows.n = 0;
	if (fn->cie == CFI_CIE_PROVIDED)
		return c->provider->rows(c->provided, fn->code_size, add_provided_row, &c->rows) ? CFI_RUN_OK
		                                                                                 : CFI_RUN_CORRUPT;
	if (fn->cie == CFI_CIE_CODE || fn->cie == CFI_CIE_BODY)
		return copy_code(c, fn);
	if (!cfi_is_synthetic(fn))
		return run_fde(c, fn);
	rule = synthetic_rule(fn);
	return cfi_rows_add(&c->rows, fn->start, &rule) ? CFI_RUN_OK : CFI_RUN_NO_MEMORY;
}

/*
 * Where what was run begins. Assembly may have its endbr64 before what the FDE describes (JDK's libjsvml.so). Where
 * functions overlap, the one that starts first is believed.
 */
static u64 begins_at(struct compiler *c, const struct cfi_function *fn)
{
	const struct cfi_rule plain = cfi_plain_rule(CFI_REG);
	const u8 *code;
	size_t room;

	if (fn->start < c->covered + ENDBR64_SIZE || cfi_is_synthetic(fn) || !c->rows.n ||
	        memcmp(&c->rows.entry[0].rule, &plain, sizeof(plain)))
		return MAX(fn->start, c->covered);
	code = image_pages_at(&c->text, fn->start - ENDBR64_SIZE, &room);
	if (!code || room < ENDBR64_SIZE || !is_endbr64(code))
		return fn->start;
	return fn->start - ENDBR64_SIZE;
}

static struct error *lay_function(struct compiler *c, const struct cfi_function *fn)
{
	struct error *err;
	u64 start;

	if (fn->end <= MAX(fn->start, c->covered))
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
	if (c->kept && !cfi_kept_mend(c->kept, &c->text, fn, &c->rows))
		return &error_no_memory;
	start = begins_at(c, fn);
	err = lay_gap(c, start);
	if (!err)
		err = lay_return_to_start(c, fn, start);
	for (size_t i = 0; !err && i < c->rows.n; i++)
		err = cfi_layout_row(c->layout, i ? MAX(c->rows.entry[i].addr, start) : start, &c->rows.entry[i].rule);
	if (!cfi_is_synthetic(fn) || fn->cie == CFI_CIE_PROVIDED)
		c->fdes[c->nfdes++] = (struct cfi_fde){start, fn->end};
	c->covered = fn->end;
	return err;
}

/* Following code between FDEs would take the entry point for a function that somebody calls. */
static struct error *find_gaps(struct image *img, struct compiler *c)
{
	struct error *err = cfi_add_entry(img, &c->parsed);

	return err ? err : cfi_code_find_gaps(img, &c->parsed, &c->code);
}

/* Adds what the code itself showed, once. */
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
	c->code.nruns = 0;
	cfi_sort_functions(p);
	return NULL;
}

/* Follows the code itself, if the file describes too little of it. */
static struct error *add_code(struct image *img, struct compiler *c)
{
	struct cfi_parsed *p = &c->parsed;
	struct error *err = c->provided ? NULL : cfi_own_stack_find(img, p, &c->code);
	u64 covered = 0;

	if (!err && !c->provided && !c->code.nruns)
		err = cfi_fixed_frames_find(img, p, &c->code);
	if (!err)
		err = cfi_code_find_bodies(img, p, &c->code);
	if (!err)
		err = cfi_silent_find(img, p, &c->code);
	if (!err)
		err = merge_code(c);
	if (err)
		return err;
	for (size_t i = 0; i < p->nfunctions; i++)
		covered += p->functions[i].end - p->functions[i].start;
	if (!cfi_code_wanted(img, covered))
		return NULL;
	err = cfi_code_whole(img, covered) ? cfi_code_find(img, p, &c->code) : find_gaps(img, c);
	return err ? err : merge_code(c);
}

/* Functions whose rows the file has in a language's own form. */
static struct error *ask_providers(struct image *img, const struct cfi_options *options, struct compiler *c)
{
	struct error *err = NULL;
	u32 n = 0;

	for (u32 i = 0; !err && options && options->providers[i] && !c->provided; i++) {
		c->provider = options->providers[i];
		err = c->provider->open(img, &c->provided, &n);
	}
	return err || !c->provided ? err : cfi_add_provided(img, &c->parsed, c->provider, c->provided, n);
}

/* Lets what mends epilogues see functions from all over the file. */
static void survey(struct compiler *c)
{
	size_t n = c->parsed.nfunctions;

	for (size_t i = 0; c->epilogues && i < n; i += n / CFI_EPILOGUES_SURVEY + 1)
		if (!cfi_is_synthetic(&c->parsed.functions[i]))
			run_function(c, &c->parsed.functions[i]);
}

/* Lays out all functions, which are sorted. */
static struct error *lay_functions(struct compiler *c, struct cfi **ret)
{
	struct error *err = cfi_layout_create(&c->layout);

	if (err)
		return err;
	c->fdes = calloc(c->parsed.nfunctions + 1, sizeof(*c->fdes));
	if (c->img)
		c->epilogues = cfi_epilogues_create(c->img);
	if (c->img)
		c->kept = cfi_kept_create(c->img);
	if (c->img)
		err = image_pages_create(&c->text, c->img, ".text");
	if (err || !c->fdes || (c->img && (!c->epilogues || !c->kept)))
		return &error_no_memory;
	survey(c);
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
	cfi_sort_functions(&c->parsed);
	cfi_drop_known(&c->parsed);
	err = ask_providers(img, options, c);
	if (!err)
		err = add_code(img, c);
	if (!err)
		err = cfi_add_entry(img, &c->parsed);
	if (!err)
		err = cfi_add_stubs(img, &c->parsed);
	return err ? err : lay_functions(c, ret);
}

static void free_compiler(struct compiler *c)
{
	cfi_parsed_free(&c->parsed);
	cfi_code_free(&c->code);
	if (c->provided)
		c->provider->close(c->provided);
	cfi_layout_destroy(c->layout);
	cfi_epilogues_destroy(c->epilogues);
	cfi_kept_destroy(c->kept);
	image_pages_free(&c->text);
	free(c->rows.entry);
	free(c->fdes);
}

struct error *cfi_compile(struct image *img, const struct cfi_options *options, struct cfi **ret)
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
		cfi_sort_functions(&c.parsed);
		err = cfi_code_find_in_memory(&img, &c.parsed, &c.code);
	}
	if (!err)
		err = merge_code(&c);
	if (!err)
		err = lay_functions(&c, ret);
	free_compiler(&c);
	return err;
}

struct error *cfi_from_code(const struct cfi_code *code, struct cfi **ret)
{
	struct compiler c = {.code = *code};
	struct error *err = merge_code(&c);

	if (!err)
		err = lay_functions(&c, ret);
	c.code = (struct cfi_code){0};
	free_compiler(&c);
	return err;
}
