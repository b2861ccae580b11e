/* SPDX-License-Identifier: Apache-2.0 */
#include "jit_code.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <xxhash.h>

#include "binary/resident.h"
#include "cfi_code_flow.h"
#include "cfi_internal.h"
#include "cleanup.h"
#include "grow.h"
#include "now.h"
#include "search.h"
#include "table.h"

#define PAGE          4096u
#define REACH         (256u << 10) /* bytes of a function, and how far before a frame its beginning is looked for */
#define READ_MAX      (8u << 20)   /* bytes in which beginnings are looked for */
#define RESERVED_MAX  (1ull << 30) /* bytes of a range that is looked at, touched or not */
#define ALIGNMENT     16u
#define PADDING       16u /* bytes of zeros before a page that a function may begin on */
#define TRIES_MAX     24u /* beginnings that are tried for one frame */
#define FUNCTIONS_MAX 4096u
#define WANTED_MAX    256u
#define FAILED_MAX    2048u /* beginnings that are none */
#define HOPELESS      256u  /* so many, and no function: this compiler works otherwise */
#define CHECK_NS      1000000000ull
#define HASHED        64u /* bytes that identify a beginning */

struct function {
	u64 start, end;
	u64 hash; /* of its bytes */
	struct cfi_code code;
};

struct jit_code {
	struct function *functions; /* sorted by start */
	u32 n;
	u64 wanted[WANTED_MAX];
	u32 nwanted;
	u32 nfailed;
	struct table tried; /* beginnings that are none, and frames that were seen */
	u64 checked_ns;
	bool changed;
};

/* A piece of a process's code. */
struct piece {
	u8 *bytes;
	u64 start, end;
	bool first; /* nothing of code lies right before it */
};

struct jit_code *jit_code_create(void)
{
	return calloc(1, sizeof(struct jit_code));
}

void jit_code_destroy(struct jit_code *c)
{
	if (!c)
		return;
	for (u32 i = 0; i < c->n; i++)
		cfi_code_free(&c->functions[i].code);
	free(c->functions);
	table_free(&c->tried);
	free(c);
}

static bool is_hopeless(const struct jit_code *c)
{
	return c->nfailed >= FAILED_MAX || (c->nfailed >= HOPELESS && !c->n);
}

static bool has(const struct cfi_code *code, u64 pc)
{
	for (u32 i = 0; i < code->nruns; i++)
		if (pc >= code->runs[i].start && pc < code->runs[i].end)
			return true;
	return false;
}

static bool covers(const struct jit_code *c, u64 pc)
{
	for (u32 i = 0; i < c->n; i++)
		if (has(&c->functions[i].code, pc))
			return true;
	return false;
}

/* True the first time, as long as memory lasts. */
static bool is_new(struct jit_code *c, u64 key)
{
	if (table_get(&c->tried, key | 1))
		return false;
	error_free(table_put(&c->tried, key | 1, 1));
	return true;
}

void jit_code_saw(struct jit_code *c, u64 pc)
{
	if (c->nwanted < WANTED_MAX && !is_hopeless(c) && !covers(c, pc) &&
	        is_new(c, XXH3_64bits_withSeed(&pc, sizeof(pc), 1)))
		c->wanted[c->nwanted++] = pc;
}

static bool has_changed(const struct function *f, struct memory *mem)
{
	cleanup(free) u8 *bytes = malloc(f->end - f->start);

	return !bytes || !memory_read(mem, bytes, f->end - f->start, f->start) ||
	       XXH3_64bits(bytes, f->end - f->start) != f->hash;
}

static bool any_changed(const struct jit_code *c, struct memory *mem)
{
	for (u32 i = 0; i < c->n; i++)
		if (has_changed(&c->functions[i], mem))
			return true;
	return false;
}

bool jit_code_wants(struct jit_code *c, struct memory *mem)
{
	u64 now = now_ns();

	if (c->n && now - c->checked_ns > CHECK_NS) {
		c->checked_ns = now;
		c->changed |= any_changed(c, mem);
	}
	return c->nwanted || c->changed;
}

/* What is there now may be seen again. */
static void drop_changed(struct jit_code *c, struct memory *mem)
{
	u32 kept = 0;

	for (u32 i = 0; i < c->n; i++) {
		if (!has_changed(&c->functions[i], mem)) {
			c->functions[kept++] = c->functions[i];
			continue;
		}
		cfi_code_free(&c->functions[i].code);
		c->changed = true;
	}
	if (kept < c->n)
		table_clear(&c->tried);
	for (u32 i = kept; i < c->n; i++)
		c->functions[i] = (struct function){0};
	c->n = kept;
}

/* Functions that this one has in it, as it calls them. */
static void drop_inner(struct jit_code *c, const struct cfi_code *code)
{
	u32 kept = 0;

	for (u32 i = 0; i < c->n; i++)
		if (has(code, c->functions[i].start))
			cfi_code_free(&c->functions[i].code);
		else
			c->functions[kept++] = c->functions[i];
	c->n = kept;
}

static struct error *keep(struct jit_code *c, const struct piece *p, u64 start, struct cfi_code *code)
{
	u64 end = code->runs[code->nruns - 1].end;
	struct error *err;
	u32 at;

	drop_inner(c, code);
	err = grow(&c->functions, c->n, sizeof(*c->functions));
	if (err)
		return err;
	at = SEARCH(c->n, k, c->functions[k].start < start);
	memmove(c->functions + at + 1, c->functions + at, (c->n - at) * sizeof(*c->functions));
	c->functions[at] =
	        (struct function){start, end, XXH3_64bits(p->bytes + (start - p->start), end - start), *code};
	*code = (struct cfi_code){0};
	c->n++;
	c->changed = true;
	return NULL;
}

/* Does a function begin here that has pc in it? Then it is kept. */
static struct error *try(struct jit_code *c, const struct piece *p, u64 start, u64 pc)
{
	struct image_segment segment = {
	        .vaddr = p->start, .memsz = p->end - p->start, .filesz = p->end - p->start, .flags = PF_X};
	struct image img = {
	        .fd = -1, .segments = &segment, .nsegments = 1, .copy = p->bytes, .size = p->end - p->start};
	u64 end = MIN(p->end, start + REACH), facts[] = {start, pc};
	struct cfi_code code = {0};
	struct error *err = NULL;

	if (c->n >= FUNCTIONS_MAX || is_hopeless(c) || pc >= end ||
	        !is_new(c, XXH3_64bits_withSeed(p->bytes + (start - p->start), MIN(end - start, HASHED),
	                           XXH3_64bits(facts, sizeof(facts)))))
		return NULL;
	err = cfi_code_find_function(&img, start, end, pc, &code);
	if (!err && code.nruns)
		err = keep(c, p, start, &code);
	else
		c->nfailed++;
	cfi_code_free(&code);
	return err;
}

/* Are these n bytes before an address all the same, as those between functions are? */
static bool are_all(const struct piece *p, u64 at, u32 n, u8 byte)
{
	for (u32 i = 1; i <= n; i++)
		if (at - i < p->start || p->bytes[at - i - p->start] != byte)
			return false;
	return true;
}

/* push %rbp; mov %rsp, %rbp */
static bool makes_frame(const struct piece *p, u64 at)
{
	const u8 *code = p->bytes + (at - p->start);

	return *code == 0x55 && p->end - at >= 4 && code_find_frame(code, code + 4) == code; /* most bytes differ */
}

/*
 * May a function begin here? At multiples of 16 bytes behind a return or padding; one that makes a frame (GHDL's mcode)
 * anywhere behind a return or a byte of padding.
 */
static bool may_begin(const struct piece *p, u64 at)
{
	const u8 *code = p->bytes + (at - p->start);
	bool frame = makes_frame(p, at);

	if (at % ALIGNMENT && !frame)
		return false;
	if (at == p->start)
		return p->first;
	return code[-1] == 0xc3 || code[-1] == 0xcc || code[-1] == 0x90 || are_all(p, at, frame ? 1 : 3, 0);
}

static struct error *find_around(struct jit_code *c, const struct piece *p, u64 pc)
{
	struct error *err = NULL;
	u32 tries = 0;

	for (u64 at = pc; !err && !covers(c, pc) && tries < TRIES_MAX; at--) {
		if (may_begin(p, at)) {
			err = try(c, p, at, pc);
			tries++;
		}
		if (at == p->start)
			break;
	}
	return err;
}

static struct error *find_on_pages(struct jit_code *c, const struct piece *p)
{
	struct error *err = NULL;

	for (u64 at = p->start; !err && at < p->end; at += PAGE) {
		const u8 *code = p->bytes + (at - p->start);

		if ((code[0] || code[1]) && code[0] != 0xcc && !covers(c, at) &&
		        (at == p->start ? p->first : are_all(p, at, PADDING, 0)))
			err = try(c, p, at, at);
	}
	return err;
}

/* Touched pages from `from` on, at most max bytes. False: there are none, or they cannot be read. */
static bool read_piece(
        struct resident *r, struct memory *mem, const struct jit_range *range, u64 from, u64 max, struct piece *ret)
{
	if (!resident_next(r, from, range->end, max, &ret->start, &ret->end))
		return false;
	ret->first = ret->start > from || from == range->start;
	ret->bytes = malloc(ret->end - ret->start);
	return ret->bytes && memory_read(mem, ret->bytes, ret->end - ret->start, ret->start);
}

static struct error *search(
        struct jit_code *c, struct resident *r, struct memory *mem, const struct jit_range *range, u64 *left)
{
	struct jit_range first = {range->start, MIN(range->end, range->start + RESERVED_MAX)};
	struct error *err = NULL;
	u64 from = first.start;
	bool done = false;

	while (!err && *left && !done) {
		struct piece p = {0};

		done = !read_piece(r, mem, &first, from, *left, &p);
		if (!done) {
			err = find_on_pages(c, &p);
			*left -= p.end - p.start;
		}
		free(p.bytes);
		from = p.end;
	}
	return err;
}

/* The function that pc is in. */
static struct error *look(
        struct jit_code *c, struct resident *r, struct memory *mem, const struct jit_range *range, u64 pc)
{
	u64 page = pc & ~(u64)(PAGE - 1), from = MAX(range->start, page - MIN(page, REACH));
	struct error *err = NULL;
	bool done = false;

	while (!err && !done && from <= page) {
		struct piece p = {0};

		done = !read_piece(r, mem, range, from, 2 * REACH, &p) || p.end > pc;
		if (p.bytes && pc >= p.start && pc < p.end)
			err = find_around(c, &p, pc);
		free(p.bytes);
		from = p.end;
	}
	return err;
}

static struct error *look_at_wanted(
        struct jit_code *c, struct resident *r, struct memory *mem, const struct jit_range *ranges, u32 n)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && i < c->nwanted; i++) {
		u64 pc = c->wanted[i];
		u32 at = SEARCH(n, k, ranges[k].end <= pc);

		if (at < n && pc >= ranges[at].start && !covers(c, pc))
			err = look(c, r, mem, &ranges[at], pc);
	}
	c->nwanted = 0;
	return err;
}

/* The rows of all functions, one behind the other. */
static struct error *compile(const struct jit_code *c, struct cfi **ret)
{
	struct cfi_code all = {0};
	struct error *err = NULL;
	u32 nrows = 0, nruns = 0;

	for (u32 i = 0; i < c->n; i++) {
		nrows += c->functions[i].code.nrows;
		nruns += c->functions[i].code.nruns;
	}
	all.rows = calloc(nrows + 1, sizeof(*all.rows));
	all.runs = calloc(nruns + 1, sizeof(*all.runs));
	if (!all.rows || !all.runs)
		err = &error_no_memory;
	for (u32 i = 0; !err && i < c->n; i++) {
		const struct cfi_code *code = &c->functions[i].code;

		memcpy(all.rows + all.nrows, code->rows, code->nrows * sizeof(*all.rows));
		for (u32 k = 0; k < code->nruns; k++) {
			all.runs[all.nruns] = code->runs[k];
			all.runs[all.nruns++].code_size += all.nrows;
		}
		all.nrows += code->nrows;
	}
	if (!err)
		err = cfi_from_code(&all, ret);
	cfi_code_free(&all);
	return err;
}

struct error *jit_code_find(struct jit_code *c, pid_t pid, struct memory *mem, const struct jit_range *ranges, u32 n,
        bool *changed, struct cfi **ret)
{
	cleanup(free) struct resident *r = malloc(sizeof(*r));
	struct error *err = r ? NULL : &error_no_memory;
	u64 left = READ_MAX;

	*changed = false;
	*ret = NULL;
	if (err)
		return err;
	drop_changed(c, mem);
	resident_open(r, pid);
	for (u32 i = 0; !err && i < n && left && !is_hopeless(c); i++)
		err = search(c, r, mem, &ranges[i], &left);
	if (!err)
		err = look_at_wanted(c, r, mem, ranges, n);
	resident_close(r);
	if (!err && c->changed && c->n)
		err = compile(c, ret);
	*changed = !err && c->changed;
	c->changed = false;
	return err;
}
