/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_refs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "sort_keys.h"

#define FIRST_LOADERS 64 /* among which one has classes */
#define LABEL_BYTES   512
#define FIRST_MAX     256 /* bytes of a ClassLoaderData of JDK 8 */

u64 hotspot_refs_word(struct hotspot_refs *r, u64 addr)
{
	u64 ret;

	return memory_read(r->m, &ret, 8, addr) ? ret : 0;
}

/* --- what an object refers to --- */

u64 hotspot_refs_decode(struct hotspot_refs *r, const u8 *bytes)
{
	const struct hotspot_heap_view *v = r->view;
	u64 word;
	u32 low;

	if (v->oops == OOP_NARROW) {
		memcpy(&low, bytes, 4);
		return low ? v->oop_base + ((u64)low << v->oop_shift) : 0;
	}
	memcpy(&word, bytes, 8);
	return r->z ? hotspot_z_reference(r->z, r->m, word) : word;
}

u64 hotspot_refs_handle(struct hotspot_refs *r, u64 addr, bool handle)
{
	if (!r->z)
		return hotspot_load_handle(r->view, r->m, addr, handle);
	addr = handle ? hotspot_refs_word(r, addr) : addr;
	return addr ? hotspot_z_reference(r->z, r->m, hotspot_refs_word(r, addr)) : 0;
}

u64 hotspot_refs_object_at(struct hotspot_refs *r, u64 word)
{
	return r->z ? hotspot_z_word(r->z, r->m, word) : word;
}

static u32 reference_size(const struct hotspot_refs *r)
{
	return r->view->oops == OOP_NARROW ? 4 : 8;
}

/* entry: the label of what is an entry of a map. */
static bool give_words(struct hotspot_refs *r, u64 addr, const struct refs_words *words, u32 entry)
{
	u32 end = words->n ? words->items[words->n - 1].at + reference_size(r) : 0;
	const u8 *bytes = end ? heap_bytes(r->h, addr, end) : NULL;

	for (u32 i = 0; bytes && i < words->n; i++) {
		u32 label = words->items[i].label;

		if (r->z) /* to decode is to read */
			bytes = heap_bytes(r->h, addr, end);
		if (bytes)
			heap_ref(r->h, label == HEAP_ENTRY ? entry : label,
			        hotspot_refs_decode(r, bytes + words->items[i].at));
	}
	return !end || bytes;
}

/* What is in a ThreadLocal of a static field is called by it. addr: of the java.lang.Class. */
static void name_thread_locals(struct hotspot_refs *r, u64 addr, struct refs_class *c, const struct refs_words *words)
{
	char text[LABEL_BYTES];

	for (u32 i = 0; i < words->n; i++) {
		const u8 *bytes = words->items[i].thread_local
		                          ? heap_bytes(r->h, addr + words->items[i].at, reference_size(r))
		                          : NULL;

		if (!bytes)
			continue;
		snprintf(text, sizeof(text), "%s%s", heap_type_name(r->h, c->type),
		        heap_label_text(r->h, words->items[i].label));
		error_free(table_put(
		        &r->thread_locals, hotspot_refs_key(hotspot_refs_decode(r, bytes)), heap_label(r->h, text)));
	}
}

void hotspot_refs_name_thread_locals(struct hotspot_refs *r, struct refs_class *c)
{
	if (c->mirror && c->kind != REFS_NONE && c->kind != REFS_OBJECTS)
		name_thread_locals(r, c->mirror, c, hotspot_refs_statics(r, c));
}

/* The static fields of a class, in its java.lang.Class. */
static bool give_statics(struct hotspot_refs *r, u64 addr, struct refs_class *c)
{
	const struct refs_words *words = hotspot_refs_statics(r, c);

	name_thread_locals(r, addr, c, words);
	return give_words(r, addr, words, HEAP_ENTRY);
}

/* What a value of a thread is called: the static field that has its ThreadLocal. */
static u32 entry_label(struct hotspot_refs *r, const struct refs_class *c, u64 addr)
{
	const u8 *bytes = c->referent ? heap_bytes(r->h, addr + c->referent, reference_size(r)) : NULL;
	const u64 *label = bytes ? table_get(&r->thread_locals, hotspot_refs_key(hotspot_refs_decode(r, bytes))) : NULL;

	return label ? (u32)*label : HEAP_ENTRY;
}

static bool give_items(struct hotspot_refs *r, const struct refs_class *c, u64 addr, u64 size)
{
	u32 step = reference_size(r);

	for (u64 at = c->size; at + step <= size; at += PIECE) {
		u32 n = size - at < PIECE ? (u32)(size - at) & ~(step - 1) : PIECE;
		const u8 *bytes = heap_bytes(r->h, addr + at, n);

		if (!bytes)
			return false;
		bytes = memcpy(r->piece, bytes, n);
		for (u32 i = 0; i < n; i += step)
			heap_ref(r->h, c->item, hotspot_refs_decode(r, bytes + i));
	}
	return true;
}

/* A java.lang.Class: also the static fields of the class that it stands for, and its constants. */
static bool give_class(struct hotspot_refs *r, u64 addr)
{
	struct refs_class *c = hotspot_refs_class(r, hotspot_refs_word(r, addr + r->at.mirror_klass));

	if (!c || c->kind == REFS_NONE || c->kind == REFS_OBJECTS)
		return true;
	heap_ref(r->h, r->labels.constants, hotspot_refs_constants(r, c));
	return give_statics(r, addr, c);
}

static bool give_loaded(void *ctx, struct refs_class *c)
{
	struct hotspot_refs *r = ctx;

	if (c->mirror)
		heap_ref(r->h, hotspot_refs_class_label(r, c), c->mirror);
	return true;
}

static void give_maybe(void *ctx, u64 object)
{
	struct hotspot_refs *r = ctx;

	heap_ref(r->h, HEAP_MAYBE, object);
}

static bool give(struct hotspot_refs *r, const struct refs_class *c, u64 addr, u64 size)
{
	const u64 *loader = c->is_loader ? table_get(&r->loader_at, hotspot_refs_key(addr)) : NULL;
	bool ret = true;

	if (c->mortal)
		heap_ref(r->h, c->named, c->mirror);
	if (c->kind == REFS_OBJECTS)
		return give_items(r, c, addr, size);
	ret = give_words(r, addr, &c->words, entry_label(r, c, addr));
	if (c->kind == REFS_CLASS)
		ret &= give_class(r, addr);
	if (c->kind == REFS_CHUNK)
		hotspot_refs_scan(r, addr + c->size, size - c->size, give_maybe, r);
	if (loader && *loader)
		hotspot_refs_each_class(r, *loader, give_loaded, r);
	return ret;
}

/* The smallest object has 8 bytes, and may be the last of what is readable. */
static bool read_header(struct hotspot_refs *r, u64 addr, u8 header[HOTSPOT_HEADER_MAX])
{
	for (u32 n = HOTSPOT_HEADER_MAX; n; n -= 8) {
		const u8 *bytes = heap_bytes(r->h, addr, n);

		memset(header, HOTSPOT_UNKNOWN, HOTSPOT_HEADER_MAX);
		if (bytes) {
			memcpy(header, bytes, n);
			return true;
		}
	}
	return false;
}

/* A word of a stack must lead to an object of a class that is known. */
static bool may_be_class(const struct hotspot_refs *r, u64 klass)
{
	const u64 *known = table_get(&r->class_at, hotspot_refs_key(klass));

	return known && *known;
}

/* A place that is used again may have words of that kind, too: there must be a copy. */
static bool is_moved(struct hotspot_refs *r, const u8 *header, u64 klass, u64 *to)
{
	u8 copy[HOTSPOT_HEADER_MAX];

	*to = hotspot_moved_to(header);
	return *to && read_header(r, *to, copy) && klass && hotspot_class_in(r->view, r->m, copy) == klass;
}

static enum heap_seen object_at(struct hotspot_refs *r, u64 addr, u32 label, struct heap_object *ret)
{
	bool maybe = label & HEAP_MAYBE;
	u8 header[HOTSPOT_HEADER_MAX];
	struct refs_class *c;
	u64 klass;

	if (addr & 7 || !read_header(r, addr, header))
		return maybe ? HEAP_NOTHING : HEAP_TORN;
	klass = hotspot_class_in(r->view, r->m, header);
	if (maybe && !may_be_class(r, klass))
		return HEAP_NOTHING;
	if (is_moved(r, header, klass, &ret->moved_to))
		return HEAP_MOVED;
	c = hotspot_refs_class(r, klass);
	if (!c || !hotspot_object_size(r->view, r->m, addr, header, &klass, &ret->size))
		return maybe ? HEAP_NOTHING : HEAP_TORN;
	ret->type = c->type;
	return give(r, c, addr, ret->size) ? HEAP_OBJECT : HEAP_TORN;
}

enum heap_seen hotspot_refs_object(struct hotspot_refs *r, u64 addr, u32 label, struct heap_object *ret)
{
	enum heap_seen seen;
	u64 at;

	if (!r->z)
		return object_at(r, addr, label, ret);
	if (hotspot_z_places_changed(r->z, heap_found(r->h)))
		heap_forget(r->h);
	at = hotspot_z_place(r->z, addr, label & HEAP_MAYBE ? 0 : heap_number(r->h));
	if (!at)
		return label & HEAP_MAYBE ? HEAP_NOTHING : HEAP_TORN;
	seen = object_at(r, at, label, ret);
	if (seen == HEAP_TORN && at != addr)
		heap_forget_at(r->h, at);
	return seen;
}

/* --- words that may be references --- */

static bool is_in(const struct hotspot_spaces *s, u64 addr)
{
	u32 low = 0, high = s->n;

	if (!high || addr < s->items[0].bottom)
		return false;
	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (s->items[middle].bottom <= addr)
			low = middle;
		else
			high = middle;
	}
	return addr < s->items[low].top;
}

/* Behind the end of a space, and in what threads have not filled of their buffers, lie objects that were collected. */
static bool is_place(const struct hotspot_refs *r, u64 addr)
{
	return !(addr & 7) && is_in(&r->spaces, addr) && !is_in(&r->unfilled, addr);
}

static void scan_word(struct hotspot_refs *r, const u8 *bytes, void (*each)(void *ctx, u64 object), void *ctx)
{
	u64 word;

	memcpy(&word, bytes, 8);
	word = hotspot_refs_object_at(r, word);
	if (is_place(r, word)) {
		each(ctx, word);
		return;
	}
	for (u32 i = 0; r->view->oops == OOP_NARROW && i < 8; i += 4)
		if (is_place(r, hotspot_refs_decode(r, bytes + i)))
			each(ctx, hotspot_refs_decode(r, bytes + i));
}

void hotspot_refs_scan(struct hotspot_refs *r, u64 addr, u64 size, void (*each)(void *ctx, u64 object), void *ctx)
{
	u8 page[4096];

	for (u64 end = addr + size; addr + 8 <= end;) {
		u64 n = sizeof(page) - (addr & (sizeof(page) - 1));

		n = (n < end - addr ? n : end - addr) & ~7ull;
		if (memory_read(r->m, page, n, addr))
			for (u32 i = 0; i < n; i += 8)
				scan_word(r, page + i, each, ctx);
		addr += n;
	}
}

/* --- life --- */

static struct error *missing(const char *what)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "this JVM does not tell %s", what),
	        "java-heap shows what there is by class");
}

/* A field, and whether it is an OopHandle. */
static u64 field(const struct hotspot_refs *r, const char *type, const char *name, bool *handle)
{
	const char *text;
	u64 ret;

	if (!vmstructs_field(r->view->v, type, name, &ret, &text))
		return 0;
	if (handle)
		*handle = strstr(text, "Handle");
	return ret;
}

static u64 first_field(const struct hotspot_refs *r, const char *a, const char *b, const char *name)
{
	u64 ret = field(r, a, name, NULL);

	return ret ? ret : field(r, b, name, NULL);
}

static void find_optional(struct hotspot_refs *r)
{
	struct refs_offsets *at = &r->at;
	u64 size;

	at->hidden = field(r, "ClassLoaderData", "_has_class_mirror_holder", NULL);
	if (!at->hidden)
		at->hidden = field(r, "ClassLoaderData", "_is_unsafe_anonymous", NULL);
	if (!at->hidden)
		at->hidden = field(r, "ClassLoaderData", "_is_anonymous", NULL);
	at->cache = field(r, "ConstantPool", "_cache", NULL);
	at->resolved = field(r, "ConstantPoolCache", "_resolved_references", NULL);
	at->pool_resolved = field(r, "ConstantPool", "_resolved_references", NULL);
	at->handles_top = field(r, "JNIHandleBlock", "_top", NULL);
	at->handles_next = field(r, "JNIHandleBlock", "_next", NULL);
	at->thread_handles = first_field(r, "JavaThread", "Thread", "_active_handles");
	at->stack_base = first_field(r, "JavaThread", "Thread", "_stack_base");
	at->stack_size = first_field(r, "JavaThread", "Thread", "_stack_size");
	if (!vmstructs_static(r->view->v, "JNIHandles", "_global_handles", &at->global_handles))
		at->global_handles = 0;
	at->has_storages = vmstructs_type_size(r->view->v, "OopStorage", &size);
}

/* Is a word of a ClassLoaderData the first of its classes, by what these say? */
static bool leads_to_classes(struct hotspot_refs *r, u64 data, u32 at, u64 link)
{
	u64 klass = hotspot_refs_word(r, data + at), next;

	if (!klass || klass & 7 || hotspot_refs_word(r, klass + r->at.of_loader) != data)
		return false;
	next = hotspot_refs_word(r, klass + link);
	return !next || (!(next & 7) && hotspot_refs_word(r, next + r->at.of_loader) == data);
}

/*
 * JDK 8 gives neither ClassLoaderData::_klasses, behind three flags and an int, nor Klass::_next_link, between
 * _next_sibling and _class_loader_data (classLoaderData.hpp, klass.hpp).
 */
static void find_classes_of_8(struct hotspot_refs *r)
{
	struct refs_offsets *at = &r->at;
	u64 link = field(r, "Klass", "_next_sibling", NULL) + 8, data = hotspot_refs_word(r, at->loaders);

	at->of_loader = field(r, "InstanceKlass", "_class_loader_data", NULL);
	if (link + 8 != at->of_loader || at->next > FIRST_MAX)
		return;
	for (u32 i = 0; i < FIRST_LOADERS && data && !(data & 7) && !at->klasses; i++) {
		for (u32 k = 24; k < at->next && !at->klasses; k += 8)
			at->klasses = leads_to_classes(r, data, k, link) ? k : 0;
		data = hotspot_refs_word(r, data + at->next);
	}
	at->link = at->klasses ? link : 0;
	at->hidden = at->klasses ? at->klasses - 6 : 0;
}

static struct error *find_offsets(struct hotspot_refs *r)
{
	struct refs_offsets *at = &r->at;
	u64 where;
	u32 low;

	at->next = field(r, "ClassLoaderData", "_next", NULL);
	at->klasses = field(r, "ClassLoaderData", "_klasses", NULL);
	at->loader = field(r, "ClassLoaderData", "_class_loader", &at->loader_handle);
	at->link = field(r, "Klass", "_next_link", NULL);
	at->of_loader = field(r, "Klass", "_class_loader_data", NULL);
	at->mirror = field(r, "Klass", "_java_mirror", &at->mirror_handle);
	at->vtable_length = first_field(r, "Klass", "InstanceKlass", "_vtable_len");
	at->itable_length = field(r, "InstanceKlass", "_itable_len", NULL);
	at->oop_map_words = field(r, "InstanceKlass", "_nonstatic_oop_map_size", NULL);
	if (!vmstructs_static(r->view->v, "ClassLoaderDataGraph", "_head", &at->loaders) || !at->next || !at->mirror)
		return missing("which class loaders it has");
	find_optional(r);
	if (!at->klasses)
		find_classes_of_8(r);
	if (!at->klasses || !at->link || !at->of_loader)
		return missing("which classes a loader has");
	if (!at->vtable_length || !at->itable_length || !at->oop_map_words ||
	        !vmstructs_type_size(r->view->v, "InstanceKlass", &at->instance_klass))
		return missing("which fields of a class are references");
	if (!vmstructs_static(r->view->v, "java_lang_Class", "_klass_offset", &where) ||
	        !memory_read(r->m, &low, 4, where) || !low || low > 1024)
		return missing("which class a java.lang.Class is for");
	at->mirror_klass = low;
	return NULL;
}

static struct error *find_unfilled(struct hotspot_refs *r)
{
	cleanup(free) struct hotspot_thread *list = calloc(THREADS_MAX, sizeof(*list));
	u32 n = list ? hotspot_threads(r->view, r->m, list, THREADS_MAX, false) : 0;

	r->unfilled.items = calloc((size_t)n + 1, sizeof(*r->unfilled.items));
	if (!list || !r->unfilled.items)
		return &error_no_memory;
	for (u32 i = 0; i < n; i++)
		if (list[i].tlab_start)
			r->unfilled.items[r->unfilled.n++] =
			        (struct hotspot_space){.bottom = hotspot_refs_object_at(r, list[i].tlab_top),
			                .top = hotspot_refs_object_at(r, list[i].tlab_end)};
	sort_keys(r->unfilled.items, r->unfilled.n, sizeof(*r->unfilled.items));
	return NULL;
}

/* The whole of the heap: JDK 8 to 13. */
static bool find_reserved(struct hotspot_refs *r, struct hotspot_space *ret)
{
	u64 heap, at, start, words;

	return vmstructs_field(r->view->v, "CollectedHeap", "_reserved", &at, NULL) &&
	       vmstructs_field(r->view->v, "MemRegion", "_start", &start, NULL) &&
	       vmstructs_field(r->view->v, "MemRegion", "_word_size", &words, NULL) &&
	       memory_read(r->m, &heap, 8, r->view->collected_heap) &&
	       memory_read(r->m, &ret->bottom, 8, heap + at + start) &&
	       memory_read(r->m, &ret->top, 8, heap + at + words) && ret->top < 1ull << 44 &&
	       (ret->top = ret->bottom + 8 * ret->top, true);
}

/* Where the heap lies, for words that may be references. */
static struct error *find_spaces(struct hotspot_refs *r)
{
	struct error *err = hotspot_spaces_read(r->view, r->m, &r->spaces);

	if (err && err->kind == ERROR_UNSUPPORTED && (r->spaces.items = calloc(1, sizeof(*r->spaces.items))) &&
	        find_reserved(r, r->spaces.items)) {
		error_free(TAKE(err));
		r->spaces.n = 1;
	}
	return err ? err : find_unfilled(r);
}

struct error *hotspot_refs_create(
        struct hotspot_heap_view *view, struct memory *m, struct heap *h, struct hotspot_refs **ret)
{
	struct hotspot_refs *r = calloc(1, sizeof(*r));
	struct error *err;

	*ret = r;
	if (!r)
		return &error_no_memory;
	r->view = view;
	r->m = m;
	r->h = h;
	r->labels.constants = heap_label(h, "(constants)");
	r->labels.referent = heap_label(h, ".referent");
	err = find_offsets(r);
	if (!err)
		err = hotspot_z_places_create(view, heap_memory_now(h), &r->z);
	if (!err)
		err = find_spaces(r);
	if (err) {
		hotspot_refs_destroy(r);
		*ret = NULL;
	}
	return err;
}

void hotspot_refs_freeze(struct hotspot_refs *r)
{
	if (r->z)
		hotspot_z_places_freeze(r->z);
}

void hotspot_refs_destroy(struct hotspot_refs *r)
{
	if (!r)
		return;
	for (u32 i = 0; i < r->nclasses; i++) {
		free(r->classes[i]->words.items);
		free(r->classes[i]->statics.items);
		free(r->classes[i]);
	}
	free(r->classes);
	hotspot_z_places_destroy(r->z);
	hotspot_spaces_free(&r->spaces);
	hotspot_spaces_free(&r->unfilled);
	table_free(&r->class_at);
	table_free(&r->loader_at);
	table_free(&r->thread_locals);
	free(r);
}
