/* SPDX-License-Identifier: Apache-2.0 */
#include "python_methods.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "python_methods_internal.h"

#define FLAGS_KIND   0x8f /* METH_VARARGS, METH_KEYWORDS, METH_NOARGS, METH_O, METH_FASTCALL: one of them at least */
#define FLAGS_ALL    0x3ff
#define METHOD_WORDS 4    /* PyMethodDef: name, function, flags, doc */
#define METHODS_MAX  4096 /* of a table */
#define MODULE_NAME  24   /* PyModuleDef.m_name is so far before m_methods */
#define TYPE_NAME    208  /* PyTypeObject.tp_name before tp_methods */

/* Has the file to do with Python? It is one, or uses what modules must use. */
static bool is_python(struct image *img)
{
	static const char *const names[] = {
	        "PyModuleDef_Init", "PyModule_Create2", "_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"};
	u64 addr;
	Elf_Data *data = image_section(img, ".dynstr", &addr);

	for (u32 i = 0; data && data->d_buf && i < sizeof(names) / sizeof(*names); i++)
		if (memmem(data->d_buf, data->d_size, names[i], strlen(names[i]) + 1))
			return true;
	return false;
}

bool python_is_code(const struct image *img, u64 addr)
{
	for (u32 i = 0; i < img->nsegments; i++)
		if (img->segments[i].flags & 1 && addr - img->segments[i].vaddr < img->segments[i].filesz)
			return true;
	return false;
}

bool python_c_name(struct image *img, u64 addr, char ret[PYTHON_C_NAME])
{
	u32 i = 0, size = PYTHON_C_NAME;

	while (size && !(addr && image_read(img, ret, size, addr)))
		size /= 2; /* at the end of a segment */
	while (i < size && (isalnum((u8)ret[i]) || ret[i] == '_' || (ret[i] == '.' && i)))
		i++;
	return i && i < size && !ret[i] && !isdigit((u8)ret[0]);
}

/* Is there a PyMethodDef at word i? Then name is its name. */
static bool is_method(struct image *img, const struct words *w, u64 i, char *name)
{
	const u64 *word = &w->word[i];

	return i + METHOD_WORDS <= w->n && word[0] && word[1] && word[2] <= FLAGS_ALL && word[2] & FLAGS_KIND &&
	       python_is_code(img, word[1]) && python_c_name(img, word[0], name) && !strchr(name, '.');
}

/* The section and the word of it at an address; NULL: none. */
static const struct words *section_of(const struct image_words *all, u64 addr, u64 *i)
{
	for (u32 k = 0; k < all->n; k++) {
		const struct words *w = &all->section[k];

		*i = (addr - w->addr) / sizeof(u64);
		if (!(addr & 7) && addr >= w->addr && *i < w->n)
			return w;
	}
	return NULL;
}

/* The name of the module or type whose word i points to a table. */
static bool owner_of(struct image *img, const struct words *w, u64 i, char *ret)
{
	return (i >= MODULE_NAME / 8 && python_c_name(img, w->word[i - MODULE_NAME / 8], ret)) ||
	       (i >= TYPE_NAME / 8 && python_c_name(img, w->word[i - TYPE_NAME / 8], ret));
}

static struct error *add_table(struct image *img, const struct words *w, u64 i, const char *owner, struct c_names *ret)
{
	char name[PYTHON_C_NAME], text[2 * PYTHON_C_NAME];
	struct error *err = NULL;

	for (u32 n = 0; !err && n < METHODS_MAX && is_method(img, w, i, name); n++, i += METHOD_WORDS) {
		snprintf(text, sizeof(text), "%s.%s", owner, name);
		err = c_names_add(ret, w->word[i + 1], text);
	}
	return err;
}

struct error *python_methods_of(
        struct image *img, const struct image_words *all, u64 addr, const char *owner, struct c_names *ret)
{
	u64 i;
	const struct words *w = section_of(all, addr, &i);

	return w ? add_table(img, w, i, owner, ret) : NULL;
}

/* A method at word i, or a table of methods that word i points to, or slots of a spec. */
static struct error *look_at(struct image *img, const struct image_words *all, const struct words *w, u64 i,
        struct c_names *slots, struct c_names *ret)
{
	char name[PYTHON_C_NAME];
	const struct words *table;
	struct error *err;
	u64 at;

	if (!w->word[i])
		return NULL;
	if (is_method(img, w, i, name))
		return c_names_add(ret, w->word[i + 1], name);
	table = section_of(all, w->word[i], &at);
	if (!table)
		return NULL;
	if (!is_method(img, table, at, name))
		return python_slots_of_spec(img, all, w, i, slots);
	if (!owner_of(img, w, i, name))
		return NULL;
	err = add_table(img, table, at, name, ret);
	return err ? err : python_slots_of_type(img, all, w, i, slots);
}

struct error *python_methods(struct image *img, struct c_names *ret)
{
	static const char *const sections[] = {".data", ".data.rel.ro", ".rodata"};
	struct image_words words = {0};
	struct c_names slots = {0};
	struct error *err = NULL;

	if (img->machine != EM_X86_64 || !is_python(img))
		return NULL;
	for (u32 i = 0; !err && i < sizeof(sections) / sizeof(*sections); i++)
		err = image_words_add(&words, img, sections[i]);
	if (!err)
		image_words_relocate(&words, img);
	for (u32 k = 0; !err && k < words.n; k++)
		for (u64 i = 0; !err && i < words.section[k].n; i++)
			err = look_at(img, &words, &words.section[k], i, &slots, ret);
	if (!err)
		err = python_slots_settle(&slots, ret);
	c_names_free(&slots);
	image_words_free(&words);
	return err;
}
