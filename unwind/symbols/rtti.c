/* SPDX-License-Identifier: Apache-2.0 */
#include "rtti.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "binary/image_pages.h"
#include "binary/image_words.h"
#include "search.h"

#define TYPE_MAX  1024 /* bytes of a mangled name */
#define SLOTS_MAX 4096 /* of a virtual table */
#define PURE_MAX  256  /* slots without a function, in a row */
#define DEPTH_MAX 16   /* of inheritance */
#define FOUND_MAX (4u << 20)
#define TEXT_MIN  (64u << 10) /* of all names; more than one has */
#define TEXT_MAX  (64u << 20)

struct found {
	u64 function;
	u32 name; /* the class's, in text */
	u16 index, depth;
};

struct rtti {
	struct image_words data;  /* where virtual tables and type_infos are; only while they are searched */
	struct image_pages names; /* .rodata; the same */
	u64 text, text_end;
	struct found *found;
	u32 nfound;
	char *types; /* names of classes, each with its 0 */
	u32 size, room;
	bool full;
};

static bool is_text(const struct rtti *r, u64 addr)
{
	return addr >= r->text && addr < r->text_end;
}

/* A word, 0 where there is none. */
static u64 get(const struct rtti *r, u64 addr)
{
	const u64 *word = image_word(&r->data, addr);

	return word ? *word : 0;
}

/* --- types --- */

/* The text at an address of .rodata if it is a type's name, as a mangled name goes on behind "_Z"; until the next
 * call. */
static const char *type_name(struct rtti *r, u64 addr)
{
	size_t room;
	const char *text = (const char *)image_pages_at(&r->names, addr, &room);

	if (!text)
		return NULL;
	if (*text == '*') { /* it is not to be compared by name */
		text++;
		room--;
	}
	if (!room || (!isdigit((u8)*text) && *text != 'N' && *text != 'S'))
		return NULL;
	for (u64 i = 0; i < room && i < TYPE_MAX; i++) {
		if (!text[i])
			return i > 1 ? text : NULL;
		if (!isalnum((u8)text[i]) && text[i] != '_' && text[i] != '$' && text[i] != '.')
			return NULL;
	}
	return NULL;
}

/* A type_info: the table of its own class, then its name. The first is 0 where another file has that class. */
static const char *type_at(struct rtti *r, u64 addr)
{
	return image_word(&r->data, addr) ? type_name(r, get(r, addr + 8)) : NULL;
}

/* One base: its type_info follows. Several: flags and number, then type_info and offset of each. */
static u64 base_of(struct rtti *r, u64 type)
{
	u64 next = get(r, type + 16);

	if (type_at(r, next))
		return next;
	return type_at(r, get(r, type + 24)) ? get(r, type + 24) : 0;
}

static u16 depth_of(struct rtti *r, u64 type)
{
	u16 depth = 0;

	while (depth < DEPTH_MAX && (type = base_of(r, type)))
		depth++;
	return depth;
}

/* --- virtual tables --- */

/* A copy of a name: the image need not outlive what was found in it. */
static struct error *add_type(struct rtti *r, const char *type, u32 *ret)
{
	size_t size = strlen(type) + 1;
	char *grown;

	if (size > r->room - r->size) {
		if (r->room == TEXT_MAX) {
			r->full = true;
			return NULL;
		}
		grown = realloc(r->types, r->room ? r->room * 2 : TEXT_MIN);
		if (!grown)
			return &error_no_memory;
		r->types = grown;
		r->room = r->room ? r->room * 2 : TEXT_MIN;
	}
	*ret = r->size;
	memcpy(r->types + r->size, type, size);
	r->size += size;
	return NULL;
}

static struct error *add(struct rtti *r, struct found found)
{
	struct error *err = grow(&r->found, r->nfound, sizeof(*r->found));

	if (err)
		return err;
	r->found[r->nfound++] = found;
	r->full = r->nfound == FOUND_MAX;
	return NULL;
}

/* Pure functions are 0 here, and destructors of an abstract class; so is the head of the next table, but no function
 * follows it. */
static bool is_slot(const struct rtti *r, const struct words *w, u64 at)
{
	u64 end = at + PURE_MAX < w->n ? at + PURE_MAX : w->n;

	while (at < end && !w->word[at])
		at++;
	return at < end && is_text(r, w->word[at]);
}

/* name: the type's, as type_at() has just given it. */
static struct error *add_table(struct rtti *r, const struct words *w, u64 slot, u64 type, const char *name)
{
	struct found found = {0};
	struct error *err = add_type(r, name, &found.name);

	found.depth = depth_of(r, type);
	for (u32 i = 0; !err && i < SLOTS_MAX && !r->full && is_slot(r, w, slot + i); i++) {
		found.function = w->word[slot + i];
		found.index = i;
		if (found.function)
			err = add(r, found);
	}
	return err;
}

static struct error *find_tables(struct rtti *r, const struct words *w)
{
	struct error *err = NULL;
	const char *name;

	/* only the primary table of a class: offset to the top 0; others hold the same functions, or thunks to them */
	for (u64 i = 1; !err && i + 1 < w->n && !r->full; i++) {
		u64 type = w->word[i];

		if (!type || w->word[i - 1] || (!is_text(r, w->word[i + 1]) && w->word[i + 1]))
			continue;
		name = type_at(r, type);
		if (name)
			err = add_table(r, w, i + 1, type, name);
	}
	return err;
}

static int by_function(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Of each function, as only that is asked for. */
static void keep_first(struct rtti *r)
{
	struct found *shrunk;
	u32 n = 1;

	qsort(r->found, r->nfound, sizeof(*r->found), by_function);
	for (u32 i = 1; i < r->nfound; i++)
		if (r->found[i].function != r->found[n - 1].function)
			r->found[n++] = r->found[i];
	r->nfound = n;
	shrunk = realloc(r->found, n * sizeof(*shrunk));
	r->found = shrunk ? shrunk : r->found;
}

static struct error *read_all(struct rtti *r, struct image *img)
{
	struct error *err;
	u64 size;

	if (!image_section_range(img, ".text", &r->text, &size))
		return NULL;
	r->text_end = r->text + size;
	err = image_pages_create(&r->names, img, ".rodata");
	if (err || !r->names.bytes)
		return err;
	err = image_words_add(&r->data, img, ".data.rel.ro");
	if (!err && img->type == ET_EXEC)
		err = image_words_add(&r->data, img, ".rodata");
	if (err)
		return err;
	image_words_relocate(&r->data, img);
	for (u32 i = 0; i < r->data.n && !err; i++)
		err = find_tables(r, &r->data.section[i]);
	if (r->nfound)
		keep_first(r);
	return err;
}

struct error *rtti_create(struct image *img, struct rtti **ret)
{
	struct rtti *r = calloc(1, sizeof(*r));
	struct error *err;

	if (!r)
		return &error_no_memory;
	err = img->machine == EM_X86_64 ? read_all(r, img) : NULL;
	image_words_free(&r->data);
	image_pages_free(&r->names);
	if (err) {
		rtti_destroy(r);
		return err;
	}
	*ret = r;
	return NULL;
}

static void give(struct image *img, struct rtti *r)
{
	img->rtti = r;
	img->destroy.rtti = rtti_destroy;
}

struct error *rtti_load(struct image *img)
{
	struct rtti *r;
	struct error *err = img->rtti ? NULL : rtti_create(img, &r);

	if (!err && !img->rtti)
		give(img, r);
	return err;
}

void rtti_move(struct image *to, struct image *from)
{
	if (to->rtti || !from->rtti)
		return;
	give(to, from->rtti);
	from->rtti = NULL;
}

void rtti_destroy(struct rtti *r)
{
	if (!r)
		return;
	free(r->types);
	free(r->found);
	free(r);
}

bool rtti_find(const struct rtti *r, u64 function, struct rtti_function *ret)
{
	u32 at = SEARCH(r->nfound, k, r->found[k].function < function);

	if (at == r->nfound || r->found[at].function != function)
		return false;
	*ret = (struct rtti_function){r->types + r->found[at].name, r->found[at].index};
	return true;
}
