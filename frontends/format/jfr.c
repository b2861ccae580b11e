/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of Java's flight recorder, for jfr, JDK Mission Control, and stores: one chunk that describes its own
 * types. CPU samples are jdk.ExecutionSample, one event each; of other profiles each stack is a yrt.Value, with what
 * was counted. What it was taken of, and what was lost, is in yrt.Profile.
 *
 * A chunk is a header of 68 bytes with places and times (big-endian), then events: size, type, fields, with numbers in
 * groups of 7 bits, the lowest first. Event 1 has the constants that others refer to, event 0 the tree of types
 * (jdk.jfr.internal.consumer: ChunkHeader, MetadataReader, ChunkParser). Fields of the JDK's types are in the order in
 * which readers that do not look at the tree expect them (one.jfr of async-profiler).
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "protobuf.h"
#include "samples.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "unwind/runtime.h"

#define HEADER      68
#define SIZE_BYTES  5          /* of a size that is not known when it is written */
#define EACH_MOST   (1u << 20) /* if there are more samples, a stack is one event */
#define STRINGS_MAX 160        /* of the tree of types */
#define STRING_MAX  40

enum { EVENT_METADATA, EVENT_CONSTANTS };

enum encoding { TEXT_NULL = 0, TEXT_UTF8 = 3 };

enum type_id {
	T_BOOLEAN = 4,
	T_INT = 7,
	T_LONG = 11,
	T_STRING = 20,
	T_CLASS,
	T_THREAD,
	T_LOADER,
	T_FRAME_TYPE,
	T_STATE,
	T_TRACE,
	T_FRAME,
	T_METHOD,
	T_PACKAGE,
	T_SYMBOL,
	T_SAMPLE = 100,
	T_VALUE,
	T_PROFILE,
	T_LABEL = 200,
	T_CATEGORY,
	T_TIMESTAMP,
	T_TIMESPAN,
	T_AMOUNT,
};

enum frame_type { TYPE_INTERPRETED = 1, TYPE_COMPILED, TYPE_INLINED, TYPE_NATIVE, TYPE_CXX, TYPE_KERNEL };

#define STATE_RUNNABLE 1

struct field {
	const char *name;
	enum type_id type;
	bool constant, array;
	enum type_id annotation; /* 0: none */
	const char *value;
};

struct type {
	enum type_id id;
	const char *name, *super, *label;
	bool simple;
	struct field fields[8];
};

#define EVENT      "jdk.jfr.Event"
#define ANNOTATION "java.lang.annotation.Annotation"
#define TIME                                                                                                           \
	{                                                                                                              \
		"startTime", T_LONG, false, false, T_TIMESTAMP, "TICKS"                                                \
	}

/* In place of UNIT and MORE the words of the profile's units. */
static const char UNIT[] = "value", MORE[] = "more";

static const struct type types[] = {
        {.id = T_BOOLEAN, .name = "boolean"},
        {.id = T_INT, .name = "int"},
        {.id = T_LONG, .name = "long"},
        {.id = T_STRING, .name = "java.lang.String"},
        {T_CLASS, "java.lang.Class",
                .fields = {{"classLoader", T_LOADER, true}, {"name", T_SYMBOL, true}, {"package", T_PACKAGE, true},
                        {"modifiers", T_INT}}},
        {T_THREAD, "java.lang.Thread",
                .fields = {{"osName", T_STRING}, {"osThreadId", T_LONG}, {"javaName", T_STRING},
                        {"javaThreadId", T_LONG}}},
        {T_LOADER, "jdk.types.ClassLoader", .fields = {{"type", T_CLASS, true}, {"name", T_SYMBOL, true}}},
        {T_FRAME_TYPE, "jdk.types.FrameType", .simple = true, .fields = {{"description", T_STRING}}},
        {T_STATE, "jdk.types.ThreadState", .simple = true, .fields = {{"name", T_STRING}}},
        {T_TRACE, "jdk.types.StackTrace", .fields = {{"truncated", T_BOOLEAN}, {"frames", T_FRAME, .array = true}}},
        {T_FRAME, "jdk.types.StackFrame",
                .fields = {{"method", T_METHOD, true}, {"lineNumber", T_INT}, {"bytecodeIndex", T_INT},
                        {"type", T_FRAME_TYPE, true}}},
        {T_METHOD, "jdk.types.Method",
                .fields = {{"type", T_CLASS, true}, {"name", T_SYMBOL, true}, {"descriptor", T_SYMBOL, true},
                        {"modifiers", T_INT}, {"hidden", T_BOOLEAN}}},
        {T_PACKAGE, "jdk.types.Package", .fields = {{"name", T_SYMBOL, true}}},
        {T_SYMBOL, "jdk.types.Symbol", .simple = true, .fields = {{"string", T_STRING}}},
        {T_SAMPLE, "jdk.ExecutionSample", EVENT, "Method Profiling Sample",
                .fields = {TIME, {"sampledThread", T_THREAD, true}, {"stackTrace", T_TRACE, true},
                        {"state", T_STATE, true}}},
        {T_VALUE, "yrt.Value", EVENT, "Stack",
                .fields = {TIME, {"eventThread", T_THREAD, true}, {"stackTrace", T_TRACE, true}, {UNIT, T_LONG},
                        {MORE, T_LONG}}},
        {T_PROFILE, "yrt.Profile", EVENT, "Profile",
                .fields = {TIME, {"title", T_STRING}, {"command", T_STRING}, {"target", T_STRING}, {"unit", T_STRING},
                        {"loss", T_STRING}}},
        {T_LABEL, "jdk.jfr.Label", ANNOTATION, .fields = {{"value", T_STRING}}},
        {T_CATEGORY, "jdk.jfr.Category", ANNOTATION, .fields = {{"value", T_STRING, .array = true}}},
        {T_TIMESTAMP, "jdk.jfr.Timestamp", ANNOTATION, .fields = {{"value", T_STRING}}},
        {T_TIMESPAN, "jdk.jfr.Timespan", ANNOTATION, .fields = {{"value", T_STRING}}},
        {T_AMOUNT, "jdk.jfr.DataAmount", ANNOTATION, .fields = {{"value", T_STRING}}},
};

struct jfr {
	const struct profile *p;
	struct order *order;
	struct samples s;
	struct pb chunk;
	char **symbols; /* sorted, each once; a symbol's number, and that of a class, is its index plus 1 */
	u32 nsymbols;
	u32 *class_of, *name_of; /* of each function: symbols */
	u32 *place;              /* of each node: where it is in order */
	bool more;               /* events have what else was counted */
};

static void cleanup_jfr(struct jfr *w)
{
	for (u32 i = 0; i < w->nsymbols; i++)
		free(w->symbols[i]);
	free(w->symbols);
	free(w->class_of);
	free(w->name_of);
	free(w->place);
	free(w->chunk.bytes);
	samples_free(&w->s);
	order_destroy(w->order);
}

static void put_byte(struct pb *m, u8 byte)
{
	pb_raw(m, &byte, 1);
}

/* Of a number with more than 56 bits the ninth byte has eight. */
static void put_long(struct pb *m, u64 v)
{
	if (v >> 56) {
		for (u32 i = 0; i < 8; i++, v >>= 7)
			put_byte(m, (u8)(v | 0x80));
		put_byte(m, (u8)v);
	} else {
		pb_packed(m, v);
	}
}

static void put_text(struct pb *m, const char *text)
{
	char clean[TEXT_CLEAN];
	size_t n = text ? text_clean(text, clean) : 0;

	put_byte(m, text ? TEXT_UTF8 : TEXT_NULL);
	if (!text)
		return;
	pb_packed(m, n);
	pb_raw(m, clean, n);
}

/* Room for a size; returns where it is. */
static size_t begin_event(struct pb *m, u32 type)
{
	static const u8 room[SIZE_BYTES];
	size_t at = m->size;

	pb_raw(m, room, sizeof(room));
	pb_packed(m, type);
	return at;
}

static void end_event(struct pb *m, size_t at)
{
	size_t size = m->size - at;

	for (u32 i = 0; i < SIZE_BYTES && !m->failed; i++, size >>= 7)
		m->bytes[at + i] = (u8)((size & 0x7f) | (i + 1 < SIZE_BYTES ? 0x80 : 0));
}

/* The tree of types. */

struct tree {
	char strings[STRINGS_MAX][STRING_MAX];
	u32 n;
	struct pb elements;
	bool full;
};

static void put_string(struct tree *t, const char *s)
{
	u32 i = 0;

	while (i < t->n && strcmp(t->strings[i], s))
		i++;
	if (i == t->n && (t->n == STRINGS_MAX || strlen(s) >= STRING_MAX)) {
		t->full = true;
		return;
	}
	if (i == t->n)
		snprintf(t->strings[t->n++], STRING_MAX, "%s", s);
	pb_packed(&t->elements, i);
}

static void put_attribute(struct tree *t, const char *name, const char *value)
{
	put_string(t, name);
	put_string(t, value);
}

static void put_type_attribute(struct tree *t, const char *name, enum type_id id)
{
	char number[12];

	snprintf(number, sizeof(number), "%d", (int)id);
	put_attribute(t, name, number);
}

static void begin_element(struct tree *t, const char *name, u32 attributes)
{
	put_string(t, name);
	pb_packed(&t->elements, attributes);
}

static void put_annotation(struct tree *t, enum type_id type, const char *member, const char *value)
{
	begin_element(t, "annotation", 2);
	put_type_attribute(t, "class", type);
	put_attribute(t, member, value);
	pb_packed(&t->elements, 0);
}

/* What a number of that unit is to readers. */
static struct field field_of_unit(const struct field *f, const char *unit)
{
	struct field ret = *f;

	if (!strcmp(unit, "nanoseconds"))
		ret.annotation = T_TIMESPAN, ret.value = "NANOSECONDS";
	else if (!strcmp(unit, "bytes"))
		ret.annotation = T_AMOUNT, ret.value = "BYTES";
	else
		ret.annotation = T_LABEL, ret.value = unit;
	return ret;
}

static void put_field(struct tree *t, const struct jfr *w, const struct field *f)
{
	struct field of = f->name == UNIT   ? field_of_unit(f, text_unit(&w->p->meta))
	                  : f->name == MORE ? field_of_unit(f, w->p->meta.more ? w->p->meta.more : "more")
	                                    : *f;

	begin_element(t, "field", 2 + of.constant + of.array);
	put_attribute(t, "name", of.name);
	put_type_attribute(t, "class", of.type);
	if (of.constant)
		put_attribute(t, "constantPool", "true");
	if (of.array)
		put_attribute(t, "dimension", "1");
	pb_packed(&t->elements, of.annotation ? 1 : 0);
	if (of.annotation)
		put_annotation(t, of.annotation, "value", of.value);
}

static void put_type(struct tree *t, const struct jfr *w, const struct type *type)
{
	bool event = type->super && !strcmp(type->super, EVENT);
	u32 n = 0;

	while (n < sizeof(type->fields) / sizeof(*type->fields) && type->fields[n].name)
		n++;
	n -= type->id == T_VALUE && !w->more;
	begin_element(t, "class", 2 + (type->super != NULL) + type->simple);
	put_type_attribute(t, "id", type->id);
	put_attribute(t, "name", type->name);
	if (type->super)
		put_attribute(t, "superType", type->super);
	if (type->simple)
		put_attribute(t, "simpleType", "true");
	pb_packed(&t->elements, n + 2 * event);
	if (event) {
		put_annotation(t, T_LABEL, "value", type->label);
		put_annotation(t, T_CATEGORY, "value-0", "yrt");
	}
	for (u32 i = 0; i < n; i++)
		put_field(t, w, &type->fields[i]);
}

static struct error *put_types(struct jfr *w)
{
	u32 n = sizeof(types) / sizeof(*types);
	struct tree *t = calloc(1, sizeof(*t));
	size_t at;

	if (!t)
		return &error_no_memory;
	begin_element(t, "root", 0);
	pb_packed(&t->elements, 2);
	begin_element(t, "metadata", 0);
	pb_packed(&t->elements, n);
	for (u32 i = 0; i < n; i++)
		put_type(t, w, &types[i]);
	begin_element(t, "region", 2);
	put_attribute(t, "locale", "en_US");
	put_attribute(t, "gmtOffset", "0");
	pb_packed(&t->elements, 0);
	at = begin_event(&w->chunk, EVENT_METADATA);
	pb_packed(&w->chunk, 0); /* when, for how long, which version */
	pb_packed(&w->chunk, 0);
	pb_packed(&w->chunk, 1);
	pb_packed(&w->chunk, t->n);
	for (u32 i = 0; i < t->n; i++)
		put_text(&w->chunk, t->strings[i]);
	pb_raw(&w->chunk, t->elements.bytes, t->elements.size);
	end_event(&w->chunk, at);
	w->chunk.failed |= t->elements.failed || t->full;
	free(t->elements.bytes);
	free(t);
	return NULL;
}

/* Constants. */

/* "com.x.Y" and "run" of a method of Java, whose names are such; of others the file or the language, and the name. */
static struct error *split_name(const struct profile_function *f, char **class, char **name)
{
	const char *whole = text_name(f), *dot = NULL, *module = strrchr(f->module, '/');
	size_t before = strcspn(whole, "( ");
	bool java = !strcmp(f->module, "hotspot");

	for (size_t i = 0; java && i < before; i++)
		dot = whole[i] == '.' ? whole + i : dot;
	*class = dot ? strndup(whole, dot - whole) : strdup(module ? module + 1 : f->module);
	*name = strdup(dot ? dot + 1 : whole);
	if (!*class || !*name) {
		free(TAKE(*class));
		free(TAKE(*name));
		return &error_no_memory;
	}
	for (char *s = *class; dot && *s; s++)
		*s = *s == '.' ? '/' : *s;
	return NULL;
}

static int compare_symbols(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static u32 symbol_of(const struct jfr *w, const char *s)
{
	return (u32)((char **)bsearch(&s, w->symbols, w->nsymbols, sizeof(s), compare_symbols) - w->symbols) + 1;
}

static void sort_symbols(struct jfr *w)
{
	u32 n = 0;

	qsort(w->symbols, w->nsymbols, sizeof(*w->symbols), compare_symbols);
	for (u32 i = 0; i < w->nsymbols; i++) {
		if (n && !strcmp(w->symbols[n - 1], w->symbols[i]))
			free(w->symbols[i]);
		else
			w->symbols[n++] = w->symbols[i];
	}
	w->nsymbols = n;
}

#define DESCRIPTOR "()V"

static struct error *find_symbols(struct jfr *w)
{
	u32 n = w->p->nfunctions;
	char *class, *name;
	struct error *err = NULL;

	w->symbols = calloc(2 * (size_t)n + 1, sizeof(*w->symbols));
	w->class_of = calloc(n, sizeof(*w->class_of));
	w->name_of = calloc(n, sizeof(*w->name_of));
	if (!w->symbols || !w->class_of || !w->name_of || !(w->symbols[0] = strdup(DESCRIPTOR)))
		return &error_no_memory;
	for (w->nsymbols = 1; w->nsymbols < 2 * n + 1; w->nsymbols += 2) {
		err = split_name(&w->p->functions[w->nsymbols / 2], &class, &name);
		if (err)
			return err;
		w->symbols[w->nsymbols] = class;
		w->symbols[w->nsymbols + 1] = name;
	}
	sort_symbols(w);
	for (u32 i = 0; i < n && !err; i++) {
		err = split_name(&w->p->functions[i], &class, &name);
		if (err)
			return err;
		w->class_of[i] = symbol_of(w, class);
		w->name_of[i] = symbol_of(w, name);
		free(class);
		free(name);
	}
	return err;
}

static void begin_pool(struct jfr *w, enum type_id type, u32 n)
{
	pb_packed(&w->chunk, type);
	pb_packed(&w->chunk, n);
}

static void put_words(struct jfr *w, enum type_id type, const char *const *words, u32 n)
{
	begin_pool(w, type, n);
	for (u32 i = 0; i < n; i++) {
		pb_packed(&w->chunk, i + 1);
		put_text(&w->chunk, words[i]);
	}
}

static void put_symbols(struct jfr *w)
{
	begin_pool(w, T_SYMBOL, w->nsymbols);
	for (u32 i = 0; i < w->nsymbols; i++) {
		pb_packed(&w->chunk, i + 1);
		put_text(&w->chunk, w->symbols[i]);
	}
	begin_pool(w, T_CLASS, w->nsymbols);
	for (u32 i = 0; i < w->nsymbols; i++) {
		pb_packed(&w->chunk, i + 1);
		pb_packed(&w->chunk, 0); /* no loader */
		pb_packed(&w->chunk, i + 1);
		pb_packed(&w->chunk, 0); /* no package */
		pb_packed(&w->chunk, 0);
	}
}

static void put_methods(struct jfr *w)
{
	u32 descriptor = symbol_of(w, DESCRIPTOR);

	begin_pool(w, T_METHOD, w->p->nfunctions);
	for (u32 i = 0; i < w->p->nfunctions; i++) {
		u32 f = w->order->functions[i];

		pb_packed(&w->chunk, i + 1);
		pb_packed(&w->chunk, w->class_of[f]);
		pb_packed(&w->chunk, w->name_of[f]);
		pb_packed(&w->chunk, descriptor);
		pb_packed(&w->chunk, 0);
		put_byte(&w->chunk, 0);
	}
}

static void put_threads(struct jfr *w)
{
	char name[SAMPLES_NAME];

	begin_pool(w, T_THREAD, w->s.nthreads);
	for (u32 i = 0; i < w->s.nthreads; i++) {
		const struct samples_thread *t = &w->s.threads[i];

		pb_packed(&w->chunk, i + 1);
		put_text(&w->chunk, samples_name(t, false, name));
		pb_packed(&w->chunk, t->tid);
		put_text(&w->chunk, NULL);
		pb_packed(&w->chunk, 0);
	}
}

static enum frame_type frame_type(const struct profile_function *f)
{
	if (f->flags & FRAME_INLINED)
		return TYPE_INLINED;
	switch (f->kind) {
	case KIND_SCRIPT:
		return TYPE_INTERPRETED;
	case KIND_SCRIPT_BASELINE:
	case KIND_SCRIPT_JIT:
		return TYPE_COMPILED;
	case KIND_CXX:
	case KIND_VM:
		return TYPE_CXX;
	case KIND_KERNEL:
		return TYPE_KERNEL;
	default:
		return TYPE_NATIVE;
	}
}

static u32 depth_of(const struct profile *p, u32 node)
{
	u32 n = 0;

	for (; samples_is_code(p, node); node = p->nodes[node].parent)
		n++;
	return n;
}

/* From the leaf on. */
static void put_trace(struct jfr *w, u32 node)
{
	const struct profile *p = w->p;

	pb_packed(&w->chunk, w->place[node] + 1);
	put_byte(&w->chunk, 0);
	pb_packed(&w->chunk, depth_of(p, node));
	for (; samples_is_code(p, node); node = p->nodes[node].parent) {
		u32 number = p->nodes[node].function;
		const struct profile_function *f = &p->functions[number];

		pb_packed(&w->chunk, w->order->rank[number] + 1);
		pb_packed(&w->chunk, f->line);
		pb_packed(&w->chunk, 0);
		pb_packed(&w->chunk, frame_type(f));
	}
}

/* Of each node in which samples end. */
static void put_traces(struct jfr *w)
{
	u32 n = 0;

	for (u32 i = 0; i < w->p->nnodes; i++)
		n += w->p->nodes[i].self > 0;
	if (!n)
		return; /* a pool has at least one */
	begin_pool(w, T_TRACE, n);
	for (u32 i = 0; i < w->p->nnodes && !w->chunk.failed; i++)
		if (w->p->nodes[w->order->nodes[i]].self)
			put_trace(w, w->order->nodes[i]);
}

static bool has_traces(const struct profile *p)
{
	return p->nodes[0].total > 0;
}

static void put_constants(struct jfr *w)
{
	static const char *const frames[] = {"Interpreted", "JIT compiled", "Inlined", "Native", "C++", "Kernel"};
	static const char *const states[] = {"STATE_RUNNABLE"};
	size_t at = begin_event(&w->chunk, EVENT_CONSTANTS);

	pb_packed(&w->chunk, 0); /* when, for how long, how far behind the ones before */
	pb_packed(&w->chunk, 0);
	pb_packed(&w->chunk, 0);
	put_byte(&w->chunk, 1);
	pb_packed(&w->chunk, 6 + has_traces(w->p));
	put_words(w, T_FRAME_TYPE, frames, sizeof(frames) / sizeof(*frames));
	put_words(w, T_STATE, states, 1);
	put_threads(w);
	put_traces(w);
	put_methods(w);
	put_symbols(w);
	end_event(&w->chunk, at);
}

/* Events. */

static void put_sample(struct jfr *w, const struct sample_of *s, bool each)
{
	for (u64 k = 0; k < (each ? s->count : 1) && !w->chunk.failed; k++) {
		size_t at = begin_event(&w->chunk, each ? T_SAMPLE : T_VALUE);

		put_long(&w->chunk, s->ns + text_scaled(k, w->s.step_ns));
		pb_packed(&w->chunk, s->thread + 1);
		pb_packed(&w->chunk, w->place[s->node] + 1);
		if (each)
			pb_packed(&w->chunk, STATE_RUNNABLE);
		else
			put_long(&w->chunk, s->count);
		if (!each && w->more)
			put_long(&w->chunk, w->p->nodes[s->node].more);
		end_event(&w->chunk, at);
	}
}

static void put_profile(struct jfr *w)
{
	const struct profile_meta *m = &w->p->meta;
	size_t at = begin_event(&w->chunk, T_PROFILE);

	pb_packed(&w->chunk, 0);
	put_text(&w->chunk, text_title(m, "yrt"));
	put_text(&w->chunk, m->command);
	put_text(&w->chunk, m->target);
	put_text(&w->chunk, text_unit(m));
	put_text(&w->chunk, m->loss);
	end_event(&w->chunk, at);
}

static void fill_header(struct jfr *w, u64 constants, u64 metadata)
{
	const struct profile_meta *m = &w->p->meta;
	u64 fields[7] = {w->chunk.size, constants, metadata, m->start_unix_ns, m->duration_ns, 0, 1000000000};
	u8 *to = w->chunk.bytes;

	memcpy(to, "FLR\0\0\2\0\0", 8); /* version 2.0 */
	for (u32 i = 0; i < 7; i++) {
		u64 big = htobe64(fields[i]);

		memcpy(to + 8 + i * 8, &big, 8);
	}
	memcpy(to + 64, "\0\0\0\1", 4); /* numbers are in groups of 7 bits */
}

static struct error *write_jfr(const struct profile *p, FILE *out)
{
	static const u8 header[HEADER];
	cleanup(jfr) struct jfr w = {.p = p};
	bool each = text_period_ns(&p->meta) && p->nodes[0].total <= EACH_MOST;
	struct error *err = order_create(p, &w.order);
	size_t constants, metadata;

	if (!err)
		err = samples_create(p, w.order, &w.s);
	if (!err)
		err = find_symbols(&w);
	w.place = calloc(p->nnodes, sizeof(*w.place));
	if (err || !w.place)
		return err ? err : &error_no_memory;
	for (u32 i = 0; i < p->nnodes; i++)
		w.place[w.order->nodes[i]] = i;
	w.more = p->meta.more && !w.s.timed && !each;
	samples_sort_by_time(&w.s);
	pb_raw(&w.chunk, header, sizeof(header));
	put_profile(&w);
	for (u32 i = 0; i < w.s.n; i++)
		put_sample(&w, &w.s.list[i], each);
	constants = w.chunk.size;
	put_constants(&w);
	metadata = w.chunk.size;
	err = put_types(&w);
	if (err || w.chunk.failed)
		return err ? err : &error_no_memory;
	fill_header(&w, constants, metadata);
	fwrite(w.chunk.bytes, 1, w.chunk.size, out);
	return text_finish(out, "flight recording");
}

const struct format format_jfr = {
        .name = "jfr",
        .extension = ".jfr",
        .description = "a flight recording, for jfr and JDK Mission Control",
        .threads = true,
        .processes = PROCESSES_EACH,
        .binary = true,
        .write = write_jfr,
};
