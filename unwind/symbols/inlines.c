/* SPDX-License-Identifier: Apache-2.0 */
#include "inlines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "cfi/cfi_search_cache.h"
#include "cleanup.h"
#include "dwarf/alternate.h"
#include "dwarf/functions.h"
#include "dwarf/line.h"
#include "grow.h"
#include "symbols.h"
#include "table.h"

#define ENTRIES      (DWARF_FORM_LINE + 1)
#define MANY         1000u      /* addresses that make it worth a thread to read ahead */
#define WAITING      (1u << 16) /* frames, at most, that wait for names at once */
#define FOLLOWED_MAX 16u        /* references from a function to what it is an instance of */

struct text {
	struct dwarf_section *section; /* NULL: it was looked at */
	u64 offset;
	const char *bytes; /* NULL: not yet read, or nothing there */
};

struct function {               /* what is known of one */
	u32 linkage_name, name; /* numbers of texts, from 1; 0: none */
	u32 definition;
};

struct found {
	u32 index, first, n; /* of an address, in frames and their functions */
};

struct inlines {
	struct dwarf_file *dwarf;
	bool whole_kept;    /* the cache knows that .debug_aranges is whole */
	struct table names; /* the number of a text by the hash of where it is; a path by that of its bytes */
	struct text *texts;
	u32 ntexts, nread;    /* nread: all before were looked at */
	struct table entries; /* an index into functions by the hash of where its entry is */
	struct function *functions;
	u32 nfunctions;
	struct dwarf_die chain[CHAIN_MAX];
	struct inline_frame frames[INLINES_MAX];
	u32 of[INLINES_MAX]; /* the function of a frame, from 1; 0: unknown */
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

/* Of .debug_aranges that name all units; what is kept are the sizes of the sections. */
#define WHOLE_SEARCH "aranges whole 1"

static struct search_result whole_result(const struct dwarf_file *f)
{
	return (struct search_result){
	        .values = {f->sections[DWARF_INFO].size, f->sections[DWARF_ARANGES].size}, .n = 2};
}

static void recall_whole(struct inlines *in)
{
	struct search_result want = whole_result(in->dwarf), got;

	in->whole_kept = search_cache_load(in->dwarf->img, WHOLE_SEARCH, &got) && got.n == want.n &&
	                 !memcmp(got.values, want.values, want.n * sizeof(*want.values));
	in->dwarf->aranges_whole = in->whole_kept;
}

static void keep_whole(const struct inlines *in)
{
	struct search_result result;

	if (!in->dwarf || !in->dwarf->aranges_whole || in->whole_kept)
		return;
	result = whole_result(in->dwarf);
	search_cache_store(in->dwarf->img, WHOLE_SEARCH, &result);
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
	if (err || !in->dwarf) {
		inlines_close(in);
		return err;
	}
	recall_whole(in);
	*ret = in;
	return NULL;
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
	keep_whole(in);
	dwarf_close(in->dwarf);
	for (u32 i = 0; i < in->nstrings; i++)
		free(in->strings[i]);
	free(in->strings);
	free(in->texts);
	free(in->functions);
	table_free(&in->names);
	table_free(&in->entries);
	free(in);
}

void inlines_rest(struct inlines *in)
{
	dwarf_rest(in->dwarf);
	free(in->functions);
	free(in->texts);
	in->functions = NULL;
	in->texts = NULL;
	in->nfunctions = in->ntexts = in->nread = 0;
	table_free(&in->names); /* its keys and those of entries are addresses of units */
	table_free(&in->entries);
}

/* Takes over string, also on failure. */
static struct error *own(struct inlines *in, char *string)
{
	if (!string || grow(&in->strings, in->nstrings, sizeof(*in->strings))) {
		free(string);
		return &error_no_memory;
	}
	in->strings[in->nstrings++] = string;
	return NULL;
}

static struct error *read_text(struct inlines *in, struct text *text)
{
	u64 len;
	const char *bytes = section_string(text->section, text->offset, DWARF_STRING_MAX, &len);
	struct error *err;
	char *copy;

	text->section = NULL;
	if (!bytes || !len)
		return NULL;
	copy = malloc(len + 1);
	if (copy) {
		memcpy(copy, bytes, len);
		copy[len] = 0;
	}
	err = own(in, copy);
	if (!err)
		text->bytes = copy;
	return err;
}

static int compare_texts(const void *left, const void *right)
{
	const struct text *a = *(struct text *const *)left, *b = *(struct text *const *)right;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Reads the texts that were met, in the order of the file: a compressed section is unpacked once. */
static struct error *read_texts(struct inlines *in)
{
	u32 n = in->ntexts - in->nread;
	cleanup(free) struct text **list = malloc((n + 1) * sizeof(*list));
	struct error *err = list ? NULL : &error_no_memory;

	for (u32 i = 0; i < n && !err; i++)
		list[i] = &in->texts[in->nread + i];
	if (n && !err)
		qsort(list, n, sizeof(*list), compare_texts);
	for (u32 i = 0; i < n && !err; i++)
		if (list[i]->section)
			err = read_text(in, list[i]);
	in->nread = in->ntexts;
	return err;
}

/* Numbers the string of an attribute. Its bytes are read later, those of .debug_info now. *ret 0: there is none. */
static struct error *text_of(
        struct inlines *in, struct dwarf_file *f, const struct dwarf_unit *unit, const struct dwarf_value *v, u32 *ret)
{
	bool of_file = v->form == DW_FORM_strp || v->form == DW_FORM_string;
	u64 key = place_key(v->form, of_file ? (const void *)f : unit, v->value);
	const u64 *known = table_get(&in->names, key);
	struct text text = {0};
	struct error *err = NULL;

	*ret = known ? *known : 0;
	if (known)
		return NULL;
	text.section = dwarf_string_at(f, unit, v, &text.offset);
	if (!text.section || text.offset >= text.section->size)
		return NULL;
	if (text.section == &f->sections[DWARF_INFO]) {
		err = read_text(in, &text);
		if (err || !text.bytes)
			return err;
	}
	err = grow(&in->texts, in->ntexts, sizeof(*in->texts));
	if (err)
		return err;
	in->texts[in->ntexts++] = text;
	*ret = in->ntexts;
	return table_put(&in->names, key, in->ntexts);
}

static const char *name_of(const struct inlines *in, u32 function)
{
	const struct function *fn = function ? &in->functions[function - 1] : NULL;
	const char *name = fn && fn->linkage_name ? in->texts[fn->linkage_name - 1].bytes : NULL;

	return name || !fn || !fn->name ? name : in->texts[fn->name - 1].bytes;
}

/* What may still give the name of a function: entries to be read, the last one first. */
struct name_search {
	struct {
		struct dwarf_file *f;
		struct dwarf_unit *unit;
		u64 offset;
	} todo[FOLLOWED_MAX * 2 + 2];
	u32 ntodo, followed;
	struct function found; /* the first of each */
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

	if (die->linkage_name.form && !s->found.linkage_name)
		err = text_of(in, f, unit, &die->linkage_name, &s->found.linkage_name);
	if (!err && !s->found.name && die->name.form)
		err = text_of(in, f, unit, &die->name, &s->found.name);
	if (!s->found.definition)
		s->found.definition = die->decl_line.value;
	if (err || (s->found.linkage_name && s->found.definition))
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

	while (!err && !(s.found.linkage_name && s.found.definition) && s.ntodo) {
		struct dwarf_file *f = s.todo[--s.ntodo].f;
		struct dwarf_unit *u = s.todo[s.ntodo].unit;
		struct dwarf_die next;
		struct die_walk w;

		if (dwarf_unit_root(f, u) && die_walk_start(&w, f, u, s.todo[s.ntodo].offset) &&
		        die_read(&w, s.todo[s.ntodo].offset, &next))
			err = name_entry(in, &s, f, u, &next);
	}
	*ret = s.found;
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
        struct inlines *in, struct dwarf_unit *unit, const struct dwarf_die *die, u32 *ret)
{
	bool instance = die->origin.form && !die->name.form && !die->linkage_name.form && !die->specification.form;
	u64 key = place_key(ENTRIES + die->origin.form * instance, unit, instance ? die->origin.value : die->offset);
	const u64 *known = table_get(&in->entries, key);
	struct error *err = NULL;
	struct function fn;

	*ret = known ? *known + 1 : 0;
	if (known)
		return NULL;
	err = find_function(in, unit, die, &fn);
	if (!err)
		err = keep_function(in, key, &fn);
	if (!err)
		*ret = in->nfunctions;
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
		err = own(in, path);
		if (!err)
			err = table_put(&in->names, key ? key : 2, (u64)(uintptr_t)path);
		if (err)
			return err;
		*ret = path;
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

/* All but the names. */
static struct error *look_up(struct inlines *in, u64 addr, u32 *n)
{
	struct dwarf_unit *unit;
	struct error *err = NULL;

	*n = 0;
	dwarf_refill(in->dwarf);
	unit = dwarf_unit_by_address(in->dwarf, addr);
	if (!unit)
		return NULL;
	*n = dwarf_chain(in->dwarf, unit, addr, in->chain);
	memset(in->frames, 0, (*n ? *n : 1) * sizeof(*in->frames));
	in->of[0] = 0;
	for (u32 i = 0; i < *n && !err; i++) {
		err = describe_function(in, unit, &in->chain[i], &in->of[i]);
		if (!err)
			in->frames[i].definition = in->functions[in->of[i] - 1].definition;
	}
	if (!err)
		err = place_frames(in, unit, addr, *n);
	if (!err && !*n)
		*n = in->frames[0].file != NULL;
	return err;
}

struct error *inlines_find(struct inlines *in, u64 addr, const struct inline_frame **ret, u32 *n)
{
	struct error *err = look_up(in, addr, n);

	*ret = in->frames;
	if (!err)
		err = read_texts(in);
	for (u32 i = 0; i < *n && !err; i++)
		in->frames[i].name = name_of(in, in->of[i]);
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

static struct ordered *order(struct inlines *in, const u64 *addrs, u32 n)
{
	struct ordered *list = malloc((n + 1) * sizeof(*list));

	if (!list)
		return NULL;
	dwarf_refill(in->dwarf);
	for (u32 i = 0; i < n; i++)
		list[i] = (struct ordered){dwarf_unit_guess(in->dwarf, addrs[i]), addrs[i], i};
	if (n)
		qsort(list, n, sizeof(*list), compare);
	if (n >= MANY)
		section_sequential(&in->dwarf->sections[DWARF_INFO]);
	for (struct dwarf_file *f = in->dwarf; f; f = f->alternate)
		section_ordered(&f->sections[DWARF_STR]);
	return list;
}

/* What was looked up and waits for its names. */
struct waiting {
	struct found *list;
	u32 n;
	struct inline_frame *frames;
	u32 *of;
	u32 nframes;
	struct error *(*found)(void *ctx, u32 index, const struct inline_frame *frames, u32 n);
	void *ctx;
};

static void wait_for_names(struct inlines *in, struct waiting *w, u32 index, u32 n)
{
	memcpy(w->frames + w->nframes, in->frames, n * sizeof(*w->frames));
	memcpy(w->of + w->nframes, in->of, n * sizeof(*w->of));
	w->list[w->n++] = (struct found){index, w->nframes, n};
	w->nframes += n;
}

static struct error *hand_out(struct inlines *in, struct waiting *w)
{
	struct error *err = read_texts(in);

	for (u32 i = 0; i < w->nframes && !err; i++)
		w->frames[i].name = name_of(in, w->of[i]);
	for (u32 i = 0; i < w->n && !err; i++)
		err = w->found(w->ctx, w->list[i].index, w->frames + w->list[i].first, w->list[i].n);
	w->n = w->nframes = 0;
	return err;
}

struct error *inlines_find_all(struct inlines *in, const u64 *addrs, u32 n,
        struct error *(*found)(void *ctx, u32 index, const struct inline_frame *frames, u32 n), void *ctx)
{
	cleanup(free) struct ordered *list = order(in, addrs, n);
	cleanup(free) struct found *waiting = malloc((n + 1) * sizeof(*waiting));
	cleanup(free) struct inline_frame *frames = malloc(WAITING * sizeof(*frames));
	cleanup(free) u32 *of = malloc(WAITING * sizeof(*of));
	struct waiting w = {waiting, 0, frames, of, 0, found, ctx};
	struct error *err = list && waiting && frames && of ? NULL : &error_no_memory;
	u32 depth;

	for (u32 i = 0; i < n && !err; i++) {
		if (w.nframes + INLINES_MAX > WAITING)
			err = hand_out(in, &w);
		if (!err)
			err = look_up(in, list[i].addr, &depth);
		if (!err)
			wait_for_names(in, &w, list[i].index, depth);
	}
	return err ? err : hand_out(in, &w);
}
