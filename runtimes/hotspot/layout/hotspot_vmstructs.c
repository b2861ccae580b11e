/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_vmstructs.h"

#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "symbols/symbols.h"

#define ENTRIES_MAX 16384
#define STRIDE_MAX  256
#define TABLE_PIECE (32u << 10)
#define NAME_BYTES  128 /* the longest in 25 has 71 */
#define NAMES_MAX   (4u << 20)
#define BLOCK_BITS  12
#define BLOCKS      64

#define TABLES  VMSTRUCTS_TABLES
#define COLUMNS VMSTRUCTS_COLUMNS

enum table_kind { STRUCTS, TYPES, INTS, LONGS };

/* The exported variables of a table: where it begins, the size of an entry, where its columns lie. */
static const char *const table_names[TABLES] = {
        "gHotSpotVMStructs", "gHotSpotVMTypes", "gHotSpotVMIntConstants", "gHotSpotVMLongConstants"};
static const char *const table_strides[TABLES] = {"gHotSpotVMStructEntryArrayStride", "gHotSpotVMTypeEntryArrayStride",
        "gHotSpotVMIntConstantEntryArrayStride", "gHotSpotVMLongConstantEntryArrayStride"};
enum { S_TYPE, S_FIELD, S_TEXT, S_STATIC, S_OFFSET, S_ADDRESS };
enum { T_NAME, T_SIZE };
enum { C_NAME, C_VALUE };
static const char *const table_columns[TABLES][COLUMNS] = {
        {"gHotSpotVMStructEntryTypeNameOffset", "gHotSpotVMStructEntryFieldNameOffset",
                "gHotSpotVMStructEntryTypeStringOffset", "gHotSpotVMStructEntryIsStaticOffset",
                "gHotSpotVMStructEntryOffsetOffset", "gHotSpotVMStructEntryAddressOffset"},
        {"gHotSpotVMTypeEntryTypeNameOffset", "gHotSpotVMTypeEntrySizeOffset"},
        {"gHotSpotVMIntConstantEntryNameOffset", "gHotSpotVMIntConstantEntryValueOffset"},
        {"gHotSpotVMLongConstantEntryNameOffset", "gHotSpotVMLongConstantEntryValueOffset"},
};

/* An entry of any of the tables; names are offsets into vmstructs.names. */
struct entry {
	u32 name, field, text; /* type or constant; field and text of a field only */
	bool is_static;
	u64 value; /* offset, address, size, constant */
};

struct entries {
	struct entry *items;
	u32 n, capacity;
};

struct vmstructs {
	struct entries tables[TABLES];
	char *names;
	u32 names_size, names_capacity;
};

/* Names lie close to each other in the file's read-only data: a page is read once, not once a name. */
struct reader {
	struct memory *memory;
	u64 block[BLOCKS]; /* number + 1 */
	u8 bytes[BLOCKS][1 << BLOCK_BITS];
};

static bool find_symbol(struct image *img, const char *name, u64 *ret)
{
	struct symbol s;

	if (!symbols_lookup(img, name, &s))
		return false;
	*ret = s.start;
	return true;
}

static bool find_table(struct image *img, struct vmstructs_symbols *s, u32 t)
{
	bool found =
	        find_symbol(img, table_names[t], &s->table[t]) && find_symbol(img, table_strides[t], &s->stride[t]);

	for (u32 i = 0; found && i < COLUMNS && table_columns[t][i]; i++)
		found = find_symbol(img, table_columns[t][i], &s->column[t][i]);
	return found;
}

struct error *vmstructs_symbols_find(struct image *img, struct vmstructs_symbols **ret)
{
	u64 ignored;

	*ret = NULL;
	if (!find_symbol(img, table_names[STRUCTS], &ignored))
		return NULL;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return &error_no_memory;
	for (u32 t = 0; t < TABLES; t++)
		if (!find_table(img, *ret, t)) {
			free(*ret);
			*ret = NULL;
			return error_hint(
			        error_new(ERROR_UNSUPPORTED, "%s exports %s, but lacks parts of the description of %s",
			                img->path, table_names[STRUCTS], table_names[t]),
			        "its Java frames are left out: is this a JVM of OpenJDK 8 or later?");
		}
	return NULL;
}

static const u8 *reader_block(struct reader *r, u64 number)
{
	u32 slot = number % BLOCKS;

	if (r->block[slot] == number + 1)
		return r->bytes[slot];
	r->block[slot] = 0;
	if (!memory_read(r->memory, r->bytes[slot], sizeof(r->bytes[slot]), number << BLOCK_BITS))
		return NULL;
	r->block[slot] = number + 1;
	return r->bytes[slot];
}

static bool read_name(struct reader *r, u64 addr, char ret[NAME_BYTES])
{
	for (u32 n = 0; n < NAME_BYTES; n++, addr++) {
		const u8 *block = reader_block(r, addr >> BLOCK_BITS);

		if (!block)
			return false;
		ret[n] = block[addr & ((1u << BLOCK_BITS) - 1)];
		if (!ret[n])
			return true;
	}
	return false;
}

/* Its offset in the names; 0, which is "", if it can not be read. */
static struct error *keep_name(struct vmstructs *v, struct reader *r, u64 addr, u32 *ret)
{
	char name[NAME_BYTES];
	u32 size;

	*ret = 0;
	if (!addr || !read_name(r, addr, name) || !name[0])
		return NULL;
	size = strlen(name) + 1;
	if (v->names_size + size > NAMES_MAX)
		return error_new(ERROR_UNSUPPORTED, "the names of vmStructs exceed %u MB", NAMES_MAX >> 20);
	if (v->names_size + size > v->names_capacity) {
		u32 capacity = v->names_capacity * 2 + NAME_BYTES;
		char *grown = realloc(v->names, capacity);

		if (!grown)
			return &error_no_memory;
		v->names = grown;
		v->names_capacity = capacity;
	}
	memcpy(v->names + v->names_size, name, size);
	*ret = v->names_size;
	v->names_size += size;
	return NULL;
}

struct shape {
	u64 table, stride, column[COLUMNS];
};

static u32 column_size(u32 kind, u32 column)
{
	return (kind == STRUCTS && column == S_STATIC) || (kind == INTS && column == C_VALUE) ? 4 : 8;
}

static bool read_shape(
        struct memory *m, const struct vmstructs_symbols *s, u64 bias, u32 kind, struct shape *ret, bool *ready)
{
	*ready = false;
	if (!memory_read(m, &ret->table, 8, s->table[kind] + bias) ||
	        !memory_read(m, &ret->stride, 8, s->stride[kind] + bias))
		return false;
	*ready = ret->table && ret->stride;
	if (!*ready)
		return true;
	if (ret->stride > STRIDE_MAX)
		return false;
	for (u32 i = 0; i < COLUMNS && table_columns[kind][i]; i++)
		if (!memory_read(m, &ret->column[i], 8, s->column[kind][i] + bias) || ret->column[i] > STRIDE_MAX ||
		        ret->column[i] + column_size(kind, i) > ret->stride)
			return false;
	return true;
}

static u64 column(const struct shape *s, u32 kind, const u8 *entry, u32 i)
{
	u64 value = 0;

	memcpy(&value, entry + s->column[i], column_size(kind, i));
	return value;
}

static struct error *push_entry(struct entries *list, const struct entry *e)
{
	if (list->n == list->capacity) {
		u32 capacity = list->capacity ? list->capacity * 2 : 1024;
		struct entry *grown = realloc(list->items, capacity * sizeof(*grown));

		if (!grown)
			return &error_no_memory;
		list->items = grown;
		list->capacity = capacity;
	}
	list->items[list->n++] = *e;
	return NULL;
}

static struct error *add_entry(struct vmstructs *v, struct reader *r, u32 kind, const struct shape *s, const u8 *bytes)
{
	struct entry e = {0};
	struct error *err = keep_name(v, r, column(s, kind, bytes, 0), &e.name);

	if (err || kind != STRUCTS) {
		e.value = column(s, kind, bytes, T_SIZE);
		if (kind == INTS)
			e.value = (s64)(s32)e.value;
		return err ? err : push_entry(&v->tables[kind], &e);
	}
	err = keep_name(v, r, column(s, kind, bytes, S_FIELD), &e.field);
	if (!err)
		err = keep_name(v, r, column(s, kind, bytes, S_TEXT), &e.text);
	e.is_static = column(s, kind, bytes, S_STATIC);
	e.value = column(s, kind, bytes, e.is_static ? S_ADDRESS : S_OFFSET);
	return err ? err : push_entry(&v->tables[kind], &e);
}

/* As many entries as could be read at addr, at most a piece of them; the table may end before an unmapped page. */
static u32 read_piece(struct memory *m, const struct shape *s, u64 addr, u8 *bytes)
{
	u32 n = TABLE_PIECE / s->stride;

	while (n && !memory_read(m, bytes, n * s->stride, addr))
		n /= 2;
	return n;
}

static struct error *read_table(struct vmstructs *v, struct reader *r, u32 kind, const struct shape *s)
{
	cleanup(free) u8 *bytes = malloc(TABLE_PIECE);
	struct error *err = bytes ? NULL : &error_no_memory;
	u64 addr = s->table;
	u32 n = 1;

	while (!err && n && v->tables[kind].n < ENTRIES_MAX) {
		n = read_piece(r->memory, s, addr, bytes);
		for (u32 i = 0; !err && i < n; i++) {
			if (!column(s, kind, bytes + i * s->stride, 0))
				return NULL;
			err = add_entry(v, r, kind, s, bytes + i * s->stride);
		}
		addr += n * s->stride;
	}
	return err ? err : error_new(ERROR_UNSUPPORTED, "%s of the process has no end", table_names[kind]);
}

static int compare_entries(const void *a, const void *b, void *names)
{
	const struct entry *x = a, *y = b;
	const char *text = names;
	int order = strcmp(text + x->name, text + y->name);

	return order ? order : strcmp(text + x->field, text + y->field);
}

static struct error *read_tables(
        struct vmstructs *v, struct reader *r, const struct vmstructs_symbols *symbols, u64 bias, bool *ready)
{
	struct error *err = NULL;

	for (u32 t = 0; !err && t < TABLES; t++) {
		struct shape s;

		if (!read_shape(r->memory, symbols, bias, t, &s, ready))
			return error_new(ERROR_UNSUPPORTED, "what describes %s makes no sense", table_names[t]);
		if (!*ready)
			return NULL;
		err = read_table(v, r, t, &s);
		if (!err && v->tables[t].n)
			qsort_r(v->tables[t].items, v->tables[t].n, sizeof(struct entry), compare_entries, v->names);
	}
	return err;
}

struct error *vmstructs_read(
        const struct vmstructs_symbols *symbols, struct memory *memory, u64 jvm_bias, struct vmstructs **ret)
{
	cleanup(free) struct reader *r = calloc(1, sizeof(*r));
	struct vmstructs *v = calloc(1, sizeof(*v));
	struct error *err = r && v ? NULL : &error_no_memory;
	bool ready = false;

	*ret = NULL;
	if (!err) {
		r->memory = memory;
		v->names = calloc(1, NAME_BYTES);
		v->names_capacity = NAME_BYTES;
		v->names_size = 1;
		err = v->names ? read_tables(v, r, symbols, jvm_bias, &ready) : &error_no_memory;
	}
	if (err || !ready) {
		vmstructs_destroy(v);
		return err;
	}
	*ret = v;
	return NULL;
}

void vmstructs_destroy(struct vmstructs *v)
{
	if (!v)
		return;
	for (u32 t = 0; t < TABLES; t++)
		free(v->tables[t].items);
	free(v->names);
	free(v);
}

static const struct entry *find(const struct vmstructs *v, u32 kind, const char *name, const char *field)
{
	const struct entries *list = &v->tables[kind];
	u32 low = 0, high = list->n;

	while (low < high) {
		u32 middle = low + (high - low) / 2;
		const struct entry *e = &list->items[middle];
		int order = strcmp(name, v->names + e->name);

		if (!order)
			order = strcmp(field, v->names + e->field);
		if (!order)
			return e;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool vmstructs_field(
        const struct vmstructs *v, const char *type, const char *field, u64 *offset, const char **type_string)
{
	const struct entry *e = find(v, STRUCTS, type, field);

	if (!e || e->is_static)
		return false;
	*offset = e->value;
	if (type_string)
		*type_string = v->names + e->text;
	return true;
}

bool vmstructs_static(const struct vmstructs *v, const char *type, const char *field, u64 *address)
{
	const struct entry *e = find(v, STRUCTS, type, field);

	if (!e || !e->is_static)
		return false;
	*address = e->value;
	return true;
}

bool vmstructs_type_size(const struct vmstructs *v, const char *type, u64 *size)
{
	const struct entry *e = find(v, TYPES, type, "");

	if (!e)
		return false;
	*size = e->value;
	return true;
}

bool vmstructs_constant(const struct vmstructs *v, const char *name, s64 *value)
{
	const struct entry *e = find(v, INTS, name, "");

	if (!e)
		e = find(v, LONGS, name, "");
	if (!e)
		return false;
	*value = e->value;
	return true;
}
