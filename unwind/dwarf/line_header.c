/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of line tables: directories and files. */
#include <dwarf.h>
#include <stdlib.h>

#include "line_read.h"

#define DWARF64     0xffffffffu
#define RESERVED    0xfffffff0u
#define TABLE_MAX   (1ull << 30)
#define ENTRIES_MAX (1u << 20)
#define FORMATS_MAX 16u

void *line_add(void *array, u32 *n, u32 *room, u32 max, size_t size)
{
	u32 more = *room ? *room * 2 : 64;
	void *grown;

	if (*n == max)
		return NULL;
	if (*n == *room) {
		grown = realloc(*(void **)array, more * size);
		if (!grown)
			return NULL;
		*(void **)array = grown;
		*room = more;
	}
	return *(u8 **)array + (*n)++ * size;
}

u64 line_table_size(struct dwarf_file *f, u64 offset, u8 *ret_offset_size)
{
	struct dwarf_section *s = &f->sections[DWARF_LINE];
	u64 left = offset < s->size ? s->size - offset : 0, size = left < 12 ? left : 12, length;
	const u8 *bytes = size ? section_need(s, offset, size) : NULL;
	struct dwarf_cursor c = {bytes, bytes ? bytes + size : NULL};

	if (!bytes)
		return 0;
	length = cursor_fixed(&c, 4);
	*ret_offset_size = length == DWARF64 ? 8 : 4;
	if (length == DWARF64)
		length = cursor_fixed(&c, 8);
	else if (length >= RESERVED)
		return 0;
	size = *ret_offset_size == 8 ? 12 : 4;
	return length <= left - size && length <= TABLE_MAX ? size + length : 0;
}

static bool add_entry(struct line_entry **list, u32 *n, u32 *room, struct line_entry entry)
{
	struct line_entry *e = line_add(list, n, room, ENTRIES_MAX, sizeof(*e));

	if (e)
		*e = entry;
	return e;
}

static struct dwarf_value inline_string(const struct line_table *t, struct dwarf_cursor *c, const u8 *bytes)
{
	struct dwarf_value v = {DW_FORM_string, t->offset + (c->p - bytes)};

	cursor_skip_string(c);
	return v;
}

/* Below version 5: lists that an empty name ends. */
static bool read_lists(struct line_table *t, struct dwarf_cursor *c, const u8 *bytes)
{
	while (c->p < c->end && *c->p) {
		struct line_entry e = {inline_string(t, c, bytes), 0};

		if (!add_entry(&t->dirs, &t->ndirs, &t->dirs_room, e))
			return false;
	}
	cursor_skip(c, 1);
	while (c->p < c->end && *c->p) {
		struct line_entry e = {inline_string(t, c, bytes), 0};

		e.dir = cursor_uleb(c);
		cursor_skip_leb(c);
		cursor_skip_leb(c);
		if (!add_entry(&t->files, &t->nfiles, &t->files_room, e))
			return false;
	}
	return true;
}

/* False: a form that has no place here. */
static bool read_value(
        const struct line_table *t, struct dwarf_cursor *c, const u8 *bytes, u64 form, struct dwarf_value *ret)
{
	struct form_shape shape = form_shape(form);

	if (shape.op == FORM_UNKNOWN || shape.op == FORM_INDIRECT)
		return false;
	if (shape.op == FORM_STRING) {
		*ret = inline_string(t, c, bytes);
		return true;
	}
	ret->form = form;
	ret->value = form_read(c, form, shape, (struct form_sizes){t->addr_size, t->offset_size, t->version});
	return true;
}

/* Version 5: a description of what entries are made of, their number, and the entries. */
static bool read_table(
        struct line_table *t, struct dwarf_cursor *c, const u8 *bytes, struct line_entry **list, u32 *n, u32 *room)
{
	struct {
		u64 content, form;
	} formats[FORMATS_MAX];
	u32 nformats = cursor_fixed(c, 1);
	u64 count;

	if (nformats > FORMATS_MAX)
		return false;
	for (u32 i = 0; i < nformats; i++) {
		formats[i].content = cursor_uleb(c);
		formats[i].form = cursor_uleb(c);
	}
	count = cursor_uleb(c);
	for (u64 k = 0; nformats && k < count && c->p < c->end; k++) {
		struct line_entry e = {0};

		for (u32 i = 0; i < nformats; i++) {
			struct dwarf_value v;

			if (!read_value(t, c, bytes, formats[i].form, &v))
				return false;
			if (formats[i].content == DW_LNCT_path)
				e.name = v;
			else if (formats[i].content == DW_LNCT_directory_index)
				e.dir = v.value;
		}
		if (!add_entry(list, n, room, e))
			return false;
	}
	return true;
}

static bool read_entries(struct line_table *t, struct dwarf_cursor *c, const u8 *bytes)
{
	if (t->version < 5)
		return read_lists(t, c, bytes);
	return read_table(t, c, bytes, &t->dirs, &t->ndirs, &t->dirs_room) &&
	       read_table(t, c, bytes, &t->files, &t->nfiles, &t->files_room);
}

bool line_header_read(struct line_table *t, const u8 *bytes, u64 size, struct line_header *ret)
{
	struct dwarf_cursor c = {bytes, bytes + size};
	u64 length;

	cursor_skip(&c, t->offset_size == 8 ? 12 : 4);
	t->version = cursor_fixed(&c, 2);
	if (t->version < 2 || t->version > 5)
		return false;
	if (t->version == 5) {
		t->addr_size = cursor_fixed(&c, 1);
		cursor_skip(&c, 1);
	}
	length = cursor_fixed(&c, t->offset_size);
	if (length > cursor_left(&c))
		return false;
	ret->program = (c.p - bytes) + length;
	ret->end = size;
	ret->min_length = cursor_fixed(&c, 1);
	if (t->version >= 4)
		cursor_skip(&c, 1);
	cursor_skip(&c, 1);
	ret->line_base = cursor_fixed(&c, 1);
	ret->line_range = cursor_fixed(&c, 1);
	ret->per_range = ret->line_range ? 65536 / ret->line_range + 1 : 0;
	ret->opcode_base = cursor_fixed(&c, 1);
	for (u32 i = 1; i < ret->opcode_base; i++)
		ret->lengths[i] = cursor_fixed(&c, 1);
	c.end = bytes + ret->program;
	return c.p <= c.end && read_entries(t, &c, bytes);
}
