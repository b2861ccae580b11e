/* SPDX-License-Identifier: Apache-2.0 */
#include "inlines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cleanup.h"
#include "dwarf/alternate.h"
#include "dwarf/functions.h"
#include "dwarf/line.h"
#include "grow.h"
#include "symbols.h"
#include "table.h"

#define ENTRIES      (DWARF_FORM_LINE + 1)
#define MANY         1000u /* addresses that make it worth a thread to read ahead */
#define FOLLOWED_MAX 16u   /* references from a function to what it is an instance of */

struct function { /* what is known of one */
	const char *name;
	u32 definition;
};

struct inlines {
	struct dwarf_file *dwarf;
	struct table names;   /* a string by the hash of where it is, or of its bytes */
	struct table entries; /* an index into functions by the hash of where its entry is */
	struct function *functions;
	u32 nfunctions;
	struct dwarf_die chain[CHAIN_MAX];
	struct inline_frame frames[INLINES_MAX];
	char **strings;
	u32 nstrings;
};

struct place { /* of a string or an entry */
	u64 kind, owner, offset;
};

/* owner: the file or the unit in which kind (a form, or ENTRIES and more) and offset mean something. */
static u64 place_key(u64 kind, const void *owner, u64 offset)
{
	struct place p = {kind, (u64)(uintptr_t)owner, offset};

	return XXH3_64bits(&p, sizeof(p)) | 1;
}

struct error *inlines_open_debug(struct image *debug, const char *root, struct inlines **ret)
{
	struct inlines *in = calloc(1, sizeof(*in));
	struct error *err;

	*ret = NULL;
	if (!in)
		return &error_no_memory;
	err = dwarf_open(debug, &in->dwarf);
	if (!err && in->dwarf)
		err = dwarf_open_alternate(in->dwarf, root);
	if (err || !in->dwarf)
		inlines_close(in);
	else
		*ret = in;
	return err;
}

struct error *inlines_open(struct image *img, const char *root, struct inlines **ret)
{
	struct image *debug = NULL;
	struct error *err = inlines_open_debug(img, root, ret);

	if (!err && !*ret)
		err = symbols_debug_file(img, root, &debug);
	if (!err && debug)
		err = inlines_open_debug(debug, root, ret);
	image_put(debug);
	return err;
}

void inlines_close(struct inlines *in)
{
	if (!in)
		return;
	dwarf_close(in->dwarf);
	for (u32 i = 0; i < in->nstrings; i++)
		free(in->strings[i]);
	free(in->strings);
	free(in->functions);
	table_free(&in->names);
	table_free(&in->entries);
	free(in);
}

/* Takes over text, also on failure. */
static struct error *keep(struct inlines *in, u64 key, char *text, const char **ret)
{
	if (!text || grow(&in->strings, in->nstrings, sizeof(*in->strings))) {
		free(text);
		return &error_no_memory;
	}
	in->strings[in->nstrings++] = text;
	*ret = text;
	return table_put(&in->names, key, (u64)(uintptr_t)text);
}

/* The string of a value, kept once. */
static struct error *intern(struct inlines *in, struct dwarf_file *f, const struct dwarf_unit *unit,
        const struct dwarf_value *v, const char **ret)
{
	bool of_file = v->form == DW_FORM_strp || v->form == DW_FORM_string;
	u64 key = place_key(v->form, of_file ? (const void *)f : unit, v->value), len;
	const u64 *known = table_get(&in->names, key);
	const char *text;
	char *copy;

	if (known) {
		*ret = (const char *)(uintptr_t)*known;
		return NULL;
	}
	*ret = NULL;
	text = dwarf_string(f, unit, v, &len);
	if (!text || !len)
		return NULL;
	copy = malloc(len + 1);
	if (copy) {
		memcpy(copy, text, len);
		copy[len] = 0;
	}
	return keep(in, key, copy, ret);
}

/* What may still give the name of a function: entries to be read, the last one first. */
struct name_search {
	struct {
		struct dwarf_file *f;
		struct dwarf_unit *unit;
		u64 offset;
	} todo[FOLLOWED_MAX * 2 + 2];
	u32 ntodo, followed;
	const char *name; /* the first plain one */
	struct function found;
};

static void follow(struct name_search *s, struct dwarf_file *f, struct dwarf_unit *unit, const struct dwarf_value *ref)
{
	u64 offset;

	if (!ref->form || s->followed == FOLLOWED_MAX || !die_follow(&f, &unit, ref, &offset))
		return;
	s->followed++;
	s->todo[s->ntodo].f = f;
	s->todo[s->ntodo].unit = unit;
	s->todo[s->ntodo++].offset = offset;
}

static struct error *name_entry(struct inlines *in, struct name_search *s, struct dwarf_file *f,
        struct dwarf_unit *unit, const struct dwarf_die *die)
{
	struct error *err = NULL;

	if (die->linkage_name.form && !s->found.name)
		err = intern(in, f, unit, &die->linkage_name, &s->found.name);
	if (!err && !s->name && die->name.form)
		err = intern(in, f, unit, &die->name, &s->name);
	if (!s->found.definition)
		s->found.definition = die->decl_line.value;
	if (err || (s->found.name && s->found.definition))
		return err;
	follow(s, f, unit, &die->origin);
	follow(s, f, unit, &die->specification);
	return NULL;
}

static struct error *find_function(
        struct inlines *in, struct dwarf_unit *unit, const struct dwarf_die *die, struct function *ret)
{
	struct name_search s = {.ntodo = 0};
	struct error *err = name_entry(in, &s, in->dwarf, unit, die);

	while (!err && !(s.found.name && s.found.definition) && s.ntodo) {
		struct dwarf_file *f = s.todo[--s.ntodo].f;
		struct dwarf_unit *u = s.todo[s.ntodo].unit;
		struct dwarf_die next;
		struct die_walk w;

		if (dwarf_unit_root(f, u) && die_walk_start(&w, f, u, s.todo[s.ntodo].offset) &&
		        die_read(&w, s.todo[s.ntodo].offset, &next))
			err = name_entry(in, &s, f, u, &next);
	}
	*ret = s.found;
	if (!ret->name)
		ret->name = s.name;
	return err;
}

static struct error *keep_function(struct inlines *in, u64 key, const struct function *fn)
{
	struct error *err = grow(&in->functions, in->nfunctions, sizeof(*in->functions));

	if (err)
		return err;
	in->functions[in->nfunctions] = *fn;
	return table_put(&in->entries, key, in->nfunctions++);
}

/* Instances of one function share what is known of it: found once. */
static struct error *describe_function(
        struct inlines *in, struct dwarf_unit *unit, const struct dwarf_die *die, struct inline_frame *ret)
{
	bool instance = die->origin.form && !die->name.form && !die->linkage_name.form && !die->specification.form;
	u64 key = place_key(ENTRIES + die->origin.form * instance, unit, instance ? die->origin.value : die->offset);
	const u64 *known = table_get(&in->entries, key);
	struct error *err = NULL;
	struct function fn;

	if (known) {
		fn = in->functions[*known];
	} else {
		err = find_function(in, unit, die, &fn);
		if (!err)
			err = keep_function(in, key, &fn);
	}
	ret->name = fn.name;
	ret->definition = fn.definition;
	return err;
}

/* Tables share most of their paths. */
static struct error *path_of(
        struct inlines *in, struct dwarf_unit *unit, struct line_table *t, u64 file, const char **ret)
{
	u64 key;
	const u64 *known;
	char *path;
	struct error *err;

	*ret = NULL;
	if (file > t->nfiles)
		return NULL;
	*ret = t->paths[file];
	path = *ret ? NULL : line_path(in->dwarf, unit, t, file);
	if (!path)
		return NULL;
	key = XXH3_64bits(path, strlen(path)) & ~1ULL;
	known = table_get(&in->names, key ? key : 2);
	if (known && !strcmp((const char *)(uintptr_t)*known, path)) {
		free(path);
		*ret = (const char *)(uintptr_t)*known;
	} else {
		err = keep(in, key ? key : 2, path, ret);
		if (err)
			return err;
	}
	t->paths[file] = *ret;
	return NULL;
}

/* Of the innermost frame by the line table; of others by where the one inside was called. */
static struct error *place_frames(struct inlines *in, struct dwarf_unit *unit, u64 addr, u32 n)
{
	struct line_table *t = line_table_of(in->dwarf, unit);
	const struct line_row *row = t ? line_find(t, addr) : NULL;
	struct inline_frame *frame = in->frames;
	struct error *err = NULL;

	if (row) {
		frame->line = row->line;
		frame->column = row->column;
		err = path_of(in, unit, t, row->file, &frame->file);
	}
	for (u32 i = 1; i < n && t && !err; i++) {
		frame[i].line = in->chain[i - 1].call_line.value;
		frame[i].column = in->chain[i - 1].call_column.value;
		err = path_of(in, unit, t, in->chain[i - 1].call_file.value, &frame[i].file);
	}
	return err;
}

struct error *inlines_find(struct inlines *in, u64 addr, const struct inline_frame **ret, u32 *n)
{
	struct dwarf_unit *unit;
	struct error *err = NULL;

	*ret = in->frames;
	*n = 0;
	dwarf_refill(in->dwarf);
	unit = dwarf_unit_by_address(in->dwarf, addr);
	if (!unit)
		return NULL;
	*n = dwarf_chain(in->dwarf, unit, addr, in->chain);
	memset(in->frames, 0, (*n ? *n : 1) * sizeof(*in->frames));
	for (u32 i = 0; i < *n && !err; i++)
		err = describe_function(in, unit, &in->chain[i], &in->frames[i]);
	if (!err)
		err = place_frames(in, unit, addr, *n);
	if (!err && !*n)
		*n = in->frames[0].file != NULL;
	return err;
}

struct ordered {
	u64 unit, addr;
	u32 index;
};

static int compare(const void *left, const void *right)
{
	const struct ordered *a = left, *b = right;

	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	return (a->addr > b->addr) - (a->addr < b->addr);
}

struct error *inlines_order(struct inlines *in, const u64 *addrs, u32 n, u32 *order)
{
	cleanup(free) struct ordered *list = malloc((n + 1) * sizeof(*list));

	if (!list)
		return &error_no_memory;
	dwarf_refill(in->dwarf);
	for (u32 i = 0; i < n; i++)
		list[i] = (struct ordered){dwarf_unit_guess(in->dwarf, addrs[i]), addrs[i], i};
	if (n)
		qsort(list, n, sizeof(*list), compare);
	for (u32 i = 0; i < n; i++)
		order[i] = list[i].index;
	if (n >= MANY)
		section_sequential(&in->dwarf->sections[DWARF_INFO]);
	return NULL;
}
