/* SPDX-License-Identifier: Apache-2.0 */
/* Classes: where their objects have references, and what these are called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "hotspot_refs_collections.h"
#include "hotspot_refs_internal.h"
#include "runtimes/hotspot/names/hotspot_text.h"

#define CLASSES_MAX (1u << 20)
#define SUPERS_MAX  64
#define MAP_MAX     4096       /* oop map blocks of a class */
#define WORDS_MAX   65536      /* references of an object */
#define TABLE_MAX   (1u << 20) /* words of a vtable or itable */
#define NAME_BYTES  1024
#define UNKNOWN_MAX 1024 /* words that are no class, after which no more are tried: objects have moved away */

static const char *const immortal_loaders[] = {"jdk/internal/loader/ClassLoaders$AppClassLoader",
        "jdk/internal/loader/ClassLoaders$PlatformClassLoader", "jdk/internal/loader/ClassLoaders$BootClassLoader",
        "sun/misc/Launcher$AppClassLoader", "sun/misc/Launcher$ExtClassLoader"};

/* --- which words are references --- */

static struct error *add_word(struct refs_words *words, u32 at, u32 label)
{
	struct error *err = grow(&words->items, words->n, sizeof(*words->items));

	if (!err)
		words->items[words->n++] = (struct refs_word){.at = at, .label = label};
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct refs_word *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static void sort_words(struct refs_words *words)
{
	if (words->n)
		qsort(words->items, words->n, sizeof(*words->items), by_place);
}

struct map_block { /* OopMapBlock */
	u32 offset, count;
};

/* So many references in a row. */
static struct error *add_block(struct hotspot_refs *r, struct refs_class *c, struct map_block b)
{
	u32 step = r->view->oops == OOP_NARROW ? 4 : 8;
	struct error *err = NULL;

	for (u32 i = 0; !err && i < b.count && c->words.n < WORDS_MAX; i++) {
		u64 at = b.offset + (u64)i * step;

		if (at < 8 || at % step || at + step > c->size)
			break;
		err = add_word(&c->words, (u32)at, HEAP_ANY);
	}
	return err;
}

static struct error *read_oop_map(struct hotspot_refs *r, struct refs_class *c)
{
	struct error *err = NULL;
	u32 vtable, itable, words;
	u64 map;

	if (!memory_read(r->m, &vtable, 4, c->klass + r->at.vtable_length) || vtable > TABLE_MAX ||
	        !memory_read(r->m, &itable, 4, c->klass + r->at.itable_length) || itable > TABLE_MAX ||
	        !memory_read(r->m, &words, 4, c->klass + r->at.oop_map_words) || words > MAP_MAX)
		return NULL;
	map = c->klass + ((r->at.instance_klass + 7) & ~7ull) + 8ull * vtable + 8ull * itable;
	for (u32 i = 0; !err && i < words; i++) {
		struct map_block b;

		if (!memory_read(r->m, &b, sizeof(b), map + i * sizeof(b)))
			break;
		err = add_block(r, c, b);
	}
	sort_words(&c->words);
	return err;
}

/* --- what they are called --- */

struct naming {
	struct hotspot_refs *r;
	struct refs_words *words;
	const char *class; /* that declares the fields */
	bool statics;
	struct error *err;
};

static u32 label_of(struct hotspot_refs *r, const char *class, const char *field)
{
	u32 label = hotspot_refs_collection_label(class, field);
	char name[NAME_BYTES], text[NAME_BYTES];

	if (label == HEAP_ITEM || label == HEAP_KEY || label == HEAP_ENTRY || label == REFS_SKIP)
		return label;
	hotspot_text_name((const u8 *)field, strlen(field), name, sizeof(name) - 1);
	snprintf(text, sizeof(text), ".%.*s", NAME_BYTES - 2, name);
	return heap_label(r->h, text) | label;
}

static bool is_thread_local(const char *signature)
{
	return !strcmp(signature, "Ljava/lang/ThreadLocal;") ||
	       !strcmp(signature, "Ljava/lang/InheritableThreadLocal;");
}

static bool name_field(void *ctx, const struct hotspot_declared *f)
{
	struct naming *n = ctx;
	char signature[48] = "", name[256];
	struct refs_word key = {.at = f->offset}, *word;

	if (f->is_static != n->statics ||
	        !hotspot_symbol(n->r->view, n->r->m, f->signature, signature, sizeof(signature)) ||
	        (*signature != 'L' && *signature != '[') ||
	        !hotspot_symbol(n->r->view, n->r->m, f->name, name, sizeof(name)))
		return true;
	if (n->statics) {
		if (f->offset >= 8 && f->offset < HEAP_BYTES_MAX - 8 && n->words->n < WORDS_MAX)
			n->err = add_word(n->words, f->offset, label_of(n->r, n->class, name));
		if (!n->err && n->words->n)
			n->words->items[n->words->n - 1].thread_local |= is_thread_local(signature);
		return !n->err;
	}
	word = n->words->n ? bsearch(&key, n->words->items, n->words->n, sizeof(key), by_place) : NULL;
	if (word)
		word->label = label_of(n->r, n->class, name);
	return true;
}

static struct error *name_words(struct hotspot_refs *r, struct refs_class *c)
{
	char class[NAME_BYTES];
	u64 klass = c->klass, symbol;
	struct naming n = {.r = r, .words = &c->words, .class = class};
	u32 kept = 0;

	for (u32 i = 0; i < SUPERS_MAX && klass && !(klass & 7) && !n.err; i++) {
		if (!memory_read(r->m, &symbol, 8, klass + r->view->l->klass_name.at) ||
		        !hotspot_symbol(r->view, r->m, symbol, class, sizeof(class)))
			break;
		hotspot_each_field(r->view, r->m, klass, name_field, &n);
		if (!memory_read(r->m, &klass, 8, klass + r->view->at.super))
			break;
	}
	for (u32 i = 0; i < c->words.n; i++)
		if (c->words.items[i].label != REFS_SKIP)
			c->words.items[kept++] = c->words.items[i];
	c->words.n = kept;
	return n.err;
}

const struct refs_words *hotspot_refs_statics(struct hotspot_refs *r, struct refs_class *c)
{
	struct naming n = {.r = r, .words = &c->statics, .class = "", .statics = true};

	if (!c->statics_read) {
		c->statics_read = true;
		hotspot_each_field(r->view, r->m, c->klass, name_field, &n);
		sort_words(&c->statics);
		error_free(n.err);
	}
	return &c->statics;
}

/* Soft references are followed, and those of objects with finalizers: what they lead to is alive. */
static struct error *add_referent(struct hotspot_refs *r, struct refs_class *c)
{
	struct error *err = NULL;
	u32 at;

	if ((hotspot_super_named(r->view, r->m, c->klass, "java/lang/ref/SoftReference") ||
	            hotspot_super_named(r->view, r->m, c->klass, "java/lang/ref/FinalReference")) &&
	        hotspot_inherited_field(r->view, r->m, c->klass, "referent", "Ljava/lang/Object;", &at))
		err = add_word(&c->words, at, r->labels.referent);
	sort_words(&c->words);
	return err;
}

/* --- classes --- */

static bool is_immortal_loader(struct hotspot_refs *r, u64 loader)
{
	u64 klass = hotspot_object_class(r->view, r->m, loader);
	const struct hotspot_class *c = klass ? hotspot_class_of(r->view, r->m, klass) : NULL;
	char name[128];

	if (!c || !hotspot_symbol(r->view, r->m, c->symbol, name, sizeof(name)))
		return false;
	for (u32 i = 0; i < sizeof(immortal_loaders) / sizeof(*immortal_loaders); i++)
		if (!strcmp(name, immortal_loaders[i]))
			return true;
	return false;
}

bool hotspot_refs_is_mortal(struct hotspot_refs *r, u64 data)
{
	u64 loader = hotspot_refs_handle(r, data + r->at.loader, r->at.loader_handle);
	u8 hidden = 0;

	if (r->at.hidden && memory_read(r->m, &hidden, 1, data + r->at.hidden) && hidden)
		return true;
	return loader && !is_immortal_loader(r, loader);
}

static void sort_out(struct refs_class *c, const char *name, const struct hotspot_class *known)
{
	c->size = known->size;
	if (known->kind == SIZE_ARRAY)
		c->kind = name[1] == 'L' || name[1] == '[' ? REFS_OBJECTS : REFS_NONE;
	else if (known->kind == SIZE_MIRROR)
		c->kind = REFS_CLASS;
	else if (known->kind == SIZE_STACK_CHUNK)
		c->kind = REFS_CHUNK;
}

static struct error *fill(struct hotspot_refs *r, struct refs_class *c, const char *name)
{
	char text[NAME_BYTES];
	struct error *err = NULL;
	u64 data = hotspot_refs_word(r, c->klass + r->at.of_loader);

	hotspot_text_class((const u8 *)name, strlen(name), text, sizeof(text));
	c->type = heap_type(r->h, c->klass, text);
	c->mortal = data && hotspot_refs_is_mortal(r, data);
	c->mirror = hotspot_refs_handle(r, c->klass + r->at.mirror, r->at.mirror_handle);
	c->named = c->mortal ? hotspot_refs_class_label(r, c) : HEAP_ANY;
	c->item = HEAP_ITEM | (name[0] == '[' && name[1] == 'L' && hotspot_refs_is_node(name + 2) ? HEAP_PART : 0);
	if (c->kind == REFS_OBJECTS || c->kind == REFS_NONE)
		return NULL;
	c->is_loader = hotspot_super_named(r->view, r->m, c->klass, "java/lang/ClassLoader");
	if (!strcmp(name, "java/lang/ThreadLocal$ThreadLocalMap$Entry"))
		hotspot_inherited_field(r->view, r->m, c->klass, "referent", "Ljava/lang/Object;", &c->referent);
	err = read_oop_map(r, c);
	if (!err)
		err = name_words(r, c);
	return err ? err : add_referent(r, c);
}

static struct refs_class *add_class(struct hotspot_refs *r, const struct refs_class *made)
{
	struct refs_class *c = malloc(sizeof(*c));
	struct error *err = c ? grow(&r->classes, r->nclasses, sizeof(*r->classes)) : &error_no_memory;

	if (!err)
		err = table_put(&r->class_at, hotspot_refs_key(made->klass), r->nclasses + 1);
	if (err) {
		error_free(err);
		free(c);
		return NULL;
	}
	*c = *made;
	return r->classes[r->nclasses++] = c;
}

static struct refs_class *make(struct hotspot_refs *r, u64 klass)
{
	const struct hotspot_class *known = r->nclasses < CLASSES_MAX ? hotspot_class_of(r->view, r->m, klass) : NULL;
	struct refs_class made = {.klass = klass}, *ret;
	char name[NAME_BYTES];
	struct error *err;

	if (!known || !hotspot_symbol(r->view, r->m, known->symbol, name, sizeof(name)))
		return NULL;
	sort_out(&made, name, known);
	err = fill(r, &made, name);
	ret = err ? NULL : add_class(r, &made);
	if (!ret) {
		error_free(err);
		free(made.words.items);
	}
	return ret;
}

struct refs_class *hotspot_refs_class(struct hotspot_refs *r, u64 klass)
{
	const u64 *known = klass ? table_get(&r->class_at, hotspot_refs_key(klass)) : NULL;
	struct refs_class *ret;
	struct error *err;

	if (known)
		return *known ? r->classes[*known - 1] : NULL;
	ret = klass && r->unknown < UNKNOWN_MAX ? make(r, klass) : NULL;
	r->unknown += klass && !ret;
	if (!ret && klass && r->class_at.used < CLASSES_MAX) {
		err = table_put(&r->class_at, hotspot_refs_key(klass), 0);
		error_free(err);
	}
	return ret;
}

u32 hotspot_refs_class_label(struct hotspot_refs *r, const struct refs_class *c)
{
	const char *name = heap_type_name(r->h, c->type);
	char text[NAME_BYTES];

	snprintf(text, sizeof(text), "class %.*s", NAME_BYTES - 8, name);
	return heap_label(r->h, text);
}

u64 hotspot_refs_constants(struct hotspot_refs *r, const struct refs_class *c)
{
	u64 pool = hotspot_refs_word(r, c->klass + r->view->at.constants),
	    cache = r->at.cache && r->at.resolved && pool ? hotspot_refs_word(r, pool + r->at.cache) : 0;

	if (pool && r->at.pool_resolved)
		return hotspot_refs_handle(r, pool + r->at.pool_resolved, true);
	return cache ? hotspot_refs_handle(r, cache + r->at.resolved, true) : 0;
}
