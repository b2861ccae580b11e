/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

#include "die.h"
#include "line_read.h"
#include "search.h"

/* Headers of line tables: directories and files. */

#define DWARF64     0xffffffffu
#define RESERVED    0xfffffff0u
#define TABLE_MAX   (1ull << 30)
#define ENTRIES_MAX (1u << 20)
#define FORMATS_MAX 16u

/* One more in a growing array of at most max; NULL: no more. */
static void *line_add(void *array, u32 *n, u32 *room, u32 max, size_t size)
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

/* The size of the table at offset, from its length field; 0: none there. */
static u64 line_table_size(struct dwarf_file *f, u64 offset, u8 *ret_offset_size)
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

/* bytes: the table's, size: with its length field. */
static bool line_header_read(struct line_table *t, const u8 *bytes, u64 size, struct line_header *ret)
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

/* The state machine of line programs. */

#define ROWS_MAX      (6u << 20)
#define SEQUENCES_MAX (1u << 22)

struct line_state {
	struct line_table *t;
	const struct line_header *h;
	u64 addr, line, column, file;
	u32 first; /* row of this sequence */
	u64 low;
	bool full;
};

static void reset(struct line_state *s)
{
	s->addr = s->column = 0;
	s->line = s->file = 1;
	s->first = s->t->nrows;
}

/* A row that says what the one before it says adds nothing. */
static inline void add_row(struct line_state *s)
{
	struct line_row row = {.addr = s->addr,
	        .column = s->column < UINT16_MAX ? s->column : UINT16_MAX,
	        .line = s->line,
	        .file = s->file};
	struct line_row *last = s->t->nrows > s->first ? &s->t->rows[s->t->nrows - 1] : NULL;

	if (!last)
		s->low = s->addr;
	if (last && last->line == row.line && last->file == row.file && last->column == row.column &&
	        last->addr <= s->addr)
		return;
	if (last && last->addr == row.addr) { /* the last of an address holds */
		*last = row;
		return;
	}
	if (s->t->nrows < s->t->rows_room) {
		s->t->rows[s->t->nrows++] = row;
		return;
	}
	last = line_add(&s->t->rows, &s->t->nrows, &s->t->rows_room, ROWS_MAX, sizeof(*last));
	if (last)
		*last = row;
	s->full = !last;
}

static void end_sequence(struct line_state *s)
{
	struct line_table *t = s->t;
	struct line_sequence *seq;

	if (t->nrows > s->first && s->addr > s->low) {
		seq = line_add(&t->sequences, &t->nsequences, &t->sequences_room, SEQUENCES_MAX, sizeof(*seq));
		if (seq)
			*seq = (struct line_sequence){s->low, s->addr, s->first, t->nrows - s->first};
	} else {
		t->nrows = s->first;
	}
	reset(s);
}

static void run_extended(struct line_state *s, struct dwarf_cursor *c)
{
	u64 len = cursor_uleb(c);
	const u8 *end = c->p + (len < cursor_left(c) ? len : cursor_left(c));
	u8 op = len ? cursor_fixed(c, 1) : 0;

	switch (op) {
	case DW_LNE_end_sequence:
		end_sequence(s);
		break;
	case DW_LNE_set_address:
		s->addr = cursor_fixed(c, len - 1 <= 8 ? len - 1 : 8);
		break;
	}
	c->p = end;
}

static void run_standard(struct line_state *s, struct dwarf_cursor *c, u8 op)
{
	const struct line_header *h = s->h;

	switch (op) {
	case DW_LNS_copy:
		add_row(s);
		break;
	case DW_LNS_advance_pc:
		s->addr += cursor_uleb(c) * h->min_length;
		break;
	case DW_LNS_advance_line:
		s->line += cursor_sleb(c);
		break;
	case DW_LNS_set_file:
		s->file = cursor_uleb(c);
		break;
	case DW_LNS_set_column:
		s->column = cursor_uleb(c);
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	case DW_LNS_const_add_pc:
		if (h->line_range)
			s->addr += (u64)((255 - h->opcode_base) / h->line_range) * h->min_length;
		break;
	case DW_LNS_fixed_advance_pc:
		s->addr += cursor_fixed(c, 2);
		break;
	default:
		for (u32 i = 0; i < h->lengths[op]; i++)
			cursor_skip_leb(c);
	}
}

static inline void run_special(struct line_state *s, u8 op)
{
	const struct line_header *h = s->h;
	u8 adjusted = op - h->opcode_base;
	u32 advance = adjusted * h->per_range >> 16;

	if (h->line_range) {
		s->addr += (u64)advance * h->min_length;
		s->line += h->line_base + (adjusted - advance * h->line_range);
	}
	add_row(s);
}

static int compare(const void *left, const void *right)
{
	const struct line_sequence *a = left, *b = right;

	if (a->high != b->high)
		return a->high < b->high ? -1 : 1;
	return (a->first > b->first) - (a->first < b->first);
}

/* Fills rows and sequences. */
static void line_program_run(struct line_table *t, const struct line_header *h, struct dwarf_cursor c)
{
	struct line_state s = {.t = t, .h = h};

	reset(&s);
	while (c.p < c.end && !s.full) {
		u8 op = *c.p++;

		if (op >= h->opcode_base)
			run_special(&s, op);
		else if (op)
			run_standard(&s, &c, op);
		else
			run_extended(&s, &c);
	}
	if (t->nsequences)
		qsort(t->sequences, t->nsequences, sizeof(*t->sequences), compare);
}

#define ROWS_KEPT (1u << 17) /* of all tables together, 16 bytes each */
#define PATH_ROOM 4096u

void line_table_destroy(struct line_table *t)
{
	if (!t)
		return;
	free(t->dirs);
	free(t->files);
	free(t->rows);
	free(t->sequences);
	free(t->paths);
	free(t);
}

static struct line_table *make(struct dwarf_file *f, const struct dwarf_unit *unit)
{
	u8 offset_size;
	u64 size = line_table_size(f, unit->line.value, &offset_size);
	const u8 *bytes = size ? section_need(&f->sections[DWARF_LINE], unit->line.value, size) : NULL;
	struct line_table *t = bytes ? calloc(1, sizeof(*t)) : NULL;
	struct line_header h = {0};

	if (!t)
		return NULL;
	t->offset = unit->line.value;
	t->offset_size = offset_size;
	t->addr_size = unit->addr_size;
	t->rows = f->spare_rows;
	t->rows_room = f->spare_room;
	f->spare_rows = NULL;
	f->spare_room = 0;
	if (line_header_read(t, bytes, size, &h))
		line_program_run(t, &h, (struct dwarf_cursor){bytes + h.program, bytes + h.end});
	t->paths = calloc(t->nfiles + 2, sizeof(*t->paths));
	if (t->paths)
		return t;
	line_table_destroy(t);
	return NULL;
}

static u32 oldest(const struct dwarf_file *f)
{
	u32 best = DWARF_LINES_KEPT;

	for (u32 i = 0; i < DWARF_LINES_KEPT; i++)
		if (f->lines[i] && (best == DWARF_LINES_KEPT || f->lines[i]->used < f->lines[best]->used))
			best = i;
	return best;
}

/* Its rows serve the next one: fresh memory would cost more than decoding. */
static void drop(struct dwarf_file *f, u32 i)
{
	struct line_table *t = f->lines[i];

	if (t->rows_room > f->spare_room) {
		free(f->spare_rows);
		f->spare_rows = t->rows;
		f->spare_room = t->rows_room;
		t->rows = NULL;
	}
	line_table_destroy(t);
	f->lines[i] = NULL;
}

/* A free place, with room for the rows of a new table. */
static u32 make_room(struct dwarf_file *f)
{
	for (;;) {
		u32 rows = 0, empty = DWARF_LINES_KEPT, i;

		for (i = 0; i < DWARF_LINES_KEPT; i++) {
			rows += f->lines[i] ? f->lines[i]->rows_room : 0;
			empty = f->lines[i] ? empty : i;
		}
		if (rows < ROWS_KEPT && empty < DWARF_LINES_KEPT)
			return empty;
		drop(f, oldest(f));
	}
}

struct line_table *line_table_of(struct dwarf_file *f, struct dwarf_unit *unit)
{
	struct line_table *t;
	u32 at;

	if (!dwarf_unit_root(f, unit) || !unit->line.form)
		return NULL;
	for (u32 i = 0; i < DWARF_LINES_KEPT; i++) {
		if (!f->lines[i] || f->lines[i]->offset != unit->line.value)
			continue;
		f->lines[i]->used = ++f->clock;
		return f->lines[i];
	}
	at = make_room(f);
	t = make(f, unit);
	if (t)
		t->used = ++f->clock;
	f->lines[at] = t;
	return t;
}

const struct line_row *line_find(const struct line_table *t, u64 addr)
{
	const struct line_sequence *seq;
	const struct line_row *rows;
	u32 at = SEARCH(t->nsequences, k, t->sequences[k].high <= addr), after;

	if (at == t->nsequences || t->sequences[at].low > addr)
		return NULL;
	seq = &t->sequences[at];
	rows = t->rows + seq->first;
	after = SEARCH(seq->n, k, rows[k].addr <= addr);
	return &rows[after ? after - 1 : 0]; /* the first one begins the sequence */
}

static bool is_absolute(const char *path)
{
	return path[0] == '/';
}

/* Appends a part of a path; with a slash in between, unless that is there. */
static size_t append(char *path, size_t len, const char *part, u64 size)
{
	if (!size || len + size + 2 > PATH_ROOM)
		return len;
	if (len && path[len - 1] != '/' && part[0] != '/')
		path[len++] = '/';
	memcpy(path + len, part, size);
	path[len + size] = 0;
	return len + size;
}

static size_t append_value(
        struct dwarf_file *f, const struct dwarf_unit *unit, char *path, size_t len, const struct dwarf_value *v)
{
	u64 size;
	const char *text = dwarf_string(f, unit, v, &size);

	return text ? append(path, len, text, size) : len;
}

/* Inline strings of a table lie in it, not among the unit's entries. */
static struct dwarf_value in_table(const struct dwarf_value *v)
{
	return (struct dwarf_value){v->form == DW_FORM_string ? DWARF_FORM_LINE : v->form, v->value};
}

/* The directory a file is in. Below version 5, 0 means none and the first one has number 1. */
static const struct line_entry *directory(const struct line_table *t, u64 dir)
{
	if (t->version < 5)
		return dir && dir <= t->ndirs ? &t->dirs[dir - 1] : NULL;
	return dir < t->ndirs ? &t->dirs[dir] : NULL;
}

char *line_path(struct dwarf_file *f, const struct dwarf_unit *unit, const struct line_table *t, u64 file)
{
	u64 index = t->version < 5 ? file - 1 : file;
	char name[PATH_ROOM] = "", dir[PATH_ROOM] = "", path[PATH_ROOM] = "";
	const struct line_entry *d;
	struct dwarf_value v;
	size_t len = 0;

	if (index >= t->nfiles)
		return NULL;
	v = in_table(&t->files[index].name);
	if (!append_value(f, unit, name, 0, &v))
		return NULL;
	if (is_absolute(name))
		return strdup(name);
	d = directory(t, t->files[index].dir);
	if (d) {
		v = in_table(&d->name);
		append_value(f, unit, dir, 0, &v);
	}
	if (!is_absolute(dir))
		len = append_value(f, unit, path, 0, &unit->comp_dir);
	len = append(path, len, dir, strlen(dir));
	append(path, len, name, strlen(name));
	return strdup(path);
}
