/* SPDX-License-Identifier: Apache-2.0 */
#include "input_pprof.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <types.h>
#include <xxhash.h>

#include "pprof_fields.h"
#include "recording.h"
#include "sample_labels.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/runtime.h"
#include "unwind/table.h"

/*
 * Reads protocol buffer messages: a message is a span of bytes, from which fields are taken one by one. Nothing is
 * copied; the bytes are untrusted. Wire types: protobuf.dev/programming-guides/encoding.
 */

/* Bytes of a message, or of a text. */
struct pb_span {
	const u8 *at, *end;
};

struct pb_field {
	u32 number;
	u64 value;           /* of a number */
	struct pb_span span; /* of bytes; at is NULL: it is a number */
};

struct pb_reader {
	bool broken; /* what was read so far is not well-formed; stays set */
};

/* The next number of packed ones. */
static u64 pb_take(struct pb_reader *r, struct pb_span *from)
{
	u64 value = 0;

	for (u32 shift = 0; shift < 64 && from->at < from->end; shift += 7) {
		u8 byte = *from->at++;

		value |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	r->broken = true;
	return 0;
}

static void skip(struct pb_reader *r, struct pb_span *from, size_t n)
{
	if (n > (size_t)(from->end - from->at)) {
		r->broken = true;
		n = 0;
	}
	from->at += n;
}

/* Reads the next field. False at the end of the message, or if it is malformed (r->broken). */
static bool pb_next(struct pb_reader *r, struct pb_span *from, struct pb_field *ret)
{
	u64 key, size;

	if (r->broken || from->at == from->end)
		return false;
	key = pb_take(r, from);
	*ret = (struct pb_field){.number = (u32)(key >> 3)};
	switch (key & 7) {
	case 0:
		ret->value = pb_take(r, from);
		break;
	case 1:
	case 5:
		skip(r, from, (key & 7) == 1 ? 8 : 4);
		break;
	case 2:
		size = pb_take(r, from);
		ret->span.at = from->at;
		skip(r, from, size);
		ret->span.end = from->at;
		break;
	default:
		r->broken = true;
	}
	return !r->broken;
}

#define STACK_MOST (1u << 16) /* frames of a sample */
#define NAME_MOST  (4u << 10)

struct reader {
	const char *name;
	struct filter *filter;
	struct pb_span *strings;
	u32 nstrings;
	struct table functions, locations, mappings; /* by id: where the message is, in spans */
	struct pb_span *spans;
	u32 nspans;
	struct pb_span *types;
	u32 ntypes;
	u32 chosen; /* of the types */
	u32 *stack; /* functions of a sample, the leaf first */
	u32 nstack;
	u64 total, default_type, period, period_type_type, period_type_unit;
	struct pb_reader wire;
};

static void cleanup_reader(struct reader *r)
{
	free(r->strings);
	free(r->spans);
	free(r->types);
	free(r->stack);
	table_free(&r->functions);
	table_free(&r->locations);
	table_free(&r->mappings);
}

static struct error *corrupt(const struct reader *r, const char *what)
{
	return error_hint(error_new(ERROR_INPUT, "%s is not a pprof profile: %s", r->name, what),
	        "`go tool pprof -raw` shows what other readers find in it");
}

/* Calls each for the numbers of a repeated field, packed or not. */
static struct error *each_number(struct reader *r, const struct pb_field *f,
        struct error *(*each)(struct reader *r, u64 value, void *ctx), void *ctx)
{
	struct pb_span packed = f->span;
	struct error *err = NULL;

	if (!packed.at)
		return each(r, f->value, ctx);
	while (!err && !r->wire.broken && packed.at < packed.end)
		err = each(r, pb_take(&r->wire, &packed), ctx);
	return err;
}

static void text_of(const struct reader *r, u64 string, char ret[NAME_MOST + 1])
{
	struct pb_span s = string < r->nstrings ? r->strings[string] : (struct pb_span){0};
	size_t n = (size_t)(s.end - s.at);

	n = n > NAME_MOST ? NAME_MOST : n;
	if (n)
		memcpy(ret, s.at, n);
	ret[n] = 0;
}

static bool is_text(const struct reader *r, u64 string, const char *word)
{
	char text[NAME_MOST + 1];

	text_of(r, string, text);
	return !strcmp(text, word);
}

static u64 key_of(u64 id)
{
	return XXH3_64bits(&id, sizeof(id)) | 1;
}

static u64 member(struct reader *r, struct pb_span message, u32 number)
{
	struct pb_field f;

	while (pb_next(&r->wire, &message, &f))
		if (f.number == number && !f.span.at)
			return f.value;
	return 0;
}

static struct error *keep(struct reader *r, struct table *t, struct pb_span message)
{
	struct error *err = grow(&r->spans, r->nspans, sizeof(*r->spans));

	if (err)
		return err;
	r->spans[r->nspans] = message;
	return table_put(t, key_of(member(r, message, FUNCTION_ID)), r->nspans++); /* the id is field 1 of all three */
}

static struct pb_span find(const struct reader *r, const struct table *t, u64 id)
{
	const u64 *at = table_get(t, key_of(id));

	return at ? r->spans[*at] : (struct pb_span){0};
}

static struct error *append(struct pb_span **array, u32 *n, struct pb_span value)
{
	struct error *err = grow(array, *n, sizeof(**array));

	if (!err)
		(*array)[(*n)++] = value;
	return err;
}

/* What samples refer to may stand behind them. */
static struct error *read_tables(struct reader *r, struct pb_span all)
{
	struct profile_meta *m = &r->filter->profile->meta;
	struct error *err = NULL;
	struct pb_field f;

	while (!err && pb_next(&r->wire, &all, &f)) {
		if (f.number == PROFILE_STRING)
			err = append(&r->strings, &r->nstrings, f.span);
		else if (f.number == PROFILE_FUNCTION)
			err = keep(r, &r->functions, f.span);
		else if (f.number == PROFILE_LOCATION)
			err = keep(r, &r->locations, f.span);
		else if (f.number == PROFILE_MAPPING)
			err = keep(r, &r->mappings, f.span);
		else if (f.number == PROFILE_SAMPLE_TYPE)
			err = append(&r->types, &r->ntypes, f.span);
		else if (f.number == PROFILE_TIME)
			m->start_unix_ns = f.value;
		else if (f.number == PROFILE_DURATION)
			m->duration_ns = f.value;
		else if (f.number == PROFILE_PERIOD)
			r->period = f.value;
		else if (f.number == PROFILE_DEFAULT_TYPE)
			r->default_type = f.value;
		else if (f.number == PROFILE_PERIOD_TYPE) {
			r->period_type_type = member(r, f.span, TYPE_TYPE);
			r->period_type_unit = member(r, f.span, TYPE_UNIT);
		}
	}
	return err || !r->wire.broken ? err : corrupt(r, "a message in it does not hold");
}

static struct error *set_unit(struct reader *r)
{
	struct profile *p = r->filter->profile;
	bool cpu = is_text(r, r->period_type_type, "cpu") && is_text(r, r->period_type_unit, "nanoseconds");
	char unit[NAME_MOST + 1], type[NAME_MOST + 1];
	u32 samples = UINT32_MAX;

	if (!r->ntypes)
		return corrupt(r, "it does not say what it counts");
	r->chosen = r->ntypes - 1;
	for (u32 i = 0; i < r->ntypes; i++) {
		u64 name = member(r, r->types[i], TYPE_TYPE);

		if (r->default_type && name == r->default_type)
			r->chosen = i;
		if (cpu && is_text(r, name, "samples"))
			samples = i;
	}
	if (samples != UINT32_MAX && r->period && r->period < INT64_MAX) {
		r->chosen = samples;
		p->meta.frequency = 1e9 / (double)r->period;
	}
	text_of(r, member(r, r->types[r->chosen], TYPE_TYPE), type);
	text_of(r, member(r, r->types[r->chosen], TYPE_UNIT), unit);
	return profile_string(p, !strcmp(unit, "count") ? type : unit, &p->meta.unit);
}

static bool is_runtime(const char *name)
{
	for (const struct runtime_ops *const *ops = runtimes; *ops; ops++)
		if (!strcmp((*ops)->name, name))
			return true;
	return false;
}

/* The file of a mapping; of one in brackets, which is no file, what it stands for. */
static void set_module(struct reader *r, u64 mapping, char module[NAME_MOST + 1], struct profile_function *f)
{
	struct pb_span m = mapping ? find(r, &r->mappings, mapping) : (struct pb_span){0};
	char path[NAME_MOST + 1];
	const char *base;

	module[0] = 0;
	if (!m.at)
		return;
	text_of(r, member(r, m, MAPPING_FILE), path);
	base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (!strncmp(path, "[kernel", 7)) {
		strcpy(module, "kernel");
		f->kind = KIND_KERNEL;
		return;
	}
	snprintf(module, NAME_MOST + 1, "%.*s", (int)strcspn(*base == '[' ? base + 1 : base, "]"),
	        *base == '[' ? base + 1 : base);
	if (*base == '[' && is_runtime(module))
		f->kind = KIND_SCRIPT;
}

static struct error *push(struct reader *r, const struct profile_function *f)
{
	struct error *err = r->nstack < STACK_MOST ? grow(&r->stack, r->nstack, sizeof(*r->stack)) : NULL;

	if (err)
		return err;
	if (r->nstack == STACK_MOST)
		return corrupt(r, "a stack of more than 65536 frames");
	return filter_function(r->filter, 0, f, &r->stack[r->nstack++]);
}

/* A location's lines: what was inlined comes first, what it was put into last. */
static struct error *add_line(struct reader *r, struct pb_span line, struct profile_function *f, bool inlined)
{
	struct pb_span fn = find(r, &r->functions, member(r, line, LINE_FUNCTION));
	char name[NAME_MOST + 1] = "", file[NAME_MOST + 1] = "";
	u64 number = member(r, line, LINE_LINE), definition = 0;

	if (fn.at) {
		text_of(r, member(r, fn, FUNCTION_NAME), name);
		text_of(r, member(r, fn, FUNCTION_FILE), file);
		definition = member(r, fn, FUNCTION_START_LINE);
		number = definition; /* without it, the line would make many of one function */
	}
	f->name = *name ? name : "[unknown]";
	f->file = file;
	f->line = number < UINT32_MAX ? (u32)number : 0;
	f->definition = definition < UINT32_MAX ? (u32)definition : 0;
	f->flags = inlined ? FRAME_INLINED : 0;
	return push(r, f);
}

static struct error *add_location(struct reader *r, u64 id, void *ctx)
{
	struct pb_span location = find(r, &r->locations, id), at = location, last = {0};
	char module[NAME_MOST + 1];
	struct profile_function f = {.file = "", .module = module, .kind = KIND_NATIVE};
	struct error *err = NULL;
	struct pb_field field;

	if (!location.at)
		return corrupt(r, "a sample refers to a location that is not there");
	set_module(r, member(r, location, LOCATION_MAPPING), module, &f);
	while (!err && pb_next(&r->wire, &at, &field)) {
		if (field.number != LOCATION_LINE || !field.span.at)
			continue;
		if (last.at)
			err = add_line(r, last, &f, true);
		last = field.span;
	}
	if (err || last.at)
		return err ? err : add_line(r, last, &f, false);
	f.name = "[unknown]";
	f.kind = f.kind == KIND_KERNEL ? KIND_KERNEL : KIND_UNKNOWN;
	return push(r, &f);
}

struct values {
	u32 n;
	u64 value;
};

static struct error *add_value(struct reader *r, u64 value, void *ctx)
{
	struct values *v = ctx;

	if (v->n++ == r->chosen)
		v->value = value;
	return NULL;
}

/* Who ran it, as yrt's own profiles record it. */
struct owner {
	char process[NAME_MOST + 1], thread[NAME_MOST + 1];
	struct container container;
	u64 pid, tid;
};

static void read_label(struct reader *r, struct pb_span label, struct owner *o)
{
	u64 key = member(r, label, LABEL_KEY), text = member(r, label, LABEL_STRING),
	    number = member(r, label, LABEL_NUMBER);
	char name[NAME_MOST + 1];

	if (is_text(r, key, "process"))
		text_of(r, text, o->process);
	else if (is_text(r, key, "thread"))
		text_of(r, text, o->thread);
	else if (is_text(r, key, "pid"))
		o->pid = number;
	else if (is_text(r, key, "thread_id"))
		o->tid = number;
	for (u32 i = 0; i < CONTAINER_TERMS; i++)
		if (is_text(r, key, pprof_containers[i])) {
			text_of(r, text, name);
			container_set(&o->container, i, name, strlen(name));
		}
}

/* The program that a command line names. */
static void program_of(const char *command, char ret[NAME_MOST + 1])
{
	size_t n = strcspn(command, " "), from = n;

	while (from && command[from - 1] != '/')
		from--;
	n -= n > from && command[n - 1] == ':'; /* "nginx: worker process" */
	snprintf(ret, NAME_MOST + 1, "%.*s", (int)(n - from), command + from);
}

static struct error *put_process(struct reader *r, const struct owner *o, u32 *depth)
{
	char container[CONTAINER_TEXT], program[NAME_MOST + 1];
	struct profile_function f = {.name = o->process, .module = program, .file = container, .kind = KIND_PROCESS};
	struct error *err;
	u32 function;

	if (!*o->process)
		return NULL;
	container_text(&o->container, container);
	program_of(o->process, program);
	f.line = o->pid < UINT32_MAX ? (u32)o->pid : 0;
	err = filter_container(r->filter, container, depth);
	if (!err)
		err = filter_function(r->filter, 0, &f, &function);
	return err ? err : filter_node(r->filter, ++*depth, function, 0);
}

static struct error *put_thread(struct reader *r, const struct owner *o, u32 *depth)
{
	char name[NAME_MOST + 64];
	struct profile_function f = {.name = name, .module = "", .file = "", .kind = KIND_THREAD};
	struct error *err;
	u32 function;

	if (!*o->thread)
		return NULL;
	snprintf(name, sizeof(name), o->tid ? "%s (tid %" PRIu64 ")" : "%s", o->thread, o->tid);
	err = filter_function(r->filter, 0, &f, &function);
	return err ? err : filter_node(r->filter, ++*depth, function, 0);
}

static struct error *put_stack(struct reader *r, const struct owner *o, u64 count)
{
	u32 depth = 0;
	struct error *err = put_process(r, o, &depth);

	if (!err)
		err = put_thread(r, o, &depth);
	for (u32 i = r->nstack; !err && i-- > 0;)
		err = filter_node(r->filter, ++depth, r->stack[i], i ? 0 : count);
	if (!err && !r->nstack && !depth)
		profile_add(r->filter->profile, 0, count);
	return err;
}

static struct error *read_sample(struct reader *r, struct pb_span sample)
{
	struct owner owner = {.pid = 0};
	struct values values = {.n = 0};
	struct error *err = NULL;
	struct pb_field f;

	r->nstack = 0;
	while (!err && pb_next(&r->wire, &sample, &f)) {
		if (f.number == SAMPLE_LOCATION)
			err = each_number(r, &f, add_location, NULL);
		else if (f.number == SAMPLE_VALUE)
			err = each_number(r, &f, add_value, &values);
		else if (f.number == SAMPLE_LABEL && f.span.at)
			read_label(r, f.span, &owner);
	}
	if (err)
		return err;
	if ((int64_t)values.value < 0)
		return error_hint(error_new(ERROR_INPUT, "%s is a difference of two profiles", r->name),
		        "`yrt diff BEFORE AFTER` compares two profiles");
	if (r->wire.broken || values.value > RECORDING_COUNT - r->total)
		return corrupt(r, "a sample in it does not hold");
	r->total += values.value;
	return put_stack(r, &owner, values.value);
}

/* What yrt wrote there. */
static struct error *read_comment(struct reader *r, u64 string, void *ctx)
{
	struct profile_meta *m = &r->filter->profile->meta;
	const struct {
		const char *what, **to;
	} known[] = {{"command: ", &m->command}, {"target: ", &m->target}, {"loss: ", &m->loss}};
	char text[NAME_MOST + 1];
	struct error *err = NULL;

	text_of(r, string, text);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known) && !err; i++)
		if (!strncmp(text, known[i].what, strlen(known[i].what)))
			err = profile_string(r->filter->profile, text + strlen(known[i].what), known[i].to);
	return err;
}

static struct error *read_profile(struct reader *r, struct pb_span all)
{
	struct error *err = read_tables(r, all);
	struct pb_field f;

	if (!err)
		err = set_unit(r);
	while (!err && pb_next(&r->wire, &all, &f)) {
		if (f.number == PROFILE_SAMPLE && f.span.at)
			err = read_sample(r, f.span);
		else if (f.number == PROFILE_COMMENT)
			err = each_number(r, &f, read_comment, NULL);
	}
	return err;
}

struct error *input_pprof_read(const u8 *bytes, size_t size, const char *name, struct filter *s)
{
	cleanup(reader) struct reader r = {.name = name, .filter = s};

	return read_profile(&r, (struct pb_span){bytes, bytes + size});
}
