/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot_values.h"

#include <arch.h>
#include <stdlib.h>
#include <string.h>

#include "argument_text.h"
#include "cleanup.h"
#include "hotspot_instance.h"
#include "runtimes/hotspot/heap/hotspot_heap_view.h"
#include "runtimes/hotspot/names/hotspot_text.h"

/*
 * Names of a method's parameters, of classes compiled with -g or -parameters.
 *
 * Behind its bytecode a ConstMethod has tables, read from its end (constMethod.hpp, constMethod.cpp; JDK 8 to 25 have
 * the same order and bits): a pointer for each kind of annotations, the index of the generic signature, then each with
 * its length behind it: parameters, checked exceptions, handlers of exceptions, local variables.
 */

#define HOTSPOT_PARAMETERS 16 /* local variables whose names are looked for */

struct hotspot_parameters {
	u64 pool;
	u16 name[HOTSPOT_PARAMETERS];     /* by number of the local variable: an index into the pool; 0: none */
	u16 in_order[HOTSPOT_PARAMETERS]; /* by number of the parameter, without `this` */
};

#define TAIL_MAX 16384 /* bytes behind the bytecode, of which the last are read */

/* ConstMethod::_flags (ConstMethodFlags since 21). */
enum {
	CHECKED_EXCEPTIONS = 2,
	LOCAL_VARIABLES = 4,
	EXCEPTIONS = 8,
	GENERIC_SIGNATURE = 16,
	PARAMETERS = 32,
	ANNOTATIONS_FIRST = 128, /* four kinds */
};
#define ANNOTATIONS 4

/* Words of 2 bytes. */
#define EXCEPTION      4
#define PARAMETER      2 /* name, flags */
#define LOCAL_VARIABLE 6 /* start, length, name, descriptor, signature, slot */

struct tail {
	u16 *words;
	u32 n; /* before what was taken */
};

static u16 take(struct tail *t)
{
	return t->n ? t->words[--t->n] : 0;
}

/* A table of elements, whose number is behind it. NULL: it is not there in full. */
static const u16 *take_table(struct tail *t, u32 size, u32 *n)
{
	*n = take(t);
	if (*n * size > t->n)
		t->n = *n = 0;
	t->n -= *n * size;
	return t->words + t->n;
}

static void read_parameters(struct tail *t, struct hotspot_parameters *ret)
{
	u32 n;
	const u16 *at = take_table(t, PARAMETER, &n);

	for (u32 i = 0; i < n && i < HOTSPOT_PARAMETERS; i++)
		ret->in_order[i] = at[PARAMETER * i];
}

static void read_variables(struct tail *t, struct hotspot_parameters *ret)
{
	u32 n;
	const u16 *at = take_table(t, LOCAL_VARIABLE, &n);

	for (u32 i = 0; i < n; i++, at += LOCAL_VARIABLE)
		if (!at[0] && at[5] < HOTSPOT_PARAMETERS)
			ret->name[at[5]] = at[2];
}

static void hotspot_parameters_read(
        const struct hotspot_layout *l, struct memory *mem, u64 constants, struct hotspot_parameters *ret)
{
	struct tail t = {0};
	cleanup(free) u16 *words = NULL;
	u64 from, to;
	u32 flags, size, n;
	u16 code;

	*ret = (struct hotspot_parameters){0};
	if (!memory_read(mem, &ret->pool, sizeof(ret->pool), constants + l->const_pool.at) ||
	        !memory_read(mem, &flags, sizeof(flags), constants + l->const_flags.at) ||
	        !memory_read(mem, &size, sizeof(size), constants + l->const_words.at) ||
	        !memory_read(mem, &code, sizeof(code), constants + l->const_code_size.at))
		return;
	if (l->const_flags.size == 2)
		flags &= 0xffff;
	from = constants + l->const_size.at + code;
	to = constants + 8ull * size;
	if (!(flags & (LOCAL_VARIABLES | PARAMETERS)) || to <= from)
		return;
	from = to - from > TAIL_MAX ? to - TAIL_MAX : (from + 1) & ~1ull;
	words = malloc(to - from);
	if (!words || !memory_read(mem, words, to - from, from))
		return;
	t = (struct tail){.words = words, .n = (u32)((to - from) / 2)};
	for (u32 i = 0; i < ANNOTATIONS; i++)
		t.n -= flags & ANNOTATIONS_FIRST << i && t.n >= 4 ? 4 : 0;
	if (flags & GENERIC_SIGNATURE)
		take(&t);
	if (flags & PARAMETERS)
		read_parameters(&t, ret);
	if (flags & CHECKED_EXCEPTIONS)
		take_table(&t, 1, &n);
	if (flags & EXCEPTIONS)
		take_table(&t, EXCEPTION, &n);
	if (flags & LOCAL_VARIABLES)
		read_variables(&t, ret);
}

/* Of an argument in a local variable. "" if it has none. */
static void hotspot_parameter_name(const struct hotspot_instance *instance, struct memory *mem,
        const struct hotspot_parameters *p, u32 local, u32 number, char *ret, size_t size)
{
	const struct hotspot_layout *l = instance->layout;
	u16 index = local < HOTSPOT_PARAMETERS ? p->name[local] : 0;
	u64 symbol;
	u32 length;

	*ret = '\0';
	if (!index && number < HOTSPOT_PARAMETERS)
		index = p->in_order[number];
	if (!index || !memory_read(mem, &length, sizeof(length), p->pool + l->pool_length.at) || index >= length ||
	        !memory_read(mem, &symbol, sizeof(symbol), p->pool + l->pool_size.at + 8ull * index) ||
	        !hotspot_symbol(instance->heap, mem, symbol, ret, size))
		*ret = '\0';
	ret[strcspn(ret, ",")] = '\0';
}

#define LOCALS 14 /* r14, in DWARF's numbers as all here */
#define MARK   8
#define STRING 'T'
#define OBJECT 'L'
#define BYTES  'R' /* a text in a byte[] */
#define TEXT   sizeof(((struct value_text *)0)->text)

/* Letters are those of descriptors, of boxes in lower case. */
static const struct declared {
	const char *name;
	u8 type, bytes;
	bool boxed;
} declared[] = {
        {"boolean", 'Z', 4, false},
        {"byte", 'B', 4, false},
        {"char", 'C', 4, false},
        {"short", 'S', 4, false},
        {"int", 'I', 4, false},
        {"long", 'J', 8, false},
        {"float", 'F', 4, false},
        {"double", 'D', 8, false},
        {"java.lang.Boolean", 'z', 1, true},
        {"java.lang.Byte", 'b', 1, true},
        {"java.lang.Character", 'c', 2, true},
        {"java.lang.Short", 's', 2, true},
        {"java.lang.Integer", 'i', 4, true},
        {"java.lang.Long", 'j', 8, true},
        {"java.lang.Float", 'f', 4, true},
        {"java.lang.Double", 'd', 8, true},
        {"java.lang.String", STRING, 0, false},
        {"", OBJECT, 0, false},
};

static const struct declared *declared_as(const char *name, size_t len)
{
	const struct declared *d = declared;

	while (*d->name && (strlen(d->name) != len || memcmp(d->name, name, len) != 0))
		d++;
	return d;
}

static u32 boxed_at(const struct hotspot_heap_view *h, u32 bytes)
{
	return (hotspot_length_at(h) + bytes - 1) / bytes * bytes;
}

static void find_string(struct hotspot_heap_view *h, struct memory *mem, u64 klass)
{
	if (h->string_value || h->string_sought)
		return;
	h->string_sought = true;
	klass = hotspot_super_named(h, mem, klass, "java/lang/Object");
	hotspot_find_string(h, mem, hotspot_loaded_with(h, mem, klass, "java/lang/String"));
}

/* Elements follow an array's length at once, but where classes take 8 bytes, which differs by version. */
static bool set_string(const struct hotspot_heap_view *h, struct value_shape *s)
{
	if (!h->string_value || !h->narrow_klass || h->oops == OOP_COLOURED)
		return false;
	s->behind_at = (u16)h->string_value;
	s->behind_bytes = h->oops == OOP_NARROW ? 4 : 8;
	s->behind_base = h->oops == OOP_NARROW ? h->oop_base : 0;
	s->behind_shift = h->oops == OOP_NARROW ? (u8)h->oop_shift : 0;
	s->behind_unit = !h->string_coded;
	s->narrow_at = h->string_coded ? (u16)h->string_coder : 0;
	s->length_at = (u16)hotspot_length_at(h);
	s->data_at = s->length_at + 4;
	s->sense = VALUE_UTF16;
	return true;
}

static u16 sense_of(const struct declared *d)
{
	switch (d->type | ('a' - 'A')) {
	case 'z':
	case 'c':
		return VALUE_UNSIGNED;
	case 'b':
	case 's':
	case 'i':
	case 'j':
		return VALUE_SIGNED;
	case 'f':
	case 'd':
		return VALUE_REAL;
	default:
		return VALUE_OTHER;
	}
}

static void set_shape(const struct hotspot_heap_view *h, const struct declared *d, struct value_shape *s)
{
	*s = (struct value_shape){.type = d->type};
	if (d->type == STRING && set_string(h, s))
		return;
	s->sense = sense_of(d);
	if (d->bytes && !d->boxed) {
		s->plain = d->bytes;
		return;
	}
	s->from = h->mark_klass_shift ? 0 : MARK;
	s->to = d->boxed ? (u16)(boxed_at(h, d->bytes) + d->bytes) : (u16)hotspot_length_at(h);
	s->value_at = d->boxed ? (u16)boxed_at(h, d->bytes) : 0;
}

/* Where the next argument is. locals, registers: how many the ones before have taken. */
static u8 place_of(const struct declared *d, bool compiled, u32 *locals, u32 *registers)
{
	static const u8 integers[] = {4, 1, 2, 8, 9, 5};
	bool wide = d->type == 'J' || d->type == 'D';
	u8 ret = (u8)(*locals + wide);

	*locals += 1 + wide;
	if (!compiled)
		return ret;
	if (d->type == 'F' || d->type == 'D' || *registers == sizeof(integers))
		return 0;
	return 1 + integers[(*registers)++];
}

void hotspot_places(struct hotspot_instance *instance, struct memory *mem, u64 klass, u64 constants, bool is_static,
        const char *signature, struct runtime_callee *c)
{
	struct hotspot_heap_view *h = instance->heap;
	const char *at = signature + (*signature == '(');
	u32 n = 0, locals = 0, registers = 0;
	struct value_places *v = &c->values;
	struct hotspot_parameters parameters;
	char name[NAME_MAX_BYTES];

	if (!h || !hotspot_heap_ready(h, mem) || *signature != '(' || !strchr(signature, ')'))
		return;
	*v = (struct value_places){.base = c->executed ? VALUE_REGISTERS : VALUE_POINTER,
	        .pointer = LOCALS,
	        .step = -8,
	        .typing = VALUE_TYPE_DECLARED,
	        .mask = UINT64_MAX};
	if (!is_static) {
		set_shape(h, declared_as("", 0), &v->shape[0]);
		v->slot[n++] = place_of(declared_as("", 0), c->executed, &locals, &registers);
		runtime_add_argument(c, "this");
	}
	find_string(h, mem, klass);
	hotspot_parameters_read(instance->layout, mem, constants, &parameters);
	while (*at && *at != ')' && n < VALUES_MAX) {
		size_t len = strcspn(at, ",)");
		const struct declared *d = declared_as(at, len);

		set_shape(h, d, &v->shape[n]);
		hotspot_parameter_name(instance, mem, &parameters, locals, n - !is_static, name, sizeof(name));
		runtime_add_argument(c, name);
		v->slot[n++] = place_of(d, c->executed, &locals, &registers);
		at += len;
		at += strspn(at, ", ");
	}
	v->n = n;
	c->takes_more = *at != ')';
}

/* The entry of a ConstMethod's pool that its word at `field` says. */
static bool pool_symbol(
        const struct hotspot_instance *instance, struct memory *mem, u64 constants, u32 field, char *ret, size_t size)
{
	const struct hotspot_layout *l = instance->layout;
	u64 pool, symbol;
	u32 length;
	u16 index;

	return memory_read(mem, &pool, sizeof(pool), constants + l->const_pool.at) &&
	       memory_read(mem, &index, sizeof(index), constants + field) &&
	       memory_read(mem, &length, sizeof(length), pool + l->pool_length.at) && index && index < length &&
	       memory_read(mem, &symbol, sizeof(symbol), pool + l->pool_size.at + 8ull * index) &&
	       hotspot_symbol(instance->heap, mem, symbol, ret, size);
}

/* "Ljava/lang/String;", "I", "[J" */
static const struct declared *declared_by(char *descriptor)
{
	const struct declared *d = declared;

	if (*descriptor == 'L') {
		for (char *at = descriptor; *at; at++)
			*at = *at == '/' ? '.' : *at;
		return declared_as(descriptor + 1, strcspn(descriptor + 1, ";"));
	}
	while (*d->name && (d->type != (u8)*descriptor || d->boxed))
		d++;
	return d;
}

void hotspot_result(
        struct hotspot_instance *instance, struct memory *mem, u64 klass, u64 constants, struct runtime_callee *c)
{
	struct hotspot_heap_view *h = instance->heap;
	char text[NAME_MAX_BYTES], *type;
	const struct declared *d;

	if (!h || !hotspot_heap_ready(h, mem))
		return;
	c->result = (struct value_places){.base = VALUE_REGISTERS, .typing = VALUE_TYPE_DECLARED, .mask = UINT64_MAX};
	if (!c->executed ||
	        !pool_symbol(instance, mem, constants, instance->layout->const_signature.at, text, sizeof(text)))
		return;
	type = strrchr(text, ')');
	if (!type || type[1] == 'V' || !type[1])
		return;
	find_string(h, mem, klass);
	d = declared_by(type + 1);
	set_shape(h, d, &c->result.shape[0]);
	c->result.slot[0] = d->type == 'F' || d->type == 'D' ? 0 : 1 + REG_RESULT;
	c->result.n = 1;
}

/* --- along fields --- */

#define FIELD_MAX  64
#define SUPERS_MAX 16

struct field { /* that is looked for, and what was found */
	struct hotspot_heap_view *h;
	struct memory *mem;
	char name[FIELD_MAX], type[NAME_MAX_BYTES]; /* type: its descriptor */
	u32 offset;
	bool found;
};

static bool is_other_field(void *ctx, const struct hotspot_declared *d)
{
	struct field *f = ctx;
	char name[NAME_MAX_BYTES];

	if (d->is_static || !hotspot_symbol(f->h, f->mem, d->name, name, sizeof(name)) || strcmp(name, f->name) != 0 ||
	        !hotspot_symbol(f->h, f->mem, d->signature, f->type, sizeof(f->type)))
		return true;
	f->offset = d->offset;
	f->found = d->offset <= UINT16_MAX;
	return false;
}

/* Of a class or one above it. */
static bool find_field(struct field *f, u64 klass)
{
	f->found = false;
	for (u32 i = 0; i < SUPERS_MAX && klass && !(klass & 7) && !f->found; i++) {
		hotspot_each_field(f->h, f->mem, klass, is_other_field, f);
		if (!memory_read(f->mem, &klass, 8, klass + f->h->at.super))
			break;
	}
	return f->found;
}

static bool find_named(struct field *f, u64 klass, const char *name)
{
	snprintf(f->name, sizeof(f->name), "%s", name);
	return find_field(f, klass);
}

/* A class that another one means by a name of n letters, as the loader of that has it, or the one of java.lang. */
static u64 class_meant(struct hotspot_heap_view *h, struct memory *mem, u64 by, const char *name, size_t n)
{
	char text[NAME_MAX_BYTES];
	u64 klass;

	snprintf(text, sizeof(text), "%.*s", (int)n, name);
	for (char *at = text; *at; at++)
		if (*at == '.')
			*at = '/';
	klass = hotspot_loaded_with(h, mem, by, text);
	return klass ? klass : hotspot_loaded_with(h, mem, hotspot_super_named(h, mem, by, "java/lang/Object"), text);
}

/* The declared class of argument i; 0: it is no object, or of a class that is not loaded. */
static u64 class_of_argument(
        struct hotspot_heap_view *h, struct memory *mem, u64 klass, bool is_static, const char *signature, u32 i)
{
	const char *at = signature + (*signature == '(');

	if (!is_static && !i--)
		return klass;
	for (; i && *at && *at != ')'; i--) {
		at += strcspn(at, ",)");
		at += strspn(at, ", ");
	}
	return class_meant(h, mem, klass, at, strcspn(at, ",)"));
}

/* A byte[] in an object of this class that says from where to where it is used: Tomcat's ByteChunk. */
static bool ends_in_bytes(struct field *f, u64 klass, struct value_path *path, struct value_shape *s)
{
	if (!find_named(f, klass, "start") || strcmp(f->type, "I") != 0)
		return false;
	path->from = (u16)f->offset;
	if (!find_named(f, klass, "end") || strcmp(f->type, "I") != 0 || !f->h->narrow_klass)
		return false;
	path->to = (u16)f->offset;
	path->bytes = (u16)(hotspot_length_at(f->h) + 4); /* as set_string() */
	*s = (struct value_shape){.type = BYTES, .sense = VALUE_TEXT};
	return true;
}

/* "<CLASS>": what is declared otherwise is of that class. *fields: moved behind it. */
static u64 class_said(struct field *f, u64 by, u64 klass, const char **fields)
{
	size_t len = strcspn(*fields, ">");

	if (**fields != '<' || (*fields)[len] != '>')
		return klass;
	klass = class_meant(f->h, f->mem, by, *fields + 1, len - 1);
	*fields += len + 1;
	return klass;
}

/* klass: of the argument, as a method of class `by` declares it. */
static bool follow_fields(
        struct field *f, u64 by, u64 klass, const char *fields, struct value_path *path, struct value_shape *s)
{
	klass = class_said(f, by, klass, &fields);
	while (klass && path->n < VALUE_HOPS && *fields++ == '.') {
		size_t len = strcspn(fields, ".[,<|");

		if (!len || len >= sizeof(f->name))
			return false;
		snprintf(f->name, sizeof(f->name), "%.*s", (int)len, fields);
		if (!find_field(f, klass))
			return false;
		path->at[path->n++] = (u16)f->offset;
		fields += len;
		if (*fields != '.' && *fields != '<') {
			if (!strcmp(f->type, "[B"))
				return ends_in_bytes(f, klass, path, s);
			find_string(f->h, f->mem, klass);
			*s = (struct value_shape){.type = STRING};
			return !strcmp(f->type, "Ljava/lang/String;") && set_string(f->h, s);
		}
		by = klass;
		klass = *f->type == 'L' ? class_meant(f->h, f->mem, by, f->type + 1, strcspn(f->type + 1, ";")) : 0;
		klass = class_said(f, by, klass, &fields);
	}
	return false;
}

bool hotspot_fields(struct hotspot_instance *instance, struct memory *mem, u64 klass, bool is_static,
        const char *signature, u32 i, const char *fields, struct value_places *v, u32 slot)
{
	struct hotspot_heap_view *h = instance->heap;
	struct field f = {.h = h, .mem = mem};
	u64 by = klass;

	if (!h || !hotspot_heap_ready(h, mem) || h->oops == OOP_COLOURED)
		return false;
	v->reference_bytes = h->oops == OOP_NARROW ? 4 : 8;
	v->reference_base = h->oops == OOP_NARROW ? h->oop_base : 0;
	v->reference_shift = h->oops == OOP_NARROW ? h->oop_shift : 0;
	v->path[slot] = (struct value_path){0};
	klass = class_of_argument(h, mem, klass, is_static, signature, i);
	return follow_fields(&f, by, klass, fields, &v->path[slot], &v->shape[slot]);
}

static void write_class(struct hotspot_heap_view *h, struct memory *mem, const struct runtime_value *v, FILE *out)
{
	char symbol[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
	u64 klass, at;

	if (v->size < hotspot_length_at(h)) {
		putc('?', out);
		return;
	}
	klass = hotspot_header_class(h, v->bytes);
	if (!hotspot_class_of(h, mem, klass) || !memory_read(mem, &at, sizeof(at), klass + h->l->klass_name.at) ||
	        !hotspot_symbol(h, mem, at, symbol, sizeof(symbol))) {
		putc('?', out);
		return;
	}
	hotspot_text_class((const u8 *)symbol, strlen(symbol), name, sizeof(name));
	fprintf(out, "<%s>", strrchr(name, '.') ? strrchr(name, '.') + 1 : name);
}

/* raw: a byte for each letter. */
static void write_string(const struct hotspot_heap_view *h, const struct runtime_value *v, bool raw, FILE *out)
{
	char text[TEXT * 3 + 5];
	struct value_text t;
	bool wide;
	u32 bytes;

	if (v->size < sizeof(t) - TEXT || v->size > sizeof(t)) {
		fputs("<String>", out);
		return;
	}
	memcpy(&t, v->bytes, v->size);
	bytes = v->size - (u32)(sizeof(t) - TEXT);
	wide = !raw && (!h->string_coded || t.kind);
	hotspot_java_text(t.text, wide ? bytes / 2 : bytes, wide, text, sizeof(text));
	argument_quoted(text, strlen(text), t.length > bytes, out);
}

static void write_float(u32 word, FILE *out)
{
	char text[32];
	float f;

	memcpy(&f, &word, sizeof(f));
	snprintf(text, sizeof(text), "%.7g", (double)f);
	fprintf(out, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void write_number(u8 type, u64 word, FILE *out)
{
	switch (type) {
	case 'Z':
		fputs(word & 0xff ? "true" : "false", out);
		break;
	case 'B':
		fprintf(out, "%d", (s8)word);
		break;
	case 'S':
		fprintf(out, "%d", (s16)word);
		break;
	case 'C':
		fprintf(out, (u16)word < ' ' || (u16)word > '~' ? "'\\u%04x'" : "'%c'", (u16)word);
		break;
	case 'I':
		fprintf(out, "%d", (s32)word);
		break;
	case 'J':
		fprintf(out, "%ld", (long)word);
		break;
	case 'F':
		write_float((u32)word, out);
		break;
	default:
		argument_number(word, ".0", out);
	}
}

void hotspot_value(void *data, const struct runtime_process *p, const struct runtime_value *v, FILE *out)
{
	struct hotspot_instance *instance = data;
	struct hotspot_heap_view *h = instance->heap;
	const struct declared *d = declared;
	u64 word = v->word;

	if (h && v->type == BYTES) {
		write_string(h, v, true, out);
		return;
	}
	while (d->type != OBJECT && d->type != v->type)
		d++;
	if (!h || d->type != v->type) {
		putc('?', out);
	} else if (d->bytes && !d->boxed) {
		write_number(d->type, word, out);
	} else if (!word) {
		fputs("null", out);
	} else if (d->type == STRING) {
		write_string(h, v, false, out);
	} else if (!d->boxed || v->size < boxed_at(h, d->bytes) + d->bytes) {
		write_class(h, p->memory, v, out);
	} else {
		word = 0;
		memcpy(&word, v->bytes + boxed_at(h, d->bytes), d->bytes);
		write_number(d->type - 'a' + 'A', word, out);
	}
}
