/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "grow.h"
#include "runtime.h"
#include "symbols_table.h"

#define SYMBOL_NAME_SHORT 256u
#define COMPARED_MAX      64u /* aliases whose names are compared */

static void use_table(struct symbols *s, u32 kind, struct image *img, u32 type)
{
	if (elf_table_find(img, type, &s->sources[kind].table))
		s->sources[kind].img = img;
}

static struct error *open_debug(struct symbols *s, struct image *img, const char *root)
{
	struct image *debug = NULL;
	struct error *err = symbols_debug_file(img, root, &debug);

	if (!err && debug)
		s->whole = true;
	else if (!err)
		err = symbols_minidebug(img, &debug);
	if (err || !debug)
		return err;
	use_table(s, SOURCE_DEBUG, debug, SHT_SYMTAB);
	if (!s->sources[SOURCE_DEBUG].img)
		image_put(debug);
	return NULL;
}

static void symbols_destroy(struct symbols *s)
{
	u32 i;

	if (!s)
		return;
	image_put(s->sources[SOURCE_DEBUG].img);
	for (i = 0; i < s->nnames; i++)
		free(s->names[i]);
	free(s->names);
	free(s->by_language);
	symbol_files_destroy(s->files);
	free(s->entries);
	free(s->reach);
	free(s);
}

static void symbols_give(struct image *img, struct symbols *s)
{
	img->symbols = s;
	img->destroy.symbols = symbols_destroy;
}

struct error *symbols_load(struct image *img, const char *root)
{
	struct error *err = NULL;
	struct symbols *s;

	if (img->symbols)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return &error_no_memory;
	use_table(s, SOURCE_SYMTAB, img, SHT_SYMTAB);
	use_table(s, SOURCE_DYNSYM, img, SHT_DYNSYM);
	use_table(s, SOURCE_PLT, img, SHT_DYNSYM);
	s->whole = s->sources[SOURCE_SYMTAB].img;
	if (!s->whole)
		err = open_debug(s, img, root);
	if (err)
		symbols_destroy(s);
	else
		symbols_give(img, s);
	return err;
}

struct error *symbols_read(struct image *img, const char *root)
{
	struct error *err = symbols_load(img, root);

	return err || img->symbols->made ? err : symbols_make(img->symbols, img);
}

bool symbols_are_read(const struct image *img)
{
	return img->symbols && img->symbols->made;
}

void symbols_move(struct image *to, struct image *from)
{
	struct symbols *s = from->symbols;

	if (!symbols_are_read(from) || symbols_are_read(to))
		return;
	for (u32 i = 0; i < SOURCE_MAX; i++)
		if (s->sources[i].img == from)
			s->sources[i].img = to;
	symbols_destroy(to->symbols);
	symbols_give(to, s);
	from->symbols = NULL;
}

/* Names stay, for whoever was given them. */
void symbols_forget(struct symbols *s)
{
	s->made = false;
	free(s->entries);
	free(s->reach);
	s->entries = NULL;
	s->reach = NULL;
	s->count = s->room = s->ncode = 0;
}

void symbols_use_debug(struct image *img, struct image *debug)
{
	struct symbols *s = img->symbols;
	struct elf_table table;

	if (!s || s->sources[SOURCE_SYMTAB].img || !elf_table_find(debug, SHT_SYMTAB, &table))
		return;
	image_put(s->sources[SOURCE_DEBUG].img);
	s->sources[SOURCE_DEBUG] = (struct symbol_source){image_get(debug), table};
	s->whole = true;
	symbols_forget(s);
}

/* Number of entries that start at or before at. */
static u32 upper_bound(const struct symbols *s, u64 at)
{
	u32 low = 0, high = s->count, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (entry_start(&s->entries[mid]) <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The last entry that covers at, sized if there is one. */
static struct symbol_entry *innermost(const struct symbols *s, u64 at)
{
	struct symbol_entry *e, *unsized = NULL;
	u32 i = upper_bound(s, at);

	while (i) {
		if (s->reach[(i - 1) / SYMBOLS_BLOCK] <= at) {
			i = (i - 1) / SYMBOLS_BLOCK * SYMBOLS_BLOCK;
			continue;
		}
		e = &s->entries[--i];
		if (!entry_covers(e, at))
			continue;
		if (!(entry_rank(e) & RANK_UNSIZED))
			return e;
		if (!unsized)
			unsized = e;
	}
	return unsized;
}

/* Most names are short. */
bool symbols_read_string(const struct symbol_source *src, u32 name, char *dst)
{
	u64 left = src->table.strings.size - name, at = src->table.strings.offset + name;
	size_t len = left < SYMBOL_NAME_SHORT ? left : SYMBOL_NAME_SHORT;

	if (!elf_read(src->img, dst, len, at))
		return false;
	if (!memchr(dst, 0, len)) {
		len = left < SYMBOL_NAME_MAX ? left : SYMBOL_NAME_MAX - 1;
		if (!elf_read(src->img, dst, len, at))
			return false;
	}
	dst[len] = 0;
	return *dst;
}

static bool read_name(struct symbols *s, const struct symbol_entry *e, char *dst)
{
	size_t len;
	char *version;

	if (!symbols_read_string(&s->sources[entry_source(e)], e->name, dst))
		return false;
	version = strchr(dst + 1, '@');
	if (version && strcmp(version, "@plt"))
		*version = 0;
	if (entry_source(e) == SOURCE_PLT) {
		len = strlen(dst);
		len = len < SYMBOL_NAME_MAX - sizeof("@plt") ? len : SYMBOL_NAME_MAX - sizeof("@plt");
		strcpy(dst + len, "@plt");
	}
	return true;
}

/* Underscores in front mark an internal alias, but not in a mangled name. */
static size_t underscores(const char *name)
{
	return strncmp(name, "_Z", 2) && strncmp(name, "_R", 2) ? strspn(name, "_") : 0;
}

static bool is_nicer(const char *a, const char *b)
{
	size_t x = underscores(a), y = underscores(b);

	if (x != y)
		return x < y;
	x = strlen(a);
	y = strlen(b);
	return x != y ? x < y : strcmp(a, b) < 0;
}

static bool is_better(const struct symbol_entry *a, const struct symbol_entry *b)
{
	return entry_rank(a) != entry_rank(b) ? entry_rank(a) < entry_rank(b) : a->size < b->size;
}

/* The best of those that start where e does and cover at: *ret; how many are as good: the result. */
static u32 best_alias(const struct symbols *s, u64 at, struct symbol_entry *e, struct symbol_entry **ret)
{
	u64 start = entry_start(e);
	u32 ties = 0;

	while (e > s->entries && entry_start(e - 1) == start)
		e--;
	for (*ret = NULL; e < s->entries + s->count && entry_start(e) == start; e++) {
		if (!entry_covers(e, at))
			continue;
		if (!*ret || is_better(e, *ret)) {
			*ret = e;
			ties = 0;
		}
		ties += !is_better(*ret, e);
	}
	return ties;
}

/* Gives e its name; the only one of its equals that has one from then on. */
static bool keep_name(struct symbols *s, struct symbol_entry *e, const char *name)
{
	char *copy = grow(&s->names, s->nnames, sizeof(*s->names)) ? NULL : strdup(name);

	if (!copy)
		return false;
	e->key = (e->key & ~0xffULL) | SOURCE_NAMED;
	e->name = s->nnames;
	s->names[s->nnames++] = copy;
	return true;
}

static bool is_equal(const struct symbol_entry *a, const struct symbol_entry *b)
{
	return !is_better(a, b) && !is_better(b, a);
}

/* Of first and what ties with it (behind it, not all in a row) the one that keeps a name from an earlier search. */
static struct symbol_entry *named(struct symbol_entry *first, u32 ties)
{
	struct symbol_entry *e;

	for (e = first; ties; e++) {
		if (!is_equal(first, e))
			continue;
		if (entry_source(e) == SOURCE_NAMED)
			return e;
		ties--;
	}
	return NULL;
}

/* The one with the nicest name, which it keeps. */
static struct symbol_entry *name_best(struct symbols *s, struct symbol_entry *first, u32 ties)
{
	struct symbol_entry *e, *best = named(first, ties);
	char name[2][SYMBOL_NAME_MAX];
	u32 spare = 0, seen = 0;

	if (best)
		return best;
	for (e = first; seen < ties && seen < COMPARED_MAX; e++) {
		if (!is_equal(first, e))
			continue;
		seen++;
		if (!read_name(s, e, name[spare]) || (best && !is_nicer(name[spare], name[!spare])))
			continue;
		best = e;
		spare = !spare;
	}
	return best && keep_name(s, best, name[!spare]) ? best : NULL;
}

static struct symbol_entry *find_entry(struct symbols *s, struct image *img, u64 addr)
{
	if (!s)
		return NULL;
	if (!s->made)
		error_free(symbols_make(s, img));
	return addr >= s->base ? innermost(s, addr - s->base) : NULL;
}

bool symbols_find(struct image *img, u64 addr, struct symbol *ret)
{
	struct symbols *s = img->symbols;
	struct symbol_entry *e = find_entry(s, img, addr);
	u32 ties;

	if (!e)
		return false;
	ties = best_alias(s, addr - s->base, e, &e);
	e = name_best(s, e, ties);
	if (!e)
		return false;
	ret->start = s->base + entry_start(e);
	ret->end = ret->start + e->size;
	ret->name = s->names[e->name];
	ret->unsized = entry_rank(e) & RANK_UNSIZED;
	return true;
}

const struct mapping *symbols_of_frame(const struct mapping *mappings, u32 n, const struct frame *f, struct symbol *ret)
{
	u64 addr = frame_addr(f) - 1;
	const struct mapping *m = frame_kind(f) == FRAME_NATIVE ? mapping_find(mappings, n, addr) : NULL;

	return m && m->image && symbols_find(m->image, addr - m->bias, ret) ? m : NULL;
}

bool symbols_own(const struct image *img)
{
	return img->symbols && img->symbols->sources[SOURCE_SYMTAB].img;
}

bool symbols_has_alias(struct image *img, u64 addr, const char *name)
{
	struct symbols *s = img->symbols;
	struct symbol_entry *e = find_entry(s, img, addr);
	u64 start = e ? entry_start(e) : 0, hash = XXH3_64bits_withSeed(name, strlen(name), start);
	char text[SYMBOL_NAME_MAX];
	u32 seen = 0;

	if (e && s->alias_hash == hash)
		return true;
	while (e && e > s->entries && entry_start(e - 1) == start)
		e--;
	for (; e && e < s->entries + s->count && entry_start(e) == start && seen < COMPARED_MAX; e++, seen++)
		if (entry_source(e) == SOURCE_NAMED ? !strcmp(s->names[e->name], name)
		                                    : read_name(s, e, text) && !strcmp(text, name)) {
			s->alias_hash = hash;
			return true;
		}
	return false;
}
