/* SPDX-License-Identifier: Apache-2.0 */
#include "python_values.h"

#include <stdlib.h>
#include <string.h>

#include "python_names.h"

#define V3_8  0x03080000
#define V3_11 0x030b0000
#define V3_12 0x030c0000
#define V3_13 0x030d0000
#define V3_14 0x030e0000

#define HEAD        16         /* sizeof(PyObject) */
#define SIZE        16         /* PyVarObject.ob_size, ma_used, PyASCIIObject.length */
#define DATA        (HEAD + 8) /* ob_digit, from 3.12 on: behind long_value.lv_tag */
#define TYPE_NAME   (HEAD + 8) /* PyTypeObject, as the next */
#define TYPE_SIZE   (HEAD + 16)
#define DIGIT_BITS  30
#define ASCII       0x40 /* of the first byte of PyASCIIObject.state */
#define VARARGS     4    /* co_flags */
#define VARKEYWORDS 8
#define NAMES_MAX   65536
#define FRAME_MAX   4096

/* Where the locals of a frame begin: _PyInterpreterFrame.localsplus, PyFrameObject.f_localsplus. */
static u32 locals_at(const struct python_reader *r, u64 frame_type)
{
	u64 size;

	if (r->version >= V3_11)
		return r->version < V3_14 ? 72 : 80;
	size = python_word(r, frame_type + TYPE_SIZE);
	return size > 8 && size < FRAME_MAX ? (u32)size - 8 : 0;
}

/* How many arguments there are by position and by keyword, and their names: co_localsplusnames, co_varnames. */
static u32 count_arguments(const struct python_reader *r, u64 code, u64 *names)
{
	const struct python_layout *l = r->l;
	bool old = r->version < V3_11;
	u32 by_position = 0, by_keyword = 0, line = l->co_firstlineno.at;

	python_read(r, &by_position, sizeof(u32), code + line - (old ? 24 : 16));
	python_read(r, &by_keyword, sizeof(u32), code + line - (old ? 16 : 8));
	*names = python_word(r, code + (old ? l->co_names.at + 8u : l->co_filename.at - 16u));
	return by_position < NAMES_MAX && by_keyword < NAMES_MAX ? by_position + by_keyword : 0;
}

static void add_names(const struct python_reader *r, u64 names, u32 n, u32 plain, bool has_args, char *ret)
{
	u64 first = names + r->l->ob_size.at + (r->version >= V3_14 ? 16 : 8), have;
	size_t len = 0;

	have = names ? python_word(r, names + r->l->ob_size.at) : 0;
	for (u32 i = 0; i < n && i < have; i++) {
		char name[64];
		const char *stars = i < plain ? "" : i == plain && has_args ? "*" : "**";

		if (!python_str(r->mem, r->l, python_word(r, first + 8ull * i), name, sizeof(name)) ||
		        len + strlen(name) + 4 > RUNTIME_CALL_NAMES)
			return;
		len += (size_t)snprintf(ret + len, RUNTIME_CALL_NAMES - len, "%s%s%s", i ? "," : "", stars, name);
	}
}

#define KIND_CELL 0x40 /* Include/internal/pycore_code.h: CO_FAST_CELL, of 3.11 on */

/*
 * Arguments that a function inside uses, too, are in cells. From 3.11 on the function itself puts them there, first of
 * all; what can be suspended has done so as its body begins. Up to 3.10 cells are behind the locals from the beginning
 * (co_nlocals, co_cellvars, co_cell2arg).
 */
static void find_cells(const struct python_reader *r, u64 code, bool in_body, struct value_places *v)
{
	u64 names = code + r->l->co_names.at, kinds, args, arg, cells;
	u8 kind[VALUES_MAX] = {0};
	u32 nlocals = 0;

	for (u32 i = 0; i < VALUES_MAX; i++)
		v->slot[i] = (u8)i;
	if (r->version >= V3_11) {
		kinds = python_word(r, code + r->l->co_filename.at - 8u);
		if (in_body && kinds)
			python_read(r, kind, v->n, kinds + r->l->bytes_data.at);
		for (u32 i = 0; i < v->n; i++)
			if (kind[i] & KIND_CELL)
				v->path[i] = (struct value_path){.n = 1, .at = {HEAD}};
		return;
	}
	args = python_word(r, names + 32);
	cells = args ? python_word(r, python_word(r, names + 24) + r->l->ob_size.at) : 0;
	python_read(r, &nlocals, sizeof(nlocals), code + r->l->co_firstlineno.at - 12u);
	for (u32 i = 0; i < cells && nlocals + i <= UINT8_MAX; i++) {
		arg = python_word(r, args + 8ull * i);
		if (arg >= v->n)
			continue;
		v->slot[arg] = (u8)(nlocals + i);
		v->path[arg] = (struct value_path){.n = 1, .at = {HEAD}};
	}
}

static void set_shapes(
        const struct python_image *image, u64 bias, const struct python_reader *r, struct value_places *v)
{
	const struct python_layout *l = r->l;
	u16 digits = r->version >= V3_12 ? VALUE_TAGGED : VALUE_DIGITS;
	const struct value_shape shapes[] = {
	        {.type = image->types.integer, .from = HEAD, .to = DATA + 8, .value_at = HEAD, .sense = digits},
	        {.type = image->types.boolean, .from = HEAD, .to = DATA + 8, .value_at = HEAD, .sense = digits},
	        {.type = image->types.real, .from = HEAD, .to = HEAD + 8, .value_at = HEAD, .sense = VALUE_REAL},
	        {.type = image->types.list, .from = HEAD, .to = SIZE + 8},
	        {.type = image->types.tuple, .from = HEAD, .to = SIZE + 8},
	        {.type = image->types.dict, .from = HEAD, .to = SIZE + 8},
	        {.type = image->types.bytes,
	                .from = HEAD,
	                .to = HEAD + 16,
	                .length_at = SIZE,
	                .length_bits = UINT32_MAX,
	                .data_at = l->bytes_data.at,
	                .sense = VALUE_TEXT},
	        {.type = image->types.str,
	                .from = HEAD,
	                .to = HEAD + 24,
	                .length_at = SIZE,
	                .length_bits = UINT32_MAX,
	                .data_at = l->str_ascii.at,
	                .narrow_at = l->str_state.at,
	                .narrow = ASCII,
	                .value_at = l->str_compact.at,
	                .sense = VALUE_UNICODE},
	        {.type = image->types.type, .plain = 8},
	};

	_Static_assert(sizeof(shapes) <= sizeof(v->shape), "room for all");
	memcpy(v->shape, shapes, sizeof(shapes));
	for (u32 i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		v->shape[i].type += bias;
}

void python_places(const struct python_reader *r, const struct python_image *image, u64 bias, u64 code, u32 flags,
        struct runtime_callee *c)
{
	u32 plain, all, locals = locals_at(r, image->frame_type + bias);
	u64 names;

	if (r->version < V3_8 || python_head(r) != HEAD || !locals || r->l->str_length.at != SIZE)
		return;
	plain = count_arguments(r, code, &names);
	all = plain + !!(flags & VARARGS) + !!(flags & VARKEYWORDS);
	c->takes_more = all > VALUES_MAX;
	c->values = (struct value_places){.n = all < VALUES_MAX ? all : VALUES_MAX,
	        .base = VALUE_FRAME,
	        .at = (s32)locals,
	        .step = 8,
	        .typing = VALUE_TYPE_OF_OBJECT,
	        .type_at = r->l->ob_type.at,
	        .mask = ~7ull,
	        .reference_bytes = 8,
	        .table = r->version >= V3_13   ? VALUE_TABLE_INLINE
	                 : r->version >= V3_12 ? VALUE_TABLE_TAGGED
	                 : r->version >= V3_11 ? VALUE_TABLE_LOG
	                                       : VALUE_TABLE_SIZE,
	        .table_text = r->l->str_ascii.at};
	set_shapes(image, bias, r, &c->values);
	find_cells(r, code, c->makes && c->place.own == RUNTIME_OWN_FRAME, &c->values);
	add_names(r, names, c->values.n, plain, flags & VARARGS, c->arguments);
}

/* --- along attributes --- */

#define TYPE_BASE      (HEAD + 240) /* PyTypeObject.tp_base, tp_dict */
#define TYPE_DICT      (HEAD + 248)
#define BASES_MAX      16
#define DESCRIPTOR     "member_descriptor" /* Objects/descrobject.c: PyMemberDescr_Type */
#define MEMBER         (HEAD + 24)         /* PyMemberDescrObject.d_member */
#define MEMBER_TYPE    8                   /* PyMemberDef.type, offset */
#define MEMBER_OFFSET  16
#define MEMBER_OBJECT  6 /* Include/structmember.h, descrobject.h: T_OBJECT, T_OBJECT_EX */
#define MEMBER_PRESENT 16
#define WAY_NAME       128
#define ITEMS_MAX      1024 /* of a tuple */

/* "<MODULE.CLASS>": *way moves behind it. Returns the type; 0: it is not said, or its module is not imported. */
static u64 class_said(const struct python_reader *r, u64 runtime, const char **way)
{
	u64 interp[PYTHON_INTERPRETERS_MAX], class = 0;
	size_t len = strcspn(*way, ">,|");
	char name[WAY_NAME], *dot;
	u32 n;

	if (**way != '<' || (*way)[len] != '>' || len > sizeof(name))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)len - 1, *way + 1);
	*way += len + 1;
	dot = strrchr(name, '.');
	if (!dot)
		return 0;
	*dot = '\0';
	n = python_interpreters(r, runtime, interp);
	for (u32 i = 0; i < n && !class; i++)
		class = python_dict_find(r, python_module(r, interp[i], name), dot + 1);
	return class;
}

/* Where instances of a class have what they do not have in a dict. 0: they do not. */
static u16 slot_of(const struct python_reader *r, u64 class, const char *name)
{
	char type[sizeof(DESCRIPTOR) + 1];
	u64 descriptor, member, offset;
	u32 kind;

	for (u32 i = 0; i < BASES_MAX && class; i++, class = python_word(r, class + TYPE_BASE)) {
		descriptor = python_dict_find(r, python_word(r, class + TYPE_DICT), name);
		if (!descriptor)
			continue;
		member = python_word(r, descriptor + r->l->ob_type.at);
		if (!memory_string(r->mem, type, sizeof(type), python_word(r, member + TYPE_NAME)) ||
		        strcmp(type, DESCRIPTOR) != 0)
			return 0;
		member = python_word(r, descriptor + MEMBER);
		offset = python_word(r, member + MEMBER_OFFSET);
		if (!python_read(r, &kind, sizeof(kind), member + MEMBER_TYPE) ||
		        (kind != MEMBER_OBJECT && kind != MEMBER_PRESENT) || offset < HEAD || offset >= VALUE_NAMED)
			return 0;
		return (u16)offset;
	}
	return 0;
}

/* The field that begins here, of a class if it is said: in a slot then. Returns its length; 0: it is none. */
static size_t field_of(const struct python_reader *r, u64 class, const char *way, struct value_places *v, u16 *ret)
{
	bool item = *way == '[';
	size_t len = strcspn(way + 1, item ? "],|" : ".[<,|");
	char name[WAY_NAME], *end;
	unsigned long number;

	if (!len || len >= sizeof(name) || (item ? way[1 + len] != ']' : *way != '.'))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)len, way + 1);
	number = strtoul(name, &end, 10);
	if (item && !*end)
		*ret = number < ITEMS_MAX ? (u16)(SIZE + (r->version >= V3_14 ? 16 : 8) + 8 * number) : 0;
	else if (class)
		*ret = slot_of(r, class, name);
	else
		*ret = runtime_add_key(v, name, len) | (item ? 0 : VALUE_NAMED);
	return *ret & ~VALUE_NAMED ? 1 + len + item : 0;
}

bool python_field(const struct python_reader *r, u64 runtime, const char *way, struct value_places *v, u32 slot)
{
	struct value_path *path = &v->path[slot];
	size_t len;

	while (*way && !strchr(",|", *way)) {
		bool said = *way == '<';
		u64 class = said ? class_said(r, runtime, &way) : 0;

		if (path->n == VALUE_HOPS || (said && (!class || *way != '.')))
			return false;
		len = field_of(r, class, way, v, &path->at[path->n]);
		if (!len)
			return false;
		path->n++;
		way += len;
	}
	return path->n != 0;
}

static u64 word_of(const struct runtime_value *v, u32 at)
{
	u64 word = 0;

	if (at + sizeof(word) <= v->size)
		memcpy(&word, v->bytes + at, sizeof(word));
	return word;
}

/* Up to two digits of 30 bits. Their number has the sign up to 3.11, the lowest bits of the tag from then on. */
static void write_integer(const struct python_reader *r, const struct runtime_value *v, bool boolean, FILE *out)
{
	u64 tag = word_of(v, SIZE), digits = word_of(v, DATA), n = r->version >= V3_12 ? tag >> 3 : tag, value;
	bool negative = r->version >= V3_12 ? (tag & 3) == 2 : (s64)tag < 0;

	if (r->version < V3_12 && negative)
		n = -n;
	if (v->size < DATA + 8 || n > 2) {
		fprintf(out, "<int of %lu digits of %u bits>", n, DIGIT_BITS);
		return;
	}
	value = n ? digits & ((1u << DIGIT_BITS) - 1) : 0;
	value |= n > 1 ? (digits >> 32 & ((1u << DIGIT_BITS) - 1)) << DIGIT_BITS : 0;
	if (boolean)
		fputs(value ? "True" : "False", out);
	else
		fprintf(out, "%s%lu", negative && value ? "-" : "", value);
}

/* In as few digits as give the same number. */
static void write_real(double value, FILE *out)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	fputs(text, out);
	if (!strpbrk(text, ".en"))
		fputs(".0", out);
}

static void write_quoted(const char *text, const char *cut, FILE *out)
{
	putc('\'', out);
	for (; *text; text++) {
		if (*text == '\n' || *text == '\t')
			fputs(*text == '\n' ? "\\n" : "\\t", out);
		else if (*text == '\'' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			putc(*text, out);
	}
	fprintf(out, "'%s", cut);
}

static void write_str(const struct python_layout *l, const struct runtime_value *v, FILE *out)
{
	struct python_str_state state = python_str_state((u32)word_of(v, l->str_state.at));
	u32 at = state.ascii ? l->str_ascii.at : l->str_compact.at, have;
	u64 length = word_of(v, SIZE);
	char text[4 * VALUE_BYTES];

	if (!state.compact || (state.kind != 1 && state.kind != 2 && state.kind != 4) || (length && v->size <= at)) {
		fputs("<str>", out);
		return;
	}
	have = length ? (v->size - at) / state.kind : 0;
	python_str_encode(v->bytes + at, length < have ? (u32)length : have, state.kind, text, sizeof(text));
	write_quoted(text, length > have ? "..." : "", out);
}

static void write_bytes(const struct python_layout *l, const struct runtime_value *v, FILE *out)
{
	u32 at = l->bytes_data.at, have = v->size > at ? v->size - at : 0;
	u64 length = word_of(v, SIZE);

	fputs("b'", out);
	for (u32 i = 0; i < have && i < length; i++)
		if (v->bytes[at + i] < ' ' || v->bytes[at + i] >= 0x7f)
			fprintf(out, "\\x%02x", v->bytes[at + i]);
		else
			fprintf(out, "%s%c", strchr("'\\", v->bytes[at + i]) ? "\\" : "", v->bytes[at + i]);
	fprintf(out, "'%s", length > have ? "..." : "");
}

/* The last part of a class's name, "module.Class" of one that C defines. */
static bool class_name(const struct python_reader *r, u64 type, char *ret, size_t size)
{
	char name[128] = "", *dot;

	memory_string(r->mem, name, sizeof(name), python_word(r, type + TYPE_NAME));
	dot = strrchr(name, '.');
	snprintf(ret, size, "%s", dot ? dot + 1 : name);
	return *ret;
}

static void write_type(const struct python_reader *r, u64 type, const char *before, FILE *out)
{
	char name[128];

	if (!type || !class_name(r, type, name, sizeof(name)))
		fputs("?", out);
	else if (!strcmp(name, "NoneType") && !*before)
		fputs("None", out);
	else
		fprintf(out, "<%s%s>", before, name);
}

void python_value(const struct python_reader *r, const struct python_image *image, u64 bias,
        const struct runtime_value *v, FILE *out)
{
	u64 type = v->type - bias, bits = word_of(v, HEAD);
	double real;

	if (type == image->types.type)
		write_type(r, v->word & ~7ull, "class ", out);
	else if (!v->size)
		write_type(r, v->type, "", out);
	else if (type == image->types.integer || type == image->types.boolean)
		write_integer(r, v, type == image->types.boolean, out);
	else if (type == image->types.real)
		memcpy(&real, &bits, sizeof(real)), write_real(real, out);
	else if (type == image->types.str)
		write_str(r->l, v, out);
	else if (type == image->types.bytes)
		write_bytes(r->l, v, out);
	else
		fprintf(out, "<%s of %lu>",
		        type == image->types.list    ? "list"
		        : type == image->types.tuple ? "tuple"
		                                     : "dict",
		        word_of(v, SIZE));
}
