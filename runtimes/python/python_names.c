/* SPDX-License-Identifier: Apache-2.0 */
#include "python_names.h"

#include <stdlib.h>
#include <string.h>

#include "known.h"

#define TABLE_MAX     (1u << 20)
#define HEAD_WITH_GIL 8 /* PyObject.ob_type: a free-threaded build has more before it */

/* A code object that was read; its owner is the cookie. */
struct code {
	struct known known;
	u32 firstlineno;
	u32 size; /* of table */
	u8 *table;
	char *file;
	char name[];
};

struct python_names {
	const struct python_layout *layout;
	u64 code_type;
	struct known_objects known;
};

static void code_free(struct known *k)
{
	struct code *code = (struct code *)k;

	free(code->table);
	free(code->file);
	free(code);
}

struct python_names *python_names_create(const struct python_layout *l, u64 code_type)
{
	struct python_names *names = calloc(1, sizeof(*names));

	if (names) {
		names->layout = l;
		names->code_type = code_type;
		names->known.destroy = code_free;
	}
	return names;
}

void python_names_destroy(struct python_names *names)
{
	if (!names)
		return;
	known_forget(&names->known);
	free(names);
}

/* The bytes of a bytes object; without them there are no lines, but a name. */
static void read_table(struct memory *mem, const struct python_layout *l, u64 addr, struct code *k)
{
	u64 size;

	if (!memory_read(mem, &size, sizeof(size), addr + l->ob_size.at) || !size || size > TABLE_MAX)
		return;
	k->table = malloc(size);
	if (k->table && memory_read(mem, k->table, size, addr + l->bytes_data.at)) {
		k->size = (u32)size;
		return;
	}
	free(k->table);
	k->table = NULL;
}

struct code_words {
	u64 type, lines;
	bool lives;
	u32 firstlineno;
	struct python_identity id;
};

static bool read_word(struct memory *mem, u64 *ret, u64 addr)
{
	return memory_read(mem, ret, sizeof(*ret), addr);
}

/*
 * Does anything refer to an object? A freed one has no references left, or in their place the allocator's link to the
 * next free block: an address of more than 32 bits, or (glibc) the type is overwritten, too.
 */
static bool lives(struct memory *mem, const struct python_layout *l, u64 object)
{
	bool free_threaded = l->ob_type.at > HEAD_WITH_GIL && l->co_qualname.size;
	u32 own;
	u64 count;

	if (!read_word(mem, &count, object + l->ob_type.at - 8))
		return false;
	if (!free_threaded) /* from 3.14 on the upper 16 bits are flags */
		return (u32)count && !(count >> 32 & 0xffff);
	return memory_read(mem, &own, sizeof(own), object + l->ob_type.at - 12) && (own || (s64)count >> 2 > 0);
}

static bool read_code(struct memory *mem, const struct python_layout *l, u64 code, struct code_words *ret)
{
	struct python_identity *id = &ret->id;

	if (!read_word(mem, &ret->type, code + l->ob_type.at) ||
	        !read_word(mem, &id->code, code + python_layout_code(l).at) ||
	        !read_word(mem, &id->consts, code + l->co_consts.at) ||
	        !read_word(mem, &id->names, code + l->co_names.at) ||
	        !read_word(mem, &id->filename, code + l->co_filename.at) ||
	        !read_word(mem, &id->name, code + python_layout_name(l).at) ||
	        !read_word(mem, &ret->lines, code + (l->co_lnotab.size ? l->co_lnotab.at : l->co_linetable.at)) ||
	        !memory_read(mem, &ret->firstlineno, sizeof(ret->firstlineno), code + l->co_firstlineno.at))
		return false;
	id->firstlineno = ret->firstlineno;
	ret->lives = lives(mem, l, code);
	return true;
}

/* Is the code object there that a walk saw? */
static bool is_it(const struct python_names *names, struct memory *mem, u64 code, u32 cookie, struct code_words *ret)
{
	return read_code(mem, names->layout, code, ret) && ret->lives && ret->type == names->code_type &&
	       python_cookie(&ret->id) == cookie;
}

/* Texts and table are the object's if it still lives when they have been read: it refers to them. */
static struct code *read_code_object(const struct python_names *names, struct memory *mem, u64 code, u32 cookie)
{
	const struct python_layout *l = names->layout;
	char name[NAME_MAX_BYTES], file[NAME_MAX_BYTES] = "";
	struct code_words words;
	struct code *k;

	if (!is_it(names, mem, code, cookie, &words) || !python_str(mem, l, words.id.name, name, sizeof(name)))
		return NULL;
	python_str(mem, l, words.id.filename, file, sizeof(file));
	k = calloc(1, sizeof(*k) + strlen(name) + 1);
	if (!k)
		return NULL;
	strcpy(k->name, name);
	k->file = strdup(file);
	k->known.object = code;
	k->known.owner = cookie;
	k->firstlineno = words.firstlineno;
	read_table(mem, l, words.lines, k);
	if (is_it(names, mem, code, cookie, &words))
		return k;
	code_free(&k->known);
	return NULL;
}

static const struct code *find(struct python_names *names, struct memory *mem, u64 code, u32 cookie)
{
	struct code *k = (struct code *)known_find(&names->known, code, cookie);

	if (k)
		return k;
	k = read_code_object(names, mem, code, cookie);
	if (k)
		known_keep(&names->known, &k->known);
	return k;
}

bool python_code_frame(struct python_names *names, struct memory *mem, u64 code, u64 pos, struct frame *ret)
{
	struct code_words words;

	if (!read_code(mem, names->layout, code, &words) || words.type != names->code_type)
		return false;
	ret->where = frame_where(FRAME_SCRIPT, RUNTIME_PYTHON, 0, code);
	ret->detail = python_detail(python_cookie(&words.id), pos < PYTHON_NO_POS ? (u32)pos : PYTHON_NO_POS);
	return true;
}

/* 0: unknown. */
static u32 line_at(const struct python_layout *l, const struct code *k, u32 pos)
{
	if (l->co_lnotab.size)
		return python_line_39(k->table, k->size, k->firstlineno, pos);
	if (!l->co_qualname.size)
		return python_line_310(k->table, k->size, k->firstlineno, pos);
	return python_line(k->table, k->size, k->firstlineno, pos);
}

static const struct code *code_of(struct python_names *names, struct memory *mem, const struct frame *frame)
{
	return find(names, mem, frame_addr(frame), (u32)(frame->detail >> PYTHON_COOKIE_BITS));
}

bool python_name_code(
        struct python_names *names, struct memory *mem, const struct frame *frame, const char **name, const char **file)
{
	const struct code *k = code_of(names, mem, frame);

	if (!k)
		return false;
	*name = k->name;
	*file = k->file ? k->file : "";
	return true;
}

/* What is read is no longer than that. */
static void copy_text(char ret[NAME_MAX_BYTES], const char *text)
{
	size_t n = strnlen(text, NAME_MAX_BYTES - 1);

	memcpy(ret, text, n);
	ret[n] = '\0';
}

bool python_name_frame(
        struct python_names *names, struct memory *mem, const struct frame *frame, struct frame_name *ret)
{
	u64 code = frame_addr(frame);
	u32 cookie = (u32)(frame->detail >> PYTHON_COOKIE_BITS), pos = python_pos(frame);
	const struct code *k = code_of(names, mem, frame);

	if (!k)
		return false;
	memset(ret, 0, sizeof(*ret));
	copy_text(ret->name, k->name);
	copy_text(ret->file, k->file ? k->file : "");
	ret->definition = k->firstlineno;
	ret->line = pos == PYTHON_NO_POS ? k->firstlineno : line_at(names->layout, k, pos);
	ret->identity = code ^ (u64)cookie << 32;
	return true;
}
