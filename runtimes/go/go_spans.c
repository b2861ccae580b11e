/* SPDX-License-Identifier: Apache-2.0 */
#include "go_spans.h"

#include <stdlib.h>
#include <string.h>

#include "clean_text.h"
#include "cleanup.h"
#include "grow.h"
#include "table.h"

#define SPANS_MAX    (1u << 26)
#define SPANS_PIECE  1024
#define CHECKED      16
#define HEAP_SEARCH  (1u << 18) /* bytes of mheap that allspans lies in, behind the page allocator */
#define PAGE         8192ull
#define PAGES_MAX    (1ull << 32)
#define SPAN_BYTES   160
#define IN_USE       1 /* mSpanInUse */
#define SPAN_MAX     (1u << 20)
#define MODULE_WORDS 64
#define TYPES_MAX    (1u << 20)
#define NAME_BYTES   256
#define TYPE_BYTES   48
#define EXTRA_STAR   2 /* abi.TFlagExtraStar */

/* Offsets of 1.22 to 1.26 in mspan. */
enum {
	AT_START = 24,
	AT_PAGES = 32,
	AT_FREE = 48,  /* freeindex: u16 */
	AT_N = 50,     /* nelems: u16 */
	AT_BITS = 64,  /* allocBits */
	AT_COUNT = 96, /* allocCount: u16 */
	AT_CLASS = 98, /* spanclass: size class << 1 | without pointers */
	AT_STATE = 99,
	AT_SIZE = 104, /* elemsize */
	AT_TYPE = 152, /* largeType */
};

static u64 word(const u8 *span, u32 at)
{
	u64 ret;

	memcpy(&ret, span + at, 8);
	return ret;
}

static u16 half(const u8 *span, u32 at)
{
	u16 ret;

	memcpy(&ret, span + at, 2);
	return ret;
}

struct kind {
	u64 key; /* size << 1 | without pointers, or a type's address */
	char *name;
	u64 size; /* of a slot; 0: of several sizes (large objects) */
	u64 count, bytes;
};

struct go_spans {
	struct kind *kinds;
	u32 n;
	struct table at; /* by key_of(): number + 1 */
	u64 disagree;    /* spans whose bits and count differ: they changed meanwhile */
	u64 spans, unread;
};

struct reading {
	const struct go_view *v;
	struct go_spans *s;
	struct go_module module;
	u8 *span;
};

/* --- where they are --- */

static bool is_span(const struct go_view *v, u64 at, u8 span[SPAN_BYTES])
{
	u64 size, pages;

	if (!at || at & 7 || !memory_read(v->p->memory, span, SPAN_BYTES, at))
		return false;
	size = word(span, AT_SIZE);
	pages = word(span, AT_PAGES);
	if (word(span, AT_START) & (PAGE - 1) || pages > PAGES_MAX)
		return false;
	if (span[AT_STATE] != IN_USE)
		return span[AT_STATE] <= 2;
	return word(span, AT_START) && pages && size && !(size & 7) && half(span, AT_COUNT) <= half(span, AT_N) &&
	       half(span, AT_FREE) <= half(span, AT_N) && half(span, AT_N) * size <= pages * PAGE;
}

/* A slice of pointers to spans, one of which is in use. */
static bool is_allspans(const struct go_view *v, const u64 slice[3])
{
	u64 first[CHECKED];
	u32 n = slice[1] < CHECKED ? (u32)slice[1] : CHECKED, used = 0;
	u8 span[SPAN_BYTES];

	if (!slice[0] || slice[0] & 7 || !slice[1] || slice[1] > slice[2] || slice[2] > SPANS_MAX ||
	        !memory_read(v->p->memory, first, n * 8ull, slice[0]))
		return false;
	for (u32 i = 0; i < n; i++) {
		if (!is_span(v, first[i], span))
			return false;
		used += span[AT_STATE] == IN_USE;
	}
	return used;
}

static bool search_heap(const struct go_view *v, u64 heap, u64 slice[3])
{
	u64 words[512 + 2];

	for (u32 at = 0; at < HEAP_SEARCH; at += 4096) {
		if (!memory_read(v->p->memory, words, sizeof(words), heap + at))
			return false;
		for (u32 i = 0; i < 512; i++)
			if (words[i + 1] && words[i + 1] <= words[i + 2] && is_allspans(v, words + i)) {
				memcpy(slice, words + i, 24);
				return true;
			}
	}
	return false;
}

bool go_spans_find(const struct go_view *v, u64 slice[3])
{
	struct go_wanted wanted = {.name = "runtime.mallocinit"};
	struct go_code *code = go_code_create();
	struct go_references refs = {0};
	bool found = false;

	go_functions_named(v->table, &wanted, 1);
	if (code && wanted.found)
		go_code_references(code, v->table, &wanted.fn, &refs);
	go_code_destroy(code);
	for (u32 i = 0; i < refs.n && !found; i++)
		found = search_heap(v, refs.at[i] + v->bias, slice);
	return found;
}

/*
 * In moduledata, in a row: noptrdata, enoptrdata, data, edata, bss, ebss, noptrbss, enoptrbss, covctrs, ecovctrs, end,
 * gcdata, gcbss, types, etypes, rodata, gofunc.
 */
bool go_module_read(const struct go_view *v, struct go_module *ret)
{
	u64 words[MODULE_WORDS];

	*ret = (struct go_module){0};
	if (!v->table->module || !v->table->gofunc ||
	        !memory_read(v->p->memory, words, sizeof(words), v->table->module + v->bias))
		return false;
	for (u32 i = 16; i < MODULE_WORDS; i++)
		if (words[i] == v->table->gofunc + v->bias && words[i - 3] < words[i - 2])
			*ret = (struct go_module){.types = words[i - 3],
			        .etypes = words[i - 2],
			        .data = {words[i - 14], words[i - 13]},
			        .bss = {words[i - 12], words[i - 11]}};
	return ret->types;
}

/* --- kinds --- */

static u64 key_of(u64 key)
{
	key *= 0x9e3779b97f4a7c15ull;
	return (key ^ key >> 29) | 1ull << 63;
}

static struct error *kind_of(struct go_spans *s, u64 key, u64 size, const char *name, struct kind **ret)
{
	const u64 *known = table_get(&s->at, key_of(key));
	struct error *err;
	char *copy;

	if (known) {
		*ret = &s->kinds[*known - 1];
		if ((*ret)->size != size)
			(*ret)->size = 0;
		return NULL;
	}
	copy = strdup(name);
	err = copy ? grow(&s->kinds, s->n, sizeof(*s->kinds)) : &error_no_memory;
	if (!err)
		err = table_put(&s->at, key_of(key), s->n + 1);
	if (err) {
		free(copy);
		return err;
	}
	s->kinds[s->n] = (struct kind){.key = key, .name = copy, .size = size};
	*ret = &s->kinds[s->n++];
	return NULL;
}

/* A name (internal/abi/type.go: Name): flags, its length in 7 bits a byte, its bytes. */
bool go_type_text(const struct go_view *v, u64 addr, bool star, char *ret, size_t size)
{
	u8 name[NAME_BYTES];
	u32 at = 1, n;

	*ret = 0;
	if (!memory_read(v->p->memory, name, sizeof(name), addr))
		return false;
	n = name[at] & 127;
	if (name[at++] & 128)
		n |= (u32)name[at++] << 7;
	if (star && n) {
		at++;
		n--;
	}
	n = n < sizeof(name) - at ? n : sizeof(name) - at;
	n = n < size - 1 ? n : (u32)size - 1;
	memcpy(ret, name + at, n);
	ret[n] = 0;
	return n;
}

bool go_type_name(const struct go_view *v, const struct go_module *m, u64 type, char *ret, size_t size)
{
	u8 head[TYPE_BYTES];
	s32 offset;

	if (type < m->types || type >= m->etypes || type & 7 || !memory_read(v->p->memory, head, sizeof(head), type))
		return false;
	memcpy(&offset, head + 40, 4);
	return offset > 0 && (u64)offset < m->etypes - m->types &&
	       go_type_text(v, m->types + (u64)offset, head[20] & EXTRA_STAR, ret, size);
}

static struct error *count_typed(struct reading *r, u64 type, u64 size)
{
	char name[NAME_BYTES];
	struct error *err;
	struct kind *k;

	if (!go_type_name(r->v, &r->module, type, name, sizeof(name))) {
		type = 1; /* its header is not written yet */
		strcpy(name, "(no type yet)");
	}
	err = kind_of(r->s, type, size, name, &k);
	if (err)
		return err;
	k->count++;
	k->bytes += size;
	return NULL;
}

static struct error *count_untyped(struct reading *r, const u8 *span)
{
	u64 size = word(span, AT_SIZE), key = size << 1 | (span[AT_CLASS] & 1);
	bool large = span[AT_CLASS] < 2;
	char name[NAME_BYTES];
	struct kind *k;
	struct error *err;

	if (large)
		snprintf(name, sizeof(name), "(large objects%s)", span[AT_CLASS] & 1 ? " without pointers" : "");
	else
		snprintf(name, sizeof(name), "(%lu bytes%s)", size, span[AT_CLASS] & 1 ? ", without pointers" : "");
	err = kind_of(r->s, large ? 2ull + (span[AT_CLASS] & 1) : key, size, name, &k);
	if (err)
		return err;
	k->count += half(span, AT_COUNT);
	k->bytes += half(span, AT_COUNT) * size;
	return NULL;
}

/* --- spans --- */

/* Objects before freeindex, and behind it those whose bit is set, are allocated (mspan.isFree()). */
static struct error *each_object(struct reading *r, const u8 *span)
{
	u64 size = word(span, AT_SIZE), start = word(span, AT_START), type;
	u32 n = half(span, AT_N), free = half(span, AT_FREE), seen = 0;
	u8 bits[8192 + 8];
	struct error *err = NULL;

	if (n * size > SPAN_MAX || !memory_read(r->v->p->memory, r->span, n * size, start) ||
	        !memory_read(r->v->p->memory, bits, (n + 7) / 8, word(span, AT_BITS)))
		return count_untyped(r, span);
	for (u32 i = 0; !err && i < n; i++) {
		if (i >= free && !(bits[i / 8] >> (i % 8) & 1))
			continue;
		seen++;
		memcpy(&type, r->span + i * size, 8);
		err = count_typed(r, type, size);
	}
	r->s->disagree += seen != half(span, AT_COUNT);
	return err;
}

bool go_span_read(const struct go_view *v, u64 at, struct go_span *ret)
{
	u8 span[SPAN_BYTES];

	if (!is_span(v, at, span))
		return false;
	*ret = (struct go_span){.start = word(span, AT_START),
	        .size = word(span, AT_SIZE),
	        .bits = word(span, AT_BITS),
	        .type = word(span, AT_TYPE),
	        .n = span[AT_STATE] == IN_USE ? half(span, AT_N) : 0,
	        .free = half(span, AT_FREE),
	        .plain = span[AT_CLASS] & 1,
	        .large = span[AT_CLASS] < 2};
	return true;
}

static struct error *add_span(struct reading *r, u64 at)
{
	u8 span[SPAN_BYTES];

	if (!is_span(r->v, at, span)) {
		r->s->unread++;
		return NULL;
	}
	if (span[AT_STATE] != IN_USE || !half(span, AT_COUNT))
		return NULL;
	r->s->spans++;
	if (span[AT_CLASS] & 1 || !r->module.types)
		return count_untyped(r, span);
	if (span[AT_CLASS] < 2)
		return count_typed(r, word(span, AT_TYPE), word(span, AT_SIZE));
	return word(span, AT_SIZE) > GO_HEADER_FROM ? each_object(r, span) : count_untyped(r, span);
}

static struct error *read_spans(struct reading *r, const u64 slice[3])
{
	u64 piece[SPANS_PIECE];
	struct error *err = NULL;

	for (u64 i = 0; !err && i < slice[1]; i += SPANS_PIECE) {
		u64 n = slice[1] - i < SPANS_PIECE ? slice[1] - i : SPANS_PIECE;

		if (!memory_read(r->v->p->memory, piece, n * 8, slice[0] + 8 * i))
			return error_new(ERROR_NO_PROCESS, "process %d: its spans cannot be read", r->v->p->pid);
		for (u64 k = 0; !err && k < n; k++)
			err = add_span(r, piece[k]);
	}
	return err;
}

struct error *go_spans_take(const struct go_view *v, struct go_spans **ret)
{
	struct reading r = {.v = v, .s = calloc(1, sizeof(*r.s)), .span = malloc(SPAN_MAX)};
	u64 slice[3];
	struct error *err = r.s && r.span ? NULL : &error_no_memory;

	*ret = NULL;
	if (!err && !go_spans_find(v, slice))
		err = error_hint(error_new(ERROR_UNSUPPORTED, "the spans of %s (%s) were not found",
		                         v->table->file.img->path, v->release),
		        "--types is for Go 1.22 to 1.26; go-heap without it shows the heap profile");
	if (!err) {
		go_module_read(v, &r.module);
		err = read_spans(&r, slice);
	}
	free(r.span);
	if (err)
		go_spans_drop(r.s);
	else
		*ret = r.s;
	return err;
}

void go_spans_drop(struct go_spans *s)
{
	if (!s)
		return;
	for (u32 i = 0; i < s->n; i++)
		free(s->kinds[i].name);
	free(s->kinds);
	table_free(&s->at);
	free(s);
}

/* --- results --- */

/* What to show of each: what there is, or what there is more. Of equal names (types of several modules) one. */
struct row {
	const struct kind *kind;
	u64 count, bytes;
};

static int largest_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
	                            : strcmp(x->kind->name, y->kind->name);
}

static struct row *rows_of(const struct go_spans *before, const struct go_spans *s, u32 *n)
{
	struct row *ret = calloc((size_t)s->n + 1, sizeof(*ret));

	*n = 0;
	for (u32 i = 0; ret && i < s->n; i++) {
		const struct kind *k = &s->kinds[i];
		const u64 *old = before ? table_get(&before->at, key_of(k->key)) : NULL;
		u64 count = old ? before->kinds[*old - 1].count : 0, bytes = old ? before->kinds[*old - 1].bytes : 0;

		if (k->bytes > bytes)
			ret[(*n)++] = (struct row){k, k->count > count ? k->count - count : 0, k->bytes - bytes};
	}
	if (ret)
		qsort(ret, *n, sizeof(*ret), largest_first);
	return ret;
}

struct error *go_spans_print(const struct go_spans *before, const struct go_spans *s, FILE *out)
{
	u32 n;
	cleanup(free) struct row *rows = rows_of(before, s, &n);
	u64 count = 0, bytes = 0;

	if (!rows)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++) {
		count += rows[i].count;
		bytes += rows[i].bytes;
	}
	fprintf(out, "%14s %6s %12s %10s  type\n", before ? "bytes grown" : "bytes", "%", "objects", "of bytes");
	for (u32 i = 0; i < n; i++) {
		cleanup(free) char *clean = clean_text(rows[i].kind->name);

		fprintf(out, "%14lu %6.2f %12lu %10lu  %s\n", rows[i].bytes,
		        100.0 * (double)rows[i].bytes / (double)bytes, rows[i].count, rows[i].kind->size,
		        clean ? clean : "?");
	}
	fprintf(out, "%14lu %6.2f %12lu %10s  (all)\n", bytes, 100.0, count, "");
	if (s->disagree)
		fprintf(out, "# %lu of %lu spans changed while they were read\n", s->disagree, s->spans);
	if (s->unread)
		fprintf(out, "# %lu spans do not fit together\n", s->unread);
	return NULL;
}

struct error *go_spans_draw(const struct go_spans *before, const struct go_spans *s, struct profile *ret)
{
	u32 n, function, node;
	cleanup(free) struct row *rows = rows_of(before, s, &n);
	struct error *err = rows ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < n; i++) {
		struct profile_function fn = {.name = rows[i].kind->name, .kind = KIND_CLASS};

		err = profile_function(ret, 0, &fn, false, &function);
		if (!err)
			err = profile_child(ret, 0, function, &node);
		if (err)
			break;
		profile_add(ret, node, rows[i].bytes);
		profile_add_more(ret, node, rows[i].count);
	}
	return err;
}
