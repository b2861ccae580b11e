/* SPDX-License-Identifier: Apache-2.0 */
#include "python_names.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS   1024 /* power of two */
#define KNOWN_MAX 65536
#define TABLE_MAX (1u << 20)

/* A code object that was read. */
struct known {
	struct known *next;
	u64 code;
	u32 cookie;
	u32 firstlineno;
	u32 size; /* of table */
	u8 *table;
	char *file;
	char name[];
};

struct python_names {
	const struct python_layout *layout;
	u64 code_type;
	u32 n;
	struct known *buckets[BUCKETS];
};

struct python_names *python_names_create(const struct python_layout *l, u64 code_type)
{
	struct python_names *names = calloc(1, sizeof(*names));

	if (names) {
		names->layout = l;
		names->code_type = code_type;
	}
	return names;
}

static void known_free(struct known *k)
{
	free(k->table);
	free(k->file);
	free(k);
}

static void forget(struct python_names *names)
{
	for (u32 i = 0; i < BUCKETS; i++)
		while (names->buckets[i]) {
			struct known *k = names->buckets[i];

			names->buckets[i] = k->next;
			known_free(k);
		}
	names->n = 0;
}

void python_names_destroy(struct python_names *names)
{
	if (!names)
		return;
	forget(names);
	free(names);
}

static struct known **bucket(struct python_names *names, u64 code)
{
	return &names->buckets[code * 0x9e3779b97f4a7c15ull >> 54 & (BUCKETS - 1)];
}

/* The bytes of a bytes object; without them there are no lines, but a name. */
static void read_table(struct memory *mem, const struct python_layout *l, u64 addr, struct known *k)
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
	u32 firstlineno;
	struct python_identity id;
};

static bool read_word(struct memory *mem, u64 *ret, u64 addr)
{
	return memory_read(mem, ret, sizeof(*ret), addr);
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
	return true;
}

static struct known *read_known(const struct python_names *names, struct memory *mem, u64 code, u32 cookie)
{
	const struct python_layout *l = names->layout;
	char name[NAME_MAX_BYTES], file[NAME_MAX_BYTES] = "";
	struct code_words words;
	struct known *k;

	if (!read_code(mem, l, code, &words) || words.type != names->code_type || python_cookie(&words.id) != cookie ||
	        !python_str(mem, l, words.id.name, name, sizeof(name)))
		return NULL;
	python_str(mem, l, words.id.filename, file, sizeof(file));
	k = calloc(1, sizeof(*k) + strlen(name) + 1);
	if (!k)
		return NULL;
	strcpy(k->name, name);
	k->file = strdup(file);
	k->code = code;
	k->cookie = cookie;
	k->firstlineno = words.firstlineno;
	read_table(mem, l, words.lines, k);
	return k;
}

static const struct known *find(struct python_names *names, struct memory *mem, u64 code, u32 cookie)
{
	struct known **head = bucket(names, code), *k;

	for (k = *head; k; k = k->next)
		if (k->code == code && k->cookie == cookie)
			return k;
	k = read_known(names, mem, code, cookie);
	if (!k)
		return NULL;
	if (names->n++ >= KNOWN_MAX)
		forget(names);
	k->next = *head;
	*head = k;
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
static u32 line_at(const struct python_layout *l, const struct known *k, u32 pos)
{
	if (l->co_lnotab.size)
		return python_line_39(k->table, k->size, k->firstlineno, pos);
	if (!l->co_qualname.size)
		return python_line_310(k->table, k->size, k->firstlineno, pos);
	return python_line(k->table, k->size, k->firstlineno, pos);
}

bool python_name_frame(
        struct python_names *names, struct memory *mem, const struct frame *frame, struct frame_name *ret)
{
	u64 code = frame_addr(frame);
	u32 cookie = (u32)(frame->detail >> PYTHON_COOKIE_BITS), pos = python_pos(frame);
	const struct known *k = find(names, mem, code, cookie);

	if (!k)
		return false;
	memset(ret, 0, sizeof(*ret));
	snprintf(ret->name, sizeof(ret->name), "%s", k->name);
	snprintf(ret->file, sizeof(ret->file), "%s", k->file ? k->file : "");
	ret->definition = k->firstlineno;
	ret->line = pos == PYTHON_NO_POS ? k->firstlineno : line_at(names->layout, k, pos);
	ret->identity = code ^ (u64)cookie << 32;
	return true;
}
