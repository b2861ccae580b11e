/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cfi_code_flow.h"
#include "cfi_functions.h"
#include "search.h"

#define CODE_SMALL (1u << 20)
#define CODE_MAX   (4u << 20)
#define GAPS_MAX   (32u << 20) /* bytes of code between FDEs that are followed in one file */
#define GAP_MIN    32          /* fewer are padding */
/* At least this part of a large file's code is covered: of libx265 a fifth, of Go's and Haskell's a hundredth. */
#define COVERED_PART 16
#define STEPS        4  /* instructions that are followed, for each byte of code */
#define STRAYS_MIN   16 /* fewer say nothing */

static void seed_starts(struct code_flow *f)
{
	const struct code_starts *starts = f->starts;

	for (u32 i = code_starts_from(starts, f->start); i < starts->n && starts->list[i].addr < f->end; i++) {
		const struct code_start *s = &starts->list[i];

		if (code_flow_called(f, s->addr) && s->never_returns)
			f->marks[s->addr - f->start] |= NEVER_RETURNS;
	}
}

/* Functions that only pointers lead to, as instructions make them. */
static void seed_pointed(struct code_flow *f)
{
	for (u64 addr = f->start; addr < f->end && f->steps && !f->no_memory; addr++)
		if (f->marks[addr - f->start] & POINTED && !f->at[addr - f->start] &&
		        code_flow_function(f, addr, CODE_ENTRY, 0))
			code_flow_run(f);
}

static bool is_padding(const cs_insn *in)
{
	return in->id == X86_INS_NOP || in->id == X86_INS_INT3 || code_is_zero(in);
}

static bool looks_like_start(const cs_insn *in)
{
	const cs_x86_op *op = &in->detail->x86.operands[0];

	return (in->id == X86_INS_PUSH && arch_saved_slot(code_register(op)) < ARCH_NSAVED) ||
	       in->id == X86_INS_ENDBR64;
}

/* Functions that nothing leads to, of code that keeps frame pointers. */
static void seed_frames(struct code_flow *f)
{
	const u8 *end = f->bytes + (f->end - f->start), *p = f->bytes;

	for (; (p = code_find_frame(p, end)) && f->steps; p++)
		if (!f->at[p - f->bytes] && code_flow_called(f, f->start + (u64)(p - f->bytes)))
			code_flow_run(f);
}

/*
 * What nothing leads to is a case of the switch before it in its function, with the stack as it is there, or a function
 * that only pointers lead to.
 */
static void sweep(struct code_flow *f)
{
	u32 cases = 0;

	for (u64 addr = f->start; addr < f->end && f->steps && !f->no_memory; addr++) {
		u32 i = (u32)(addr - f->start);

		if (f->marks[i] & START)
			cases = 0;
		if (f->marks[i] & SWITCH && f->at[i] != CODE_TAIL) /* code that overlaps */
			cases = f->at[i];
		if (f->at[i] || !f->bytes[i] || !code_flow_follows(f, addr) || !code_flow_decode(f, addr))
			continue; /* padding may be an odd number of zeros */
		if (is_padding(f->d.in)) {
			addr += f->d.in->size - 1u;
			continue;
		}
		if (cases && !looks_like_start(f->d.in)) {
			code_flow_enqueue(f, addr, cases, 0);
		} else {
			cases = 0;
			code_flow_function(f, addr, CODE_ENTRY, 0);
		}
		code_flow_run(f);
	}
}

static void add_row(struct code_flow *f, struct cfi_code *c, u64 addr, const struct cfi_rule *rule)
{
	if (code_flow_reserve(f, &c->rows, c->nrows, &c->rows_room, sizeof(*c->rows)))
		c->rows[c->nrows++] = (struct cfi_entry){addr, *rule};
}

static void add_run(struct code_flow *f, struct cfi_code *c, u64 start, u64 end, u32 row)
{
	if (end > start && code_flow_reserve(f, &c->runs, c->nruns, &c->runs_room, sizeof(*c->runs)))
		c->runs[c->nruns++] = (struct cfi_function){
		        .start = start, .end = end, .code_size = row, .cie = f->body ? CFI_CIE_BODY : CFI_CIE_CODE};
}

/* The part of [start, end) that is in the stretch. */
static void mark(struct code_flow *f, u64 start, u64 end, enum code_mark what)
{
	start = MAX(start, f->start);
	end = MIN(end, f->end);
	if (start < end)
		memset(f->marks + (start - f->start), what, end - start);
}

/* A gap has none: a file may have hundreds of thousands of functions, and as many gaps. */
static void mark_described(struct code_flow *f, const struct cfi_parsed *p)
{
	if (f->gap && !f->body)
		return;
	for (size_t i = 0; i < p->nfunctions; i++)
		mark(f, p->functions[i].start, p->functions[i].end, DESCRIBED);
}

/* Does the code say something at an address that is not true of the body of a function? */
static bool leaves_body(const struct code_flow *f, u32 state)
{
	return state && (state == CODE_TAIL || !code_state_in_body(&f->states[state - 1]));
}

/* The rule at an address; false: nothing is known. */
static bool rule_at(const struct code_flow *f, u64 addr, struct cfi_rule *rule)
{
	u32 state = f->at[addr - f->start];

	if (f->body && !leaves_body(f, state)) {
		*rule = *f->body;
		return true;
	}
	if (f->marks[addr - f->start] & SIGNAL)
		*rule = code_signal_rule();
	else if (state && state != CODE_TAIL)
		*rule = code_state_rule(&f->states[state - 1], f->gap);
	if (f->marks[addr - f->start] & NEWBORN && rule->kind == CFI_REG)
		rule->kind = CFI_NEWBORN;
	if (code_flow_before_signal(f, addr, rule))
		return true;
	if (f->body && rule->kind == CFI_NONE)
		*rule = *f->body;
	return f->marks[addr - f->start] & SIGNAL || state; /* within an instruction that of its first byte holds */
}

static void emit(struct code_flow *f, struct cfi_code *ret)
{
	struct cfi_rule rule, last;
	u64 start = f->start;
	u32 row = ret->nrows;

	for (u64 addr = f->start; addr < f->end; addr++) {
		if (f->body && f->marks[addr - f->start] & START) {
			add_run(f, ret, start, addr, row);
			start = addr;
			row = ret->nrows;
		}
		if (!rule_at(f, addr, &rule)) {
			add_run(f, ret, start, addr, row);
			start = addr + 1;
			row = ret->nrows;
		} else if (addr == start || memcmp(&rule, &last, sizeof(rule))) {
			add_row(f, ret, addr, &rule);
			last = rule;
		}
	}
	add_run(f, ret, start, f->end, row);
}

static void mark_data(void *arg, u64 addr, u64 size)
{
	mark(arg, addr, addr + size, DATA); /* an end that overflows is before the start */
}

/* The states that have numbers of their own, and function number 0. */
static bool seed_states(struct code_flow *f)
{
	struct code_state state = code_state_entry();

	code_flow_number(f, &state, 0);
	state = code_state_root();
	code_flow_number(f, &state, 0);
	if (!code_flow_reserve(f, &f->functions, 0, &f->functions_room, sizeof(*f->functions)))
		return false;
	f->functions[f->nfunctions++] = (struct code_function){.returns = true};
	return true;
}

static void follow(struct code_flow *f, const struct cfi_parsed *p)
{
	if (!f->gap) /* those are within .text */
		image_data_sections(f->img, mark_data, f);
	mark_described(f, p);
	code_flow_system_calls(f);
	if (!seed_states(f))
		return;
	seed_starts(f);
	if (!f->gap)
		code_flow_function(f, f->img->entry, CODE_ROOT, 0);
	code_flow_run(f);
	if (f->body)
		return seed_frames(f);
	seed_pointed(f);
	sweep(f);
	code_flow_bottoms(f);
}

/*
 * Do functions return to their callers, with their registers? Of C, C++ and Pascal 0.1 to 10 % of the ways out of
 * functions are others (jumps through tables), of Haskell 99 %: GHC's code has a stack of its own and jumps on.
 */
static bool keeps_conventions(const struct code_flow *f)
{
	return f->gap || f->nstrays < STRAYS_MIN || f->nstrays < f->nreturns / 4;
}

static void open_flow(struct code_flow *f)
{
	u64 size = f->end - f->start;

	if (!f->bytes)
		f->bytes = f->copy = malloc(size);
	f->marks = calloc(size, 1);
	f->at = calloc(size, sizeof(*f->at));
	f->owner = calloc(size, sizeof(*f->owner));
	f->steps = size * STEPS;
	f->no_memory = !f->bytes || !f->marks || !f->at || !f->owner || !disassembler_open(&f->d);
}

static void close_flow(struct code_flow *f)
{
	disassembler_close(&f->d);
	free(f->copy);
	free(f->marks);
	free(f->at);
	free(f->owner);
	free(f->functions);
	free(f->waiters);
	free(f->states);
	free(f->jobs);
}

struct error *code_stretch(struct image *img, u64 start, u64 size, bool gap, const struct cfi_rule *body,
        const struct cfi_parsed *p, const struct code_starts *starts, struct cfi_code *ret)
{
	struct code_flow f = {
	        .img = img, .starts = starts, .gap = gap, .body = body, .start = start, .end = start + size};

	open_flow(&f);
	if (!f.no_memory && image_read(img, f.copy, size, f.start)) {
		follow(&f, p);
		if (f.steps && !f.no_memory && keeps_conventions(&f))
			emit(&f, ret);
	}
	close_flow(&f);
	return f.no_memory ? &error_no_memory : NULL;
}

/* A kernel's table of jumps is behind it (Xbyak's putL()): each word that could lead into it does. False: none. */
static bool follow_words(struct code_flow *f)
{
	bool any = false;
	u64 word;

	for (u64 at = (f->start + 7) & ~7ull; at + sizeof(word) <= f->end; at += sizeof(word)) {
		memcpy(&word, f->bytes + (at - f->start), sizeof(word));
		if (word <= f->start || word >= f->end)
			continue;
		code_flow_enqueue(f, word, f->open, 1);
		any = true;
	}
	code_flow_run(f);
	return any;
}

struct error *cfi_code_find_function(struct image *img, u64 start, u64 end, u64 pc, struct cfi_code *ret)
{
	const struct code_starts starts = {0};
	struct code_flow f = {.img = img,
	        .starts = &starts,
	        .gap = true,
	        .proves = true,
	        .start = start,
	        .end = end,
	        .bytes = img->copy ? img->copy + (start - img->segments[0].vaddr) : NULL};

	open_flow(&f);
	if (!f.no_memory && (!f.copy || image_read(img, f.copy, end - start, start)) && seed_states(&f)) {
		code_flow_function(&f, start, CODE_ENTRY, 0);
		code_flow_run(&f);
		if ((!f.open || follow_words(&f)) && f.steps && !f.no_memory && f.nreturns && !f.loose &&
		        f.at[pc - start])
			emit(&f, ret);
	}
	close_flow(&f);
	return f.no_memory ? &error_no_memory : NULL;
}

static bool is_code(const struct image_segment *seg)
{
	return seg->flags & PF_X && seg->filesz && seg->vaddr + seg->filesz > seg->vaddr;
}

static u64 code_size(const struct image *img)
{
	u64 size = 0;

	for (u32 i = 0; i < img->nsegments; i++)
		if (is_code(&img->segments[i]))
			size += img->segments[i].filesz;
	return size;
}

bool cfi_covers_little(const struct image *img, u64 covered)
{
	return covered < code_size(img) / 2;
}

static bool covers_some(const struct image *img, u64 covered)
{
	return covered >= code_size(img) / COVERED_PART;
}

bool cfi_code_whole(const struct image *img, u64 covered)
{
	u64 size = code_size(img);

	return size <= CODE_SMALL ? cfi_covers_little(img, covered) : size <= CODE_MAX && !covers_some(img, covered);
}

bool cfi_code_wanted(const struct image *img, u64 covered)
{
	if (img->machine != EM_X86_64)
		return false;
	return code_size(img) <= CODE_SMALL || covers_some(img, covered) ||
	       (cfi_code_whole(img, covered) && !img->go_id[0]);
}

struct error *cfi_code_find(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	struct code_starts starts = {0};
	struct error *err = code_starts_find(&starts, img);

	for (u32 i = 0; !err && i < img->nsegments; i++)
		if (is_code(&img->segments[i]))
			err = code_stretch(
			        img, img->segments[i].vaddr, img->segments[i].filesz, false, NULL, p, &starts, ret);
	code_starts_free(&starts);
	return err;
}

struct gaps {
	struct image *img;
	const struct cfi_parsed *p;
	const struct code_starts *starts;
	u64 left; /* bytes that may still be followed */
	struct cfi_code *ret;
};

static struct error *follow_gap(void *ctx, u64 start, u64 end)
{
	struct gaps *g = ctx;

	if (end - start <= GAP_MIN || end - start > g->left)
		return NULL;
	g->left -= end - start;
	return code_stretch(g->img, start, end - start, true, NULL, g->p, g->starts, g->ret);
}

static bool any_gap(const struct cfi_parsed *p, u64 at, u64 end)
{
	for (size_t i = 0; i < p->nfunctions && at < end; i++) {
		if (p->functions[i].start > at + GAP_MIN)
			return true;
		at = MAX(at, p->functions[i].end);
	}
	return at + GAP_MIN < end;
}

struct error *cfi_code_find_gaps(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	struct code_starts starts = {0};
	struct gaps g = {img, p, &starts, GAPS_MAX, ret};
	struct error *err;
	u64 at, size;

	if (!image_section_range(img, ".text", &at, &size) || at + size < at || !any_gap(p, at, at + size))
		return NULL;
	err = code_starts_find(&starts, img);
	if (!err)
		err = cfi_each_gap(p, at, at + size, follow_gap, &g);
	code_starts_free(&starts);
	return err;
}

static bool describes(const struct cfi_parsed *p, const struct image_segment *seg)
{
	size_t at = SEARCH(p->nfunctions, k, p->functions[k].start < seg->vaddr);

	return at < p->nfunctions && p->functions[at].start - seg->vaddr < seg->filesz;
}

struct error *cfi_code_find_in_memory(struct image *img, const struct cfi_parsed *p, struct cfi_code *ret)
{
	const struct code_starts starts = {0};
	struct gaps g = {img, p, &starts, GAPS_MAX, ret};
	struct error *err = NULL;

	for (u32 i = 0; !err && i < img->nsegments; i++) {
		const struct image_segment *seg = &img->segments[i];

		if (is_code(seg) && seg->offset < img->size && describes(p, seg))
			err = cfi_each_gap(p, seg->vaddr, seg->vaddr + seg->filesz, follow_gap, &g);
	}
	return err;
}

bool cfi_code_rows(
        struct image *img, u64 start, u64 end, bool (*add)(void *ctx, u64 addr, const struct cfi_rule *rule), void *ctx)
{
	const struct code_starts starts = {0};
	const struct cfi_parsed none = {0};
	const struct cfi_rule unknown = cfi_bare_rule(CFI_NONE);
	struct cfi_code code = {0};
	u64 at = start;
	bool ok = end > start && end - start <= CODE_MAX &&
	          !code_stretch(img, start, end - start, true, NULL, &none, &starts, &code);

	for (u32 i = 0; ok && i < code.nruns; i++) {
		u32 last = i + 1 < code.nruns ? code.runs[i + 1].code_size : code.nrows;

		ok = code.runs[i].start == at || add(ctx, at, &unknown);
		for (u32 k = code.runs[i].code_size; ok && k < last; k++)
			ok = add(ctx, code.rows[k].addr, &code.rows[k].rule);
		at = code.runs[i].end;
	}
	ok = ok && (at == end || add(ctx, at, &unknown));
	cfi_code_free(&code);
	return ok;
}

void cfi_code_free(struct cfi_code *code)
{
	free(code->rows);
	free(code->runs);
	*code = (struct cfi_code){0};
}
