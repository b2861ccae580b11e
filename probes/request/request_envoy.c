/* SPDX-License-Identifier: Apache-2.0 */
#include "request_envoy.h"

#include <string.h>

#include "request.h"
#include "unwind/binary/image_pages.h"
#include "unwind/binary/image_words.h"

#define STREAM  "N5Envoy4Http21ConnectionManagerImpl12ActiveStreamE"
#define MANAGER "N5Envoy4Http21ConnectionManagerImplE"
#define DECODER "N5Envoy4Http14RequestDecoderE"
#define HEADERS "N5Envoy4Http20RequestHeaderMapImplE"

#define NEW_STREAM 7u /* places in tables */
#define DELETED    1u
#define BASES_MAX  32u
#define STEP       (IMAGE_PAGES_AHEAD - 1 - sizeof(STREAM)) /* so that a name is whole in one of two */

/* decodeData(), decodeHeaders(), decodeTrailers(), encodeHeaders() and its neighbours, whose order has changed. */
static const u32 works[] = {8, 10, 11, 19, 20, 21, 22, 23};

struct tables {
	struct image_words words;
	struct image_pages names;
	u64 text, text_end;
};

/* Where a type's name is; 0: nowhere. */
static u64 name_at(struct tables *t, u64 begin, u64 size, const char *name)
{
	size_t len = strlen(name) + 1, room;

	for (u64 at = begin; at < begin + size; at += STEP) {
		const u8 *bytes = image_pages_at(&t->names, at, &room), *found;

		if (!bytes) /* the section is not as long as it says */
			return 0;
		found = memmem(bytes, room, name, len);
		if (found && (found == bytes || !found[-1]))
			return at + (u64)(found - bytes);
	}
	return 0;
}

static u64 word(const struct tables *t, u64 addr)
{
	const u64 *found = image_word(&t->words, addr);

	return found ? *found : 0;
}

/* The next address from `from` that has this word; 0: none. */
static u64 next(const struct tables *t, u64 value, u64 from)
{
	for (u32 i = 0; i < t->words.n; i++) {
		const struct words *w = &t->words.section[i];

		for (u64 k = from > w->addr ? (from - w->addr + 7) / 8 : 0; k < w->n; k++)
			if (w->word[k] == value)
				return w->addr + 8 * k;
	}
	return 0;
}

static bool is_text(const struct tables *t, u64 addr)
{
	return addr >= t->text && addr < t->text_end;
}

#define ANY_BASE 0u /* the first one that is not the type's beginning */

/* The first function's place in a table of a type: that of the base that lies at this offset. */
static u64 base_table(const struct tables *t, u64 type, u64 offset)
{
	for (u64 at = type ? next(t, type, 0) : 0; at; at = next(t, type, at + 8)) {
		u64 top = word(t, at - 8);

		if (is_text(t, word(t, at + 8)) && (offset == ANY_BASE ? top >> 63 : top + offset == 0))
			return at + 8;
	}
	return 0;
}

/* The same of the type itself. */
static u64 table_of(const struct tables *t, u64 type)
{
	for (u64 at = type ? next(t, type, 0) : 0; at; at = next(t, type, at + 8))
		if (!word(t, at - 8) && is_text(t, word(t, at + 8)))
			return at + 8;
	return 0;
}

/* Offset of a base in a type that has several (Itanium C++ ABI, 2.9.5); 0: it has no such base. */
static u64 offset_of(const struct tables *t, u64 type, u64 base_name)
{
	u64 n = word(t, type + 16) >> 32;

	for (u64 i = 0; i < n && i < BASES_MAX; i++)
		if (base_name && word(t, word(t, type + 24 + 16 * i) + 8) == base_name)
			return word(t, type + 32 + 16 * i) >> 8;
	return 0;
}

static u64 type_of(struct tables *t, u64 begin, u64 size, const char *name)
{
	u64 at = name_at(t, begin, size, name);

	at = at ? next(t, at, 0) : 0;
	return at ? at - 8 : 0;
}

static struct error *not_understood(const char *what)
{
	return error_hint(error_new(ERROR_UNSUPPORTED, "requests: this build of Envoy is not understood: %s", what),
	        "known are 1.36 to 1.40, with type information");
}

static void add(struct request_envoy *e, u64 addr, u64 table, u64 cookie)
{
	e->place[e->n].addr = addr;
	e->place[e->n].table = table;
	e->place[e->n++].cookie = REQUEST_ENVOY | cookie;
}

static struct error *read_tables(struct tables *t, u64 begin, u64 size, struct request_envoy *ret)
{
	u64 type = type_of(t, begin, size, STREAM), stream = table_of(t, type);
	u64 manager = table_of(t, type_of(t, begin, size, MANAGER));
	u64 decoder = offset_of(t, type, name_at(t, begin, size, DECODER));
	u64 returned = decoder ? base_table(t, type, decoder) : 0;
	u64 headers = base_table(t, type_of(t, begin, size, HEADERS), ANY_BASE);
	u64 top = headers ? -word(t, headers - 16) : 0;

	if (!stream || !manager)
		return not_understood("no virtual table of its requests");
	if (!returned || decoder > REQUEST_OFFSET_MAX || !top || top > REQUEST_OFFSET_MAX)
		return not_understood("its requests have other base classes");
	for (u32 i = 0; i < sizeof(works) / sizeof(*works); i++) {
		if (!is_text(t, word(t, stream + 8 * (u64)works[i])))
			return not_understood("its requests have other functions");
		add(ret, word(t, stream + 8 * (u64)works[i]), stream, REQUEST_RUNS | 1ull << REQUEST_ARG);
	}
	add(ret, word(t, stream + 8 * DELETED), stream, REQUEST_ENDS | 1ull << REQUEST_ARG | top << REQUEST_OFFSET);
	if (!is_text(t, ret->place[ret->n - 1].addr) || !is_text(t, word(t, manager + 8 * NEW_STREAM)))
		return not_understood("its connections have other functions");
	add(ret, word(t, manager + 8 * NEW_STREAM), returned, REQUEST_BEGINS | decoder << REQUEST_OFFSET);
	return NULL;
}

struct error *request_envoy_find(struct image *img, struct request_envoy *ret)
{
	struct tables t = {0};
	struct error *err;
	u64 begin, size;

	ret->n = 0;
	if (img->machine != EM_X86_64 || !image_section_range(img, ".text", &t.text, &size))
		return NULL;
	t.text_end = t.text + size;
	if (!image_section_range(img, ".rodata", &begin, &size))
		return NULL;
	err = image_pages_create(&t.names, img, ".rodata");
	if (!err && name_at(&t, begin, size, STREAM)) {
		err = image_words_add(&t.words, img, ".data.rel.ro");
		if (!err) {
			image_words_relocate(&t.words, img);
			err = read_tables(&t, begin, size, ret);
		}
	}
	image_words_free(&t.words);
	image_pages_free(&t.names);
	return err;
}
