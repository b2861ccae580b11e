/* SPDX-License-Identifier: Apache-2.0 */
#include "python_methods.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "binary/image.h"
#include "binary/image_words.h"
#include "symbols/c_names.h"

/*
 * Slots are the functions in C that a type has besides its methods
 * (Include/cpython/object.h, typeslots.h). They are found in PyTypeObjects in the file's data, whose first words are
 * the same in 3.6 to 3.15 and which are found by their methods, and in PyType_Specs. They have the names that Python
 * knows: "int.__add__".
 */

#define PYTHON_C_NAME 96 /* bytes of a name */
#define SPEC_METHODS  64 /* Py_tp_methods */

#define FLAGS_KIND   0x8f /* METH_VARARGS, METH_KEYWORDS, METH_NOARGS, METH_O, METH_FASTCALL: one of them at least */
#define FLAGS_ALL    0x3ff
#define METHOD_WORDS 4    /* PyMethodDef: name, function, flags, doc */
#define METHODS_MAX  4096 /* of a table */
#define MODULE_NAME  24   /* PyModuleDef.m_name is so far before m_methods */
#define TYPE_NAME    208  /* PyTypeObject.tp_name before tp_methods */

#define SLOTS_MAX     96 /* of a PyType_Spec */
#define GETSET_MAX    1024
#define GETSET_WORDS  5          /* PyGetSetDef: name, get, set, doc, closure */
#define SIZE_MAX_TYPE (1u << 20) /* an instance's bytes */

/* Word numbers of a PyTypeObject from tp_name on. */
enum {
	TP_NAME,
	TP_BASICSIZE,
	TP_ITEMSIZE,
	TP_DEALLOC,
	TP_ASYNC = 7,
	TP_NUMBER = 9,
	TP_SEQUENCE,
	TP_MAPPING,
	TP_BUFFER = 17,
	TP_FLAGS,
	TP_METHODS = 26,
	TP_GETSET = 28,
	TP_WORDS = 37
};

#define SPEC_GETSET 73 /* Py_tp_getset */

/* The table that a type points to from this word, or 0 the type itself; its word; the number in a PyType_Slot. */
static const struct slot {
	u8 table, word, number;
	const char *name;
} slots[] = {
        {0, TP_DEALLOC, 52, "tp_dealloc"},
        {0, 8, 66, "__repr__"},
        {0, 12, 59, "__hash__"},
        {0, 13, 50, "__call__"},
        {0, 14, 70, "__str__"},
        {0, 15, 58, "__getattribute__"},
        {0, 16, 69, "__setattr__"},
        {0, 20, 71, "tp_traverse"},
        {0, 21, 51, "tp_clear"},
        {0, 22, 67, "tp_richcompare"},
        {0, 24, 62, "__iter__"},
        {0, 25, 63, "__next__"},
        {0, 31, 54, "__get__"},
        {0, 32, 55, "__set__"},
        {0, 34, 60, "__init__"},
        {0, 36, 65, "__new__"},
        {TP_ASYNC, 0, 77, "__await__"},
        {TP_ASYNC, 1, 78, "__aiter__"},
        {TP_ASYNC, 2, 79, "__anext__"},
        {TP_ASYNC, 3, 81, "am_send"},
        {TP_NUMBER, 0, 7, "__add__"},
        {TP_NUMBER, 1, 36, "__sub__"},
        {TP_NUMBER, 2, 29, "__mul__"},
        {TP_NUMBER, 3, 34, "__mod__"},
        {TP_NUMBER, 4, 10, "__divmod__"},
        {TP_NUMBER, 5, 33, "__pow__"},
        {TP_NUMBER, 6, 30, "__neg__"},
        {TP_NUMBER, 7, 32, "__pos__"},
        {TP_NUMBER, 8, 6, "__abs__"},
        {TP_NUMBER, 9, 9, "__bool__"},
        {TP_NUMBER, 10, 27, "__invert__"},
        {TP_NUMBER, 11, 28, "__lshift__"},
        {TP_NUMBER, 12, 35, "__rshift__"},
        {TP_NUMBER, 13, 8, "__and__"},
        {TP_NUMBER, 14, 38, "__xor__"},
        {TP_NUMBER, 15, 31, "__or__"},
        {TP_NUMBER, 16, 26, "__int__"},
        {TP_NUMBER, 18, 11, "__float__"},
        {TP_NUMBER, 19, 14, "__iadd__"},
        {TP_NUMBER, 20, 23, "__isub__"},
        {TP_NUMBER, 21, 18, "__imul__"},
        {TP_NUMBER, 22, 21, "__imod__"},
        {TP_NUMBER, 23, 20, "__ipow__"},
        {TP_NUMBER, 24, 17, "__ilshift__"},
        {TP_NUMBER, 25, 22, "__irshift__"},
        {TP_NUMBER, 26, 15, "__iand__"},
        {TP_NUMBER, 27, 25, "__ixor__"},
        {TP_NUMBER, 28, 19, "__ior__"},
        {TP_NUMBER, 29, 12, "__floordiv__"},
        {TP_NUMBER, 30, 37, "__truediv__"},
        {TP_NUMBER, 31, 16, "__ifloordiv__"},
        {TP_NUMBER, 32, 24, "__itruediv__"},
        {TP_NUMBER, 33, 13, "__index__"},
        {TP_NUMBER, 34, 75, "__matmul__"},
        {TP_NUMBER, 35, 76, "__imatmul__"},
        {TP_SEQUENCE, 0, 45, "__len__"},
        {TP_SEQUENCE, 1, 40, "__add__"},
        {TP_SEQUENCE, 2, 46, "__mul__"},
        {TP_SEQUENCE, 3, 44, "__getitem__"},
        {TP_SEQUENCE, 5, 39, "__setitem__"},
        {TP_SEQUENCE, 7, 41, "__contains__"},
        {TP_SEQUENCE, 8, 42, "__iadd__"},
        {TP_SEQUENCE, 9, 43, "__imul__"},
        {TP_MAPPING, 0, 4, "__len__"},
        {TP_MAPPING, 1, 5, "__getitem__"},
        {TP_MAPPING, 2, 3, "__setitem__"},
        {TP_BUFFER, 0, 1, "__buffer__"},
        {TP_BUFFER, 1, 2, "__release_buffer__"},
};
#define SLOTS (sizeof(slots) / sizeof(*slots))

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

static bool python_is_code(const struct image *img, u64 addr)
{
	for (u32 i = 0; i < img->nsegments; i++)
		if (img->segments[i].flags & 1 && addr - img->segments[i].vaddr < img->segments[i].filesz)
			return true;
	return false;
}

/* An identifier, or several with dots between. */
static bool python_c_name(struct image *img, u64 addr, char ret[PYTHON_C_NAME])
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

/* The table of PyMethodDef at an address, of this module or type. */
static struct error *python_methods_of(
        struct image *img, const struct image_words *all, u64 addr, const char *owner, struct c_names *ret)
{
	u64 i;
	const struct words *w = section_of(all, addr, &i);

	return w ? add_table(img, w, i, owner, ret) : NULL;
}

static struct error *add(struct c_names *ret, u64 function, const char *owner, const char *name)
{
	char text[2 * PYTHON_C_NAME];

	snprintf(text, sizeof(text), "%s.%s", owner, name);
	return c_names_add(ret, function, text);
}

/* Attributes that functions get: "ndarray.shape". */
static struct error *add_getset(
        struct image *img, const struct image_words *all, u64 addr, const char *owner, struct c_names *ret)
{
	char name[PYTHON_C_NAME];
	struct error *err = NULL;

	for (u32 n = 0; !err && n < GETSET_MAX; n++, addr += GETSET_WORDS * sizeof(u64)) {
		const u64 *word = image_word(all, addr), *get = image_word(all, addr + 8),
		          *set = image_word(all, addr + 16);

		if (!word || !get || !set || !python_c_name(img, *word, name) || strchr(name, '.'))
			break;
		if (python_is_code(img, *get))
			err = add(ret, *get, owner, name);
		if (!err && python_is_code(img, *set))
			err = add(ret, *set, owner, name);
	}
	return err;
}

/* Is word i the tp_methods of a type? Then owner is the type's name. */
static bool is_type(struct image *img, const struct words *w, u64 i, char *owner)
{
	const u64 *type = i >= TP_METHODS && i - TP_METHODS + TP_WORDS <= w->n ? &w->word[i - TP_METHODS] : NULL;

	return type && type[TP_BASICSIZE] < SIZE_MAX_TYPE && type[TP_ITEMSIZE] < SIZE_MAX_TYPE &&
	       (!type[TP_DEALLOC] || python_is_code(img, type[TP_DEALLOC])) && type[TP_FLAGS] <= UINT32_MAX &&
	       python_c_name(img, type[TP_NAME], owner);
}

/* If word i is the tp_methods of a type, or the slots of a spec: adds its slots, and attributes, to ret. */
static struct error *python_slots_of_type(
        struct image *img, const struct image_words *all, const struct words *w, u64 i, struct c_names *ret)
{
	char owner[PYTHON_C_NAME];
	const u64 *type, *word;
	struct error *err;

	if (!is_type(img, w, i, owner))
		return NULL;
	type = &w->word[i - TP_METHODS];
	err = add_getset(img, all, type[TP_GETSET], owner, ret);
	for (u32 k = 0; !err && k < SLOTS; k++) {
		const struct slot *s = &slots[k];

		word = s->table ? image_word(all, type[s->table] + 8 * s->word) : &type[s->word];
		if (word && (!s->table || type[s->table]) && python_is_code(img, *word))
			err = add(ret, *word, owner, s->name);
	}
	return err;
}

/* A PyType_Slot of a spec: its number and what it points to. False: the list has ended, or is none. */
static bool read_slot(const struct image_words *all, u64 addr, u64 *number, u64 *value)
{
	const u64 *first = image_word(all, addr), *second = image_word(all, addr + 8);

	if (!first || !second || !(u32)*first || (u32)*first >= SLOTS_MAX)
		return false;
	*number = (u32)*first;
	*value = *second;
	return true;
}

static const char *name_of(u64 number)
{
	for (u32 k = 0; k < SLOTS; k++)
		if (slots[k].number == number)
			return slots[k].name;
	return NULL;
}

/* Do all of the list's functions lie in code, where it has any? */
static bool is_list(struct image *img, const struct image_words *all, u64 addr)
{
	u64 number, value;
	u32 n = 0, functions = 0;

	for (; n < SLOTS_MAX && read_slot(all, addr + 16 * n, &number, &value); n++) {
		if (name_of(number) && value && !python_is_code(img, value))
			return false;
		functions += name_of(number) != NULL;
	}
	return functions && n < SLOTS_MAX;
}

static struct error *python_slots_of_spec(
        struct image *img, const struct image_words *all, const struct words *w, u64 i, struct c_names *ret)
{
	char owner[PYTHON_C_NAME];
	struct error *err = NULL;
	u64 number, value;

	/* name with its module's, basicsize and itemsize, flags, slots */
	if (i < 3 || !is_list(img, all, w->word[i]) || (s32)w->word[i - 2] < -(s32)SIZE_MAX_TYPE ||
	        (s32)w->word[i - 2] > (s32)SIZE_MAX_TYPE || !python_c_name(img, w->word[i - 3], owner) ||
	        !strchr(owner, '.'))
		return NULL;
	for (u32 n = 0; !err && n < SLOTS_MAX && read_slot(all, w->word[i] + 16 * n, &number, &value); n++) {
		if (number == SPEC_GETSET)
			err = add_getset(img, all, value, owner, ret);
		else if (number == SPEC_METHODS)
			err = python_methods_of(img, all, value, owner, ret);
		else if (name_of(number) && python_is_code(img, value))
			err = add(ret, value, owner, name_of(number));
	}
	return err;
}

/* Names of one function by different types: it is theirs together. */
static const char *common(const struct c_name *names, u32 n)
{
	const char *ret = names->name, *dot;

	for (u32 i = 1; i < n; i++) {
		if (!strcmp(names[i].name, ret))
			continue;
		ret = strrchr(ret, '.') ? strrchr(ret, '.') + 1 : ret;
		dot = strrchr(names[i].name, '.');
		if (!dot || strcmp(dot + 1, ret))
			return NULL;
	}
	return ret;
}

/* Adds to ret what was found: a function of several types by what they all call it, without a type. */
static struct error *python_slots_settle(struct c_names *slots_found, struct c_names *ret)
{
	struct error *err = NULL;
	u32 n;

	c_names_sort(slots_found);
	for (u32 i = 0; !err && i < slots_found->n; i += n) {
		const char *name;

		for (n = 1;
		        i + n < slots_found->n && slots_found->list[i + n].function == slots_found->list[i].function;
		        n++)
			;
		name = common(&slots_found->list[i], n);
		if (name)
			err = c_names_add(ret, slots_found->list[i].function, name);
	}
	return err;
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
