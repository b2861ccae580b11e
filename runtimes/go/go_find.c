/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the table in a file, with or without sections, and checks it. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "go_table.h"

#define FUNCTIONS_MAX (4u << 20)
#define FILES_MAX     (1u << 20)
#define HEAD_WORDS    9
#define MODULE_WORDS  56 /* of moduledata that are looked at */
#define MODULE_TEXT   22 /* word of moduledata since 1.16: text, etext */
#define MODULE_RODATA 32 /* words from which gofunc is looked for */
#define MODULES_MAX   16 /* words that point to the table, of which one is moduledata's first */
#define CHECKED       64 /* functions that a choice is checked with */
#define NAME_LONG     1024

/* Of the head's first word: what is_head() checks. */
#define HEAD_MASK 0xffffffff00000000ULL
#define HEAD_BITS 0x0801000000000000ULL

static const u32 magics[GO_MAGICS] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};

struct head {
	u32 magic;
	u8 zero[2];
	u8 quantum, pointer;
	u64 word[HEAD_WORDS - 1];
};

static bool is_known(u32 magic, enum go_magic *ret)
{
	for (u32 i = 0; i < GO_MAGICS; i++)
		if (magic == magics[i]) {
			*ret = (enum go_magic)i;
			return true;
		}
	return false;
}

/* Are the bytes behind the magic number those of a table for x86-64? */
static bool is_head(const struct head *h)
{
	return !h->zero[0] && !h->zero[1] && h->quantum == 1 && h->pointer == 8;
}

/* Words of the head behind the first: the number of functions, of files, (1.18: text), the parts' offsets. */
static bool read_head(struct go_table *t, u64 addr)
{
	struct head h;
	u32 part;

	if (!go_read(&t->file, &h, sizeof(h), addr) || !is_head(&h))
		return false;
	t->magic = GO_MAGIC_1_20;
	t->garbled = !is_known(h.magic, &t->magic);
	t->addr = addr;
	if (!h.word[0] || h.word[0] > FUNCTIONS_MAX)
		return false;
	t->nfunctions = (u32)h.word[0];
	if (t->magic == GO_MAGIC_1_2) {
		t->functions = addr + 16;
		t->names = t->pcs = addr;
		return true;
	}
	part = t->magic >= GO_MAGIC_1_18 ? 3 : 2;
	for (u32 i = part + 1; i < part + 5; i++)
		if (h.word[i] < h.word[i - 1] || h.word[i] > UINT32_MAX)
			return false;
	if (h.word[1] > FILES_MAX)
		return false;
	t->names = addr + h.word[part];
	t->units = addr + h.word[part + 1];
	t->files = addr + h.word[part + 2];
	t->pcs = addr + h.word[part + 3];
	t->functions = addr + h.word[part + 4];
	return true;
}

/* The words of moduledata; those beyond the file's part are 0. */
static void read_module(struct go_table *t, u64 at, u64 *ret)
{
	memset(ret, 0, MODULE_WORDS * 8);
	for (u32 i = 0; i < MODULE_WORDS; i++)
		if (!go_u64(&t->file, at + 8ULL * i, &ret[i]))
			return;
}

/* Is it moduledata? From 1.16 on slices of the table's parts follow, before the slices of the table and of its
 * functions. */
static bool is_module(const struct go_table *t, const u64 *m)
{
	u32 ftab = t->magic == GO_MAGIC_1_2 ? 3 : 16, pcs = ftab + 4;

	if (m[0] != t->addr || m[ftab] != t->functions || m[ftab + 1] < t->nfunctions ||
	        m[ftab + 1] > (u64)t->nfunctions + 1)
		return false;
	if (t->magic != GO_MAGIC_1_2 && (m[1] != t->names || m[4] != t->units || m[7] != t->files || m[10] != t->pcs))
		return false;
	return m[pcs] && m[pcs] < m[pcs + 1];
}

static struct error *find_module(struct go_table *t, u64 *m)
{
	u64 at = 0;

	for (u32 i = 0; i < MODULES_MAX && go_file_points_to(&t->file, t->addr, at, &at); i++, at += 8) {
		struct error *err = go_file_relocate(&t->file, at, at + 8 * MODULE_WORDS);

		if (err)
			return err;
		read_module(t, at, m);
		if (!is_module(t, m))
			continue;
		t->module = at;
		return NULL;
	}
	return NULL;
}

/* Are functions where the table says, each behind the one before, with names? */
static bool functions_make_sense(struct go_table *t)
{
	u32 step = t->nfunctions / CHECKED + 1;
	struct go_function fn;
	u64 before = 0;
	char name[8];

	for (u32 i = 0; i < t->nfunctions; i += step) {
		if (!go_function_at(t, i, &fn) || fn.start < before || !go_function_name(t, &fn, name, sizeof(name)))
			return false;
		before = fn.end;
	}
	if (!go_function_at(t, t->nfunctions - 1, &fn))
		return false;
	t->end = fn.end;
	return true;
}

/* Is it the name of a function: a whole string, with a dot? Type arguments may have spaces: go.shape.struct { ... }. */
static bool is_name(struct go_table *t, u32 name)
{
	char text[NAME_LONG];
	u32 n = go_name(t, name, text, sizeof(text));
	bool types = false;
	u8 before = 0;

	for (u32 i = 0; i < n; i++) {
		types |= text[i] == '[';
		if ((u8)text[i] < (types ? ' ' : ' ' + 1) || text[i] == 0x7f)
			return false;
	}
	return n && strchr(text, '.') && (!name || (go_u8(&t->file, t->names + name - 1, &before) && !before));
}

/* Looks at the inlined calls of some functions: how many made sense; -1: one did not. */
static int inlining_fits(struct go_table *t)
{
	u32 seen = 0, step = t->nfunctions / 4096 + 1, table, name;
	struct go_function fn;
	struct go_pcs p;
	u64 caller;

	for (u32 i = 0; i < t->nfunctions && seen < CHECKED; i += step) {
		if (!go_function_at(t, i, &fn) || fn.npcdata <= t->inlining.pcdata ||
		        fn.nfuncdata <= t->inlining.funcdata ||
		        !go_u32(&t->file, fn.pcdata + 4ULL * t->inlining.pcdata, &table))
			continue;
		for (go_pcs_start(&p, t, &fn, table); go_pcs_next(&p) && seen < CHECKED;) {
			if (p.value < 0)
				continue;
			if (!go_inlined_call(t, &fn, p.value, &name, &caller) || !is_name(t, name) ||
			        go_inlined_at(t, &fn, caller) == p.value)
				return -1;
			seen++;
		}
	}
	return (int)seen;
}

/* Numbers of tables changed without the magic number: those that fit are taken. */
static void find_inlining(struct go_table *t, const u64 *m)
{
	static const struct go_inlining old[] = {{2, 4, 20, 12, 16, 0}, {2, 3, 20, 12, 16, 0}, {1, 2, 20, 12, 16, 0}};
	static const struct go_inlining since_1_20 = {2, 3, 16, 4, 8, 12};

	for (u32 i = 0; t->magic < GO_MAGIC_1_18 && i < sizeof(old) / sizeof(*old); i++) {
		t->inlining = old[i];
		if (inlining_fits(t) > 0)
			return;
	}
	t->inlining = t->magic == GO_MAGIC_1_20 ? since_1_20 : old[1];
	for (u32 i = MODULE_RODATA; t->magic >= GO_MAGIC_1_18 && t->module && i < MODULE_WORDS; i++) {
		t->gofunc = m[i];
		if (t->gofunc && inlining_fits(t) > 0)
			return;
	}
	t->gofunc = 0;
	t->inlining = (struct go_inlining){0};
}

/* Addresses before 1.18 are the dynamic linker's to fill in, if the program may lie anywhere. */
static struct error *relocate_table(struct go_table *t)
{
	if (t->magic >= GO_MAGIC_1_18)
		return NULL;
	for (u32 i = 0; i < t->file.img->nsegments; i++) {
		const struct image_segment *seg = &t->file.img->segments[i];

		if (t->addr >= seg->vaddr && t->addr - seg->vaddr < seg->filesz)
			return go_file_relocate(&t->file, t->addr, seg->vaddr + seg->filesz);
	}
	return NULL;
}

static void read_files(struct go_table *t)
{
	u32 offset;

	if (t->magic == GO_MAGIC_1_2 && go_u32(&t->file, t->functions + 16ULL * t->nfunctions + 8, &offset))
		t->files = t->addr + offset;
}

/* Takes the table at addr if it is one. */
static struct error *try_table(struct go_table *t, u64 addr, bool *ret)
{
	u64 m[MODULE_WORDS] = {0};
	struct error *err;

	*ret = false;
	if (!read_head(t, addr))
		return NULL;
	err = relocate_table(t);
	if (!err)
		err = find_module(t, m);
	if (err)
		return err;
	if (t->magic >= GO_MAGIC_1_18)
		t->text = m[MODULE_TEXT];
	read_files(t);
	if (t->garbled)
		go_table_find_key(t);
	*ret = (t->magic < GO_MAGIC_1_18 || t->text) && (!t->garbled || t->entry_key) && functions_make_sense(t);
	if (*ret)
		find_inlining(t, m);
	return NULL;
}

static struct error *search_segment(struct go_table *t, const struct image_segment *seg, bool *ret)
{
	struct error *err = NULL;
	enum go_magic magic;
	u32 number;

	for (u64 at = seg->vaddr; !err && !*ret && go_file_find(&t->file, seg, HEAD_BITS, HEAD_MASK, at, &at); at += 8)
		if (go_u32(&t->file, at, &number) && is_known(number, &magic))
			err = try_table(t, at, ret);
	return err;
}

/* Where it is likely to be: other linkers than Go's put it among relocated data, if the program may lie anywhere. */
static u32 rank(const struct image_segment *seg)
{
	return seg->flags & PF_X ? 2 : !(seg->flags & PF_W);
}

/* Without a section of its own: wherever in a segment the head of a table is. */
static struct error *search(struct go_table *t, bool *ret)
{
	struct image *img = t->file.img;
	struct error *err = NULL;

	for (u32 k = 0; k <= 2; k++)
		for (u32 i = 0; !err && !*ret && i < img->nsegments; i++)
			if (rank(&img->segments[i]) == k)
				err = search_segment(t, &img->segments[i], ret);
	return err;
}

static bool has_sections(struct image *img)
{
	size_t n;

	return !elf_getshdrnum(img->elf, &n) && n > 1;
}

static struct error *find_table(struct go_table *t, bool *is_go, bool *ret)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct image *img = t->file.img;
	struct error *err = NULL;
	u64 addr, size;

	*is_go = *ret = false;
	for (u32 i = 0; i < sizeof(names) / sizeof(*names) && !err && !*ret; i++)
		if (image_section_range(img, names[i], &addr, &size)) {
			*is_go = true;
			err = try_table(t, addr, ret);
		}
	if (err || *ret)
		return err;
	if (!*is_go)
		*is_go = image_section_range(img, ".go.buildinfo", &addr, &size) ||
		         image_section_range(img, ".note.go.buildid", &addr, &size);
	return *is_go || !has_sections(img) ? search(t, ret) : NULL;
}

struct error *go_table_open(struct image *img, struct go_table **ret)
{
	struct go_table *t;
	struct error *err;
	bool is_go, found;

	*ret = NULL;
	if (img->machine != EM_X86_64)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return &error_no_memory;
	go_file_init(&t->file, img);
	err = find_table(t, &is_go, &found);
	if (!err && t->file.no_memory)
		err = &error_no_memory;
	if (!err && is_go && !found)
		err = error_hint(
		        error_new(ERROR_UNSUPPORTED,
		                "%s is a Go program, but its table of functions (pclntab) is not of a known form",
		                img->path),
		        "Go 1.11 to 1.27 are known");
	if (err || !found) {
		go_table_close(t);
		return err;
	}
	*ret = t;
	return NULL;
}

void go_table_close(struct go_table *t)
{
	if (!t)
		return;
	go_file_free(&t->file);
	free(t);
}
