/* SPDX-License-Identifier: Apache-2.0 */
#include "go_refs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_refs_internal.h"
#include "go_snapshots.h"
#include "grow.h"
#include "search.h"

#define SPANS_PIECE  1024
#define SPANS_MAX    (1u << 26)
#define HINTS_MAX    (1u << 24) /* what is known of objects by what leads to them */
#define PIECE        4096u      /* of words that are looked at */
#define HEADER       8
#define STATIC_DEPTH 16
#define MAP_BYTES    48 /* internal/runtime/maps: Map; up to 1.23 runtime.hmap */
#define NAME_BYTES   256
#define BY_SIZE      (1ull << 62) /* of keys of types */

u64 go_refs_word(struct go_refs *r, u64 addr)
{
	const void *bytes = heap_bytes(r->h, addr, 8);
	u64 ret = 0;

	if (bytes)
		memcpy(&ret, bytes, 8);
	return ret;
}

/* --- spans --- */

static int by_start(const void *a, const void *b)
{
	const struct go_span *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static struct error *read_spans(struct go_refs *r)
{
	u64 slice[3], piece[SPANS_PIECE];
	struct error *err = NULL;

	if (!go_spans_find(r->v, slice))
		return error_new(ERROR_UNSUPPORTED,
		        "the spans of %s (%s) were not found: go-refs is for Go 1.22 to 1.26",
		        r->v->table->file.img->path, r->v->release);
	for (u64 i = 0; !err && i < slice[1] && i < SPANS_MAX; i += SPANS_PIECE) {
		u64 n = slice[1] - i < SPANS_PIECE ? slice[1] - i : SPANS_PIECE;

		if (!memory_read(r->p.memory, piece, n * 8, slice[0] + 8 * i))
			return error_new(ERROR_NO_PROCESS, "process %d: its spans cannot be read", r->p.pid);
		for (u64 k = 0; !err && k < n; k++) {
			err = grow(&r->spans, r->nspans, sizeof(*r->spans));
			if (!err && go_span_read(r->v, piece[k], &r->spans[r->nspans]) && r->spans[r->nspans].n)
				r->nspans++;
		}
	}
	if (!err && r->nspans)
		qsort(r->spans, r->nspans, sizeof(*r->spans), by_start);
	return err;
}

/* Is the object with this number allocated? The first ones are, of the others bits say so (mspan.isFree()). */
static bool is_allocated(struct go_refs *r, const struct go_span *s, u64 index)
{
	const u8 *bits = index < s->free ? NULL : heap_bytes(r->h, s->bits + index / 8, 1);

	return index < s->free || (bits && *bits >> (index & 7) & 1);
}

/* The span of an object at this address, and *base where it begins; NULL: there is none. */
static const struct go_span *find_object(struct go_refs *r, u64 addr, u64 *base)
{
	u32 i = SEARCH(r->nspans, k, r->spans[k].start <= addr);
	const struct go_span *s = i ? &r->spans[i - 1] : NULL;
	u64 index;

	if (!s || addr - s->start >= s->size * s->n)
		return NULL;
	index = (addr - s->start) / s->size;
	*base = s->start + index * s->size;
	return is_allocated(r, s, index) ? s : NULL;
}

/* --- references --- */

static u64 key_of(u64 addr)
{
	return addr * 0x9e3779b97f4a7c15ull >> 3 | 1;
}

static bool has_header(const struct go_span *s)
{
	return !s->plain && !s->large && s->size > GO_HEADER_FROM;
}

static void note_hint(struct go_refs *r, u64 base, u64 hint)
{
	if (r->nhints >= HINTS_MAX || (hint != GO_TEXT && !go_refs_type(r, hint & ~7ull)) ||
	        table_get(&r->hints, key_of(base)))
		return;
	error_free(table_put(&r->hints, key_of(base), hint));
	r->nhints++;
}

static bool is_static(const struct go_refs *r, u64 addr)
{
	return (addr >= r->module.data[0] && addr < r->module.data[1]) ||
	       (addr >= r->module.bss[0] && addr < r->module.bss[1]);
}

/* Of a value that the linker has laid out, and that a variable leads to, as if it were in the variable. */
static void give_static(struct go_refs *r, u64 addr, u64 hint)
{
	const struct go_type *t = r->depth < STATIC_DEPTH && (hint & 7) == GO_ONE ? go_refs_type(r, hint) : NULL;

	if (!t || table_get(&r->hints, key_of(addr)))
		return;
	note_hint(r, addr, hint);
	r->depth++;
	if (t->map)
		go_refs_give_words(r, addr, MAP_BYTES, HEAP_PART);
	else
		go_refs_give_typed(r, t, addr, HEAP_ANY);
	r->depth--;
}

void go_refs_give(struct go_refs *r, u32 label, u64 addr, u64 hint)
{
	u64 base;
	const struct go_span *s = addr < 1ull << 47 ? find_object(r, addr, &base) : NULL;
	bool fits = (hint & 7) == GO_ONE ? addr == base : hint;

	if (!s && r->root && hint && is_static(r, addr))
		give_static(r, addr, hint);
	if (!s)
		return;
	if (fits && !has_header(s) && (!s->large || s->plain))
		note_hint(r, base, hint);
	if (r->root)
		heap_root_ref(r->h, r->root, label, base);
	else
		heap_ref(r->h, label, base);
}

static void give_interface(struct go_refs *r, u32 label, u64 words[2])
{
	bool direct;
	u64 type = go_refs_interface(r, words[0], &direct);

	if (type && words[1])
		go_refs_give(r, label, words[1], direct ? go_refs_pointee(r, type) : type);
}

/* Do objects of this type fill those of the span about? Classes of sizes lie less than a quarter apart. */
static bool may_be(struct go_refs *r, u64 type, u64 addr)
{
	const struct go_type *t = go_refs_type(r, type);
	u64 base;
	const struct go_span *s = t ? find_object(r, addr, &base) : NULL;

	return s && t->size <= s->size && s->size - t->size < (s->size / 4 > 16 ? s->size / 4 : 16);
}

/* Of a map: the addresses of its tables, or its only group, whose first word is no address. */
static u64 directory_hint(struct go_refs *r, u64 pointer, u64 at)
{
	const struct go_type *t = go_refs_type(r, pointer);

	return t && t->nslots == 1 && may_be(r, t->slots[0].to, go_refs_word(r, at)) ? pointer | GO_MANY : pointer;
}

static void give_slot(struct go_refs *r, const struct go_slot *slot, u64 at, u32 item)
{
	u32 label = slot->label ? slot->label : item;
	const void *bytes = heap_bytes(r->h, at, slot->kind == GO_SLOT_INTERFACE ? 16 : 8);
	u64 words[2] = {0};

	if (!bytes)
		return;
	memcpy(words, bytes, slot->kind == GO_SLOT_INTERFACE ? 16 : 8);
	switch (slot->kind) {
	case GO_SLOT_INTERFACE:
		give_interface(r, label, words);
		break;
	case GO_SLOT_SLICE:
		go_refs_give(r, label, words[0], slot->to | GO_MANY);
		break;
	case GO_SLOT_STRING:
		go_refs_give(r, label, words[0], GO_TEXT);
		break;
	case GO_SLOT_CHANNEL:
		go_refs_give(r, label, words[0], slot->to | GO_CHANNEL);
		break;
	case GO_SLOT_DIRECTORY:
		go_refs_give(r, label, words[0], directory_hint(r, slot->to, words[0]));
		break;
	case GO_SLOT_POINTER:
		go_refs_give(r, label, words[0], slot->to);
	}
}

void go_refs_give_typed(struct go_refs *r, const struct go_type *t, u64 at, u32 item)
{
	for (u32 i = 0; i < t->nslots; i++)
		give_slot(r, &t->slots[i], at + t->slots[i].at, item);
	if (!t->whole)
		go_refs_give_words(r, at, t->size, HEAP_ANY);
}

/* The address of a type's description before an address makes an interface of both, unless either is left over. */
static void give_word(struct go_refs *r, u32 label, u64 before, u64 word)
{
	bool direct;
	u64 hint = 0;

	if (before >= r->module.types && before < r->module.etypes) {
		hint = go_refs_interface(r, before, &direct);
		hint = direct ? go_refs_pointee(r, hint) : hint;
		hint = may_be(r, hint, word) ? hint : 0;
	}
	go_refs_give(r, label | HEAP_MAYBE, word, hint);
}

void go_refs_give_words(struct go_refs *r, u64 at, u64 size, u32 label)
{
	u64 words[PIECE / 8], before = 0;

	for (u64 end = at + size; at < end;) {
		u32 n = PIECE - (u32)(at & (PIECE - 1));
		const void *bytes;

		n = n < end - at ? n : (u32)(end - at);
		bytes = heap_bytes(r->h, at, n);
		if (bytes)
			memcpy(words, bytes, n);
		for (u32 i = 0; bytes && i < n / 8; i++) {
			if (words[i] >> 12)
				give_word(r, label, before, words[i]);
			before = words[i];
		}
		at += n;
	}
}

/* --- objects --- */

/* What an object is: its type (0: unknown), whether it may be many of them, and where they begin. */
struct identity {
	u64 type;
	enum go_hint how;
	u64 data;
};

static struct identity identify(struct go_refs *r, const struct go_span *s, u64 addr)
{
	const u64 *hint = table_get(&r->hints, key_of(addr));
	struct identity ret = {.data = addr};

	if (has_header(s)) {
		ret.type = go_refs_word(r, addr);
		ret.data += HEADER;
	} else if (s->large && !s->plain) {
		ret.type = s->type;
	} else if (hint) {
		ret.type = *hint & ~7ull;
		ret.how = *hint & 7;
	}
	return ret;
}

/* The function whose code the first word of a closure is the address of; 0: it is no closure. */
static u64 closure_of(struct go_refs *r, const struct go_span *s, u64 addr)
{
	u64 code = s->plain || s->large ? 0 : go_refs_word(r, addr), text = r->v->table->text + r->v->bias;

	return code >= text && code < r->v->table->end + r->v->bias && go_is_start(r->v, code) ? code : 0;
}

static void name_closure(const struct go_refs *r, u64 code, char *ret, size_t size)
{
	struct go_function fn;
	char name[NAME_BYTES] = "?";

	if (go_function_find(r->v->table, code - r->v->bias, &fn))
		go_function_name(r->v->table, &fn, name, sizeof(name));
	snprintf(ret, size, "closure of %s", name);
}

static u32 type_number(struct go_refs *r, const struct go_span *s, u64 addr, const struct identity *id)
{
	static const char *const before[GO_HINTS] = {[GO_MANY] = "[]", [GO_CHANNEL] = "chan "};
	enum go_hint how = id->how;
	const struct go_type *t = go_refs_type(r, id->type);
	u64 closure = id->type || id->how == GO_TEXT ? 0 : closure_of(r, s, addr);
	u64 key = id->type || how == GO_TEXT ? id->type | how : closure ? closure : BY_SIZE | s->size << 1 | s->plain;
	char name[NAME_BYTES + 16], type[NAME_BYTES] = "?";
	u32 known;

	known = heap_type(r->h, key, NULL);
	if (known)
		return known;
	if (how == GO_TEXT)
		snprintf(name, sizeof(name), "string");
	else if (t && t->name)
		snprintf(name, sizeof(name), "%s%s", before[how] ? before[how] : "", t->name);
	else if (id->type && go_type_name(r->v, &r->module, id->type, type, sizeof(type)))
		snprintf(name, sizeof(name), "%s%s", before[how] ? before[how] : "", type);
	else if (closure)
		name_closure(r, closure, name, sizeof(name));
	else
		snprintf(name, sizeof(name), "(%lu bytes%s)", s->size, s->plain ? ", without pointers" : "");
	return heap_type(r->h, key, name);
}

/* The references of an object of a known type, as often as it is there; how many bytes that is. */
static u64 give_values(struct go_refs *r, const struct go_type *t, const struct identity *id, u64 room)
{
	bool many = id->how == GO_MANY;
	u64 done = 0;

	for (; t->size && done + t->size <= room && (many || !done); done += t->size)
		go_refs_give_typed(r, t, id->data + done, many ? HEAP_ITEM : HEAP_ANY);
	return done;
}

static enum heap_seen object(void *reader, u64 addr, u32 label, struct heap_object *ret)
{
	struct go_refs *r = reader;
	u64 base = 0, room, done = 0;
	const struct go_span *s = find_object(r, addr, &base);
	const struct go_type *t;
	struct identity id;
	u32 part;

	if (!s || base != addr)
		return HEAP_TORN;
	id = identify(r, s, addr);
	t = go_refs_type(r, id.type);
	if (!t)
		id.type = 0;
	room = addr + s->size - id.data;
	if (t && t->size && room / t->size > 1 && (has_header(s) || (s->large && !s->plain)))
		id.how = GO_MANY;
	ret->size = s->size;
	ret->type = type_number(r, s, addr, &id);
	if (s->plain)
		return HEAP_OBJECT;
	part = (t ? t->map : label & HEAP_PART) && !has_header(s) ? HEAP_PART : HEAP_ANY;
	if (t && !t->map && id.how != GO_CHANNEL)
		done = give_values(r, t, &id, room);
	if (done < room)
		go_refs_give_words(r, id.data + done, room - done, part);
	return HEAP_OBJECT;
}

static struct error *all(void *reader)
{
	struct go_refs *r = reader;

	for (u32 i = 0; i < r->nspans; i++)
		for (u64 k = 0; k < r->spans[i].n; k++)
			if (is_allocated(r, &r->spans[i], k))
				heap_candidate(r->h, r->spans[i].start + k * r->spans[i].size, 0);
	return NULL;
}

/* --- life --- */

static void close_refs(void *reader)
{
	struct go_refs *r = reader;

	go_refs_types_free(r);
	go_view_close(r->v);
	table_free(&r->hints);
	free(r->spans);
	free(r);
}

static struct error *open_refs(void *instance, const struct runtime_process *p, struct heap *h, void **ret)
{
	struct go_refs *r = calloc(1, sizeof(*r));
	struct error *err = NULL;
	struct go_table *t;
	u64 bias;

	*ret = NULL;
	if (!r)
		return &error_no_memory;
	t = go_instance_table(instance, &bias);
	r->h = h;
	r->p = *p;
	r->p.memory = heap_memory_now(h);
	err = go_view_open(&r->p, t, bias, &r->v);
	if (!err && r->v && r->v->allgs) {
		go_module_read(r->v, &r->module);
		err = read_spans(r);
		if (!err)
			*ret = r;
	}
	if (!*ret)
		close_refs(r);
	return err;
}

const struct runtime_heap_ops go_refs = {
        .objects = "objects",
        .refs_only = true,
        .text = "Go 1.22 to 1.26. Roots are global variables (by name if there is DWARF, else all of them are one "
                "root), and stacks of goroutines, by their functions and by what they wait for. Objects of more than "
                "512 bytes with pointers say their type; others have that of the field, interface or variable that "
                "leads to them, or are closures; the rest is shown by size class, as in go-heap --types. References "
                "from stacks, and from objects of unknown type, are words that are addresses of objects, marked \"?\".",
        .open = open_refs,
        .close = close_refs,
        .roots = go_refs_roots,
        .object = object,
        .all = all,
};
