/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_arguments.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hit_callee_match.h"
#include "hit_native_key.h"
#include "probes/object.h"
#include "probes/targets.h"
#include "sample.skel.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"
#include "unwind/table.h"

#define TEXTS_MAX 65536      /* of a run */
#define RESULTS   64         /* threads whose last result is kept; a power of two */
#define RESULT_NS 1000000ull /* at most, from when it was taken to the end of its call */

struct function {
	u32 process;
	u64 entry;
	const char *view;       /* NULL: it is native, and its texts are read as they are */
	const u8 *regs;         /* of a native one (hit_native_key()) */
	char *name, *arguments; /* owned */
	bool takes_more;
	const char *const *wanted;
	const char *key; /* hit_options.key; NULL: all arguments are reported */
	bool result;     /* not its arguments, but what it returns */
};

struct result { /* the last of a thread */
	u32 tgid, tid, which;
	u64 at;
	char *text; /* owned; NULL: nothing that is known */
};

struct hit_arguments {
	const struct event_host *host;
	struct function functions[VALUES_FUNCTIONS];
	u32 n;
	struct table texts; /* by key: a string, owned */
	u32 ntexts;
	struct result results[RESULTS]; /* by number of the thread */
};

void hit_arguments_prepare(struct object *o, bool counted, bool slow)
{
	struct sample *skel = object_skeleton(o);

	bpf_map__set_max_entries(skel->maps.values_functions, VALUES_FUNCTIONS);
	if (slow)
		bpf_map__set_max_entries(skel->maps.values_calls, VALUES_CALLS);
	if (counted)
		bpf_map__set_max_entries(skel->maps.values_known, VALUES_KNOWN);
}

/*
 * The argument of this name or number ("0"), from 1; 0: the function has none, or it is not read. What follows a '[',
 * '.', '<' or ',' is not looked at.
 */
static u32 argument_of(const struct runtime_callee *callee, const char *wanted)
{
	const char *name = callee->arguments + strspn(callee->arguments, "*");

	if (*wanted >= '0' && *wanted <= '9') {
		u32 i = (u32)strtoul(wanted, NULL, 10);

		return i < callee->values.n ? i + 1 : 0;
	}
	for (u32 i = 0; i < callee->values.n && *name; i++) {
		size_t len = strcspn(name, ",");

		if (strcspn(wanted, "[.,<|") == len && !memcmp(name, wanted, len))
			return i + 1;
		name += len + (name[len] == ',');
		name += strspn(name, "*");
	}
	return 0;
}

struct error *hit_arguments_create(const struct event_host *host, struct hit_arguments **ret)
{
	struct hit_arguments *a = calloc(1, sizeof(*a));

	if (!a)
		return &error_no_memory;
	a->host = host;
	*ret = a;
	return NULL;
}

static void forget_texts(struct hit_arguments *a)
{
	for (size_t i = 0; i < a->texts.capacity; i++)
		if (a->texts.entries[i].key)
			free((void *)(uintptr_t)a->texts.entries[i].value);
	table_free(&a->texts);
	a->ntexts = 0;
}

void hit_arguments_destroy(struct hit_arguments *a)
{
	if (!a)
		return;
	for (u32 i = 0; i < a->n; i++) {
		free(a->functions[i].name);
		free(a->functions[i].arguments);
	}
	for (u32 i = 0; i < RESULTS; i++)
		free(a->results[i].text);
	forget_texts(a);
	free(a);
}

/* Keys have parts with commas between them. NULL: this one is the last. */
static const char *next_part(const char *part)
{
	const char *end = part + strcspn(part, ",|");

	return *end == ',' ? end + 1 : NULL;
}

/* What follows an argument: ".uriMB.byteC.buff", "<Impl>.uri", "[req][method]"; up to a comma. */
static const char *way_of(const char *part)
{
	return part + strcspn(part, ".[,<|");
}

/* Does its runtime know the way to what is read? */
static bool has_way(const struct value_places *v, const char *part)
{
	char way = *way_of(part);

	return v->base == VALUE_ABSOLUTE || (way && strchr(".[<", way));
}

/* Are arguments read as they are? */
static bool is_read(const struct runtime_callee *callee)
{
	return callee->values.base != VALUE_NOWHERE && callee->values.base != VALUE_ABSOLUTE;
}

/* Only these arguments of a call are read, in this order. False: it does not have all. */
static bool pick_one(const struct process *p, const char *view, const char *key, const struct runtime_callee *callee,
        struct value_places *v)
{
	const struct value_places all = *v;
	u32 along = 0;

	v->n = 0;
	for (const char *part = key; part && v->n < VALUES_MAX; part = next_part(part)) {
		bool way = has_way(&all, part);
		u32 i = argument_of(callee, part);

		if (!i)
			return false;
		v->slot[v->n] = all.slot[i - 1];
		v->path[v->n] = all.path[i - 1];
		if (all.typing == VALUE_TYPE_DECLARED)
			v->shape[v->n] = all.shape[i - 1];
		if (way && !callee_field(p, view, callee, i - 1, way_of(part), v, v->n))
			return false;
		along += way || v->path[v->n].n;
		v->n++;
	}
	v->later = along && v->base == VALUE_FRAME;
	v->ahead = along && !v->later;
	return !v->ahead || along == v->n;
}

/* The first of several such lists, with '|' between them, of which it has all. */
static bool pick(const struct process *p, const char *view, const char *key, const struct runtime_callee *callee,
        struct value_places *v)
{
	const struct value_places all = *v;

	while (!pick_one(p, view, key, callee, v)) {
		key = strchr(key, '|');
		if (!key++)
			return false;
		*v = all;
	}
	return true;
}

static struct error *no_key(const struct runtime_callee *callee, const char *key)
{
	if (callee->values.base == VALUE_NOWHERE)
		return error_hint(
		        error_new(ERROR_UNSUPPORTED, "--key %s: arguments of %s cannot be read", key, callee->name),
		        "without --key requests are told apart by function");
	return error_hint(error_new(ERROR_USAGE, "--key %s: %s has no such argument", key, callee->name),
	        "it has %s; ARGUMENT[KEY] is what a dict or a hash has, KEY of at most %d letters; "
	        "ARGUMENT.FIELD.FIELD what an object has, ARGUMENT<MODULE.CLASS>.FIELD one in a slot of its class",
	        *callee->arguments ? callee->arguments
	        : callee->values.n ? "some without names, from 0"
	                           : "none",
	        VALUE_KEY);
}

struct error *hit_arguments_check(
        const struct process *p, const struct hit_options *options, u32 spec, const struct runtime_callee *callee)
{
	const char *text = options->spec[spec].text, *wanted;
	struct value_places picked = callee->values;
	bool number;
	u32 i = 0;

	if (options->key[spec] && !options->none &&
	        !pick(p, options->spec[spec].language, options->key[spec], callee, &picked))
		return no_key(callee, options->key[spec]);
	while (i < options->nwanted[spec] && is_read(callee) && argument_of(callee, options->wanted[spec][i]))
		i++;
	if (i == options->nwanted[spec])
		return NULL;
	wanted = options->wanted[spec][i];
	number = *wanted >= '0' && *wanted <= '9';
	if (!is_read(callee))
		return error_new(ERROR_UNSUPPORTED, "-e %s: arguments of %s cannot be read", text, callee->name);
	return error_hint(error_new(ERROR_USAGE, "-e %s: %s has no %s%s%s that can be read", text, callee->name,
	                          number ? "_arg(" : "$", wanted, number ? ")" : ""),
	        *callee->arguments ? "it has %u, from _arg(0): %s" : "it has %u, from _arg(0)%s", callee->values.n,
	        callee->arguments);
}

/* For BPF, which has words of struct pt_regs, and numbers of all slots. */
static void number_slots(struct value_places *v)
{
	if (v->given)
		v->given = 1 + callee_register((u8)(v->given - 1));
	if (v->base == VALUE_POINTER)
		v->pointer = 1 + callee_register((u8)v->pointer);
	for (u32 i = 0; i < VALUES_MAX; i++)
		if (v->base == VALUE_REGISTERS)
			v->slot[i] = v->slot[i] ? 1 + callee_register(v->slot[i] - 1) : 0;
		else if (v->typing != VALUE_TYPE_DECLARED && v->typing != VALUE_TYPE_OF_OBJECT)
			v->slot[i] = (u8)i;
}

static struct error *tell(struct hit_arguments *a, const struct value_places *values, u32 *number)
{
	if (bpf_map_update_elem(
	            bpf_map__fd(object_skeleton(a->host->object)->maps.values_functions), &a->n, values, BPF_ANY))
		return error_errno(errno, "cannot tell BPF of a function's arguments");
	*number = ++a->n;
	return NULL;
}

static struct error *add_arguments(struct hit_arguments *a, const struct process *p, const struct hit_options *options,
        u32 spec, const struct runtime_callee *callee, u32 *number)
{
	const char *const *wanted = options->wanted[spec];
	struct function *f = &a->functions[a->n];
	struct value_places values = callee->values, all;
	const char *key = options->key[spec];

	*number = 0;
	if (callee->values.base == VALUE_NOWHERE)
		return NULL;
	number_slots(&values);
	all = values;
	if (key && !pick(p, options->spec[spec].language, key, callee, &values)) {
		values = all;
		key = NULL;
	}
	if (values.base == VALUE_ABSOLUTE && !values.ahead)
		return NULL;
	for (u32 i = 0; i < a->n; i++)
		if (a->functions[i].process == p->number && a->functions[i].entry == callee->entry &&
		        a->functions[i].key == key && a->functions[i].wanted == wanted && !a->functions[i].result &&
		        !strcmp(a->functions[i].name, callee->name)) {
			*number = i + 1;
			return NULL;
		}
	if (a->n == VALUES_FUNCTIONS)
		return NULL;
	*f = (struct function){.process = p->number,
	        .entry = callee->entry,
	        .view = options->spec[spec].language,
	        .name = strdup(callee->name),
	        .arguments = strdup(callee->arguments),
	        .takes_more = callee->takes_more,
	        .wanted = wanted,
	        .key = key};
	if (!f->name || !f->arguments)
		return &error_no_memory;
	for (u32 i = 0; i < options->nwanted[spec] && i < VALUES_MAX; i++)
		values.wanted[i] = (u8)argument_of(callee, wanted[i]);
	return tell(a, &values, number);
}

/* Arguments have the other half of the room. */
static struct error *add_result(struct hit_arguments *a, const struct process *p, const struct hit_options *options,
        u32 spec, const struct runtime_callee *callee, u32 *number)
{
	struct value_places values = callee->result;

	*number = 0;
	if (!options->over_ns || options->none || values.base == VALUE_NOWHERE || callee->place.own)
		return NULL;
	for (u32 i = 0; i < a->n; i++)
		if (a->functions[i].result && a->functions[i].process == p->number &&
		        a->functions[i].entry == callee->entry && !strcmp(a->functions[i].name, callee->name)) {
			*number = i + 1;
			return NULL;
		}
	if (a->n >= VALUES_FUNCTIONS / 2)
		return NULL;
	number_slots(&values);
	a->functions[a->n] = (struct function){.process = p->number,
	        .entry = callee->entry,
	        .view = options->spec[spec].language,
	        .name = strdup(callee->name),
	        .result = true};
	if (!a->functions[a->n].name)
		return &error_no_memory;
	return tell(a, &values, number);
}

struct error *hit_arguments_add(struct hit_arguments *a, const struct process *p, const struct hit_options *options,
        u32 spec, const struct runtime_callee *callee, u32 numbers[2])
{
	struct error *err = add_arguments(a, p, options, spec, callee, &numbers[0]);

	return err ? err : add_result(a, p, options, spec, callee, &numbers[1]);
}

struct error *hit_arguments_add_native(
        struct hit_arguments *a, const struct hit_options *options, u32 spec, const u8 *regs, u32 nregs, u32 *number)
{
	const char *key = options->key[spec];
	struct value_places values;

	*number = 0;
	for (u32 i = 0; i < a->n; i++)
		if (!a->functions[i].view && a->functions[i].key == key && a->functions[i].regs == regs) {
			*number = i + 1;
			return NULL;
		}
	if (a->n == VALUES_FUNCTIONS || !hit_native_key(key, regs, nregs, &values))
		return NULL;
	number_slots(&values);
	a->functions[a->n] = (struct function){.regs = regs, .key = key};
	return tell(a, &values, number);
}

/* A text as it was read. */
static void write_text(const u8 bytes[VALUE_BYTES], u32 size, FILE *out)
{
	const struct value_text *t = (const void *)bytes;
	u32 head = sizeof(*t) - sizeof(t->text);

	fwrite(t->text, 1, size > head && size <= VALUE_BYTES ? size - head : 0, out);
}

static void write_value(
        const struct hit_arguments *a, const struct function *f, const struct values_record *r, u32 i, FILE *out)
{
	const struct process *p = targets_find(a->host->targets, f->process);
	struct runtime_value v = {.word = r->word[i],
	        .type = r->kind[i],
	        .bytes = r->bytes[i],
	        .size = r->size[i] <= VALUE_BYTES ? r->size[i] : 0};

	if (p && !p->dead && !(r->unread & 1u << i))
		callee_value(p, f->view, &v, out);
	else
		putc('?', out);
}

/* Texts without their quotes, one behind the other. */
static struct error *write_key(
        const struct hit_arguments *a, const struct function *f, const struct values_record *r, FILE *out)
{
	for (u32 i = 0; i < r->n && i < VALUES_MAX; i++) {
		cleanup(free) char *text = NULL;
		size_t size, quote, bytes;
		FILE *one = open_memstream(&text, &size);

		if (!one)
			return &error_no_memory;
		if (r->unread & 1u << i) /* as access logs have what is not there */
			putc('-', one);
		else if (f->view)
			write_value(a, f, r, i, one);
		else
			write_text(r->bytes[i], r->size[i], one);
		if (fclose(one))
			return &error_no_memory;
		bytes = f->view && size > 2 && !strncmp(text, "b'", 2); /* Python's */
		quote = size > 1 && strchr("'\"", text[bytes]) && text[size - 1] == text[bytes];
		fprintf(out, "%s%.*s", i ? " " : "", (int)(size - 2 * quote - bytes), text + quote + bytes);
	}
	return NULL;
}

/* "name = value", the names one after the other. */
static void write_arguments(
        const struct hit_arguments *a, const struct function *f, const struct values_record *r, FILE *out)
{
	const char *name = f->arguments;

	fprintf(out, "%s(", f->name);
	for (u32 i = 0; i < r->n && i < VALUES_MAX; i++) {
		size_t len = strcspn(name, ",");

		fputs(i ? ", " : "", out);
		if (len)
			fprintf(out, "%.*s = ", (int)len, name);
		name += len + (name[len] == ',');
		write_value(a, f, r, i, out);
	}
	fputs(f->takes_more && r->n ? ", ...)" : ")", out);
}

static struct error *take_result(struct hit_arguments *a, const struct function *f, const struct values_record *r)
{
	struct result *result = &a->results[r->given & (RESULTS - 1)];
	size_t size;
	FILE *out;

	free(result->text);
	*result =
	        (struct result){.tgid = r->tgid, .tid = r->given, .which = (u32)r->word[VALUES_MAX - 1], .at = r->end};
	if (!r->n)
		return NULL;
	out = open_memstream(&result->text, &size);
	if (!out)
		return &error_no_memory;
	write_value(a, f, r, 0, out);
	return fclose(out) ? &error_no_memory : NULL;
}

const char *hit_arguments_result(const struct hit_arguments *a, const struct latency_record *record)
{
	const struct result *result = &a->results[record->tid & (RESULTS - 1)];
	u64 end = record->began + record->ns;

	return result->tgid == record->tgid && result->tid == record->tid && result->which == record->which &&
	                       result->at <= end && end - result->at < RESULT_NS
	               ? result->text
	               : NULL;
}

struct error *hit_arguments_record(struct hit_arguments *a, const struct values_record *r)
{
	const struct function *f;
	char *text = NULL;
	struct error *err = NULL;
	size_t size;
	FILE *out;

	if (!r->key || !r->function || r->function > a->n)
		return NULL;
	if (a->functions[r->function - 1].result)
		return take_result(a, &a->functions[r->function - 1], r);
	if (table_get(&a->texts, r->key))
		return NULL;
	if (a->ntexts == TEXTS_MAX) /* a call's record follows this one: older ones are not asked for any more */
		forget_texts(a);
	f = &a->functions[r->function - 1];
	out = open_memstream(&text, &size);
	if (!out)
		return &error_no_memory;
	if (f->key)
		err = write_key(a, f, r, out);
	else
		write_arguments(a, f, r, out);
	fclose(out);
	if (err || !text) {
		free(text);
		return &error_no_memory;
	}
	err = table_put(&a->texts, r->key, (u64)(uintptr_t)text);
	if (err)
		free(text);
	a->ntexts += !err;
	return err;
}

const char *hit_arguments_text(const struct hit_arguments *a, u64 key)
{
	const u64 *known = key ? table_get(&a->texts, key) : NULL;

	return known ? (const char *)(uintptr_t)*known : NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct hit_call_count *)a)->text, ((const struct hit_call_count *)b)->text);
}

static int by_calls(const void *a, const void *b)
{
	u64 left = ((const struct hit_call_count *)a)->calls, right = ((const struct hit_call_count *)b)->calls;

	return left < right ? 1 : left > right ? -1 : by_text(a, b);
}

/* Different keys may have the same text: of an object it has only the class. */
static u32 join(struct hit_call_count *all, u32 n)
{
	u32 left = 0;

	qsort(all, n, sizeof(*all), by_text);
	for (u32 i = 0; i < n; i++)
		if (left && !strcmp(all[left - 1].text, all[i].text))
			all[left - 1].calls += all[i].calls;
		else
			all[left++] = all[i];
	qsort(all, left, sizeof(*all), by_calls);
	return left;
}

struct error *hit_arguments_counts(struct hit_arguments *a, struct hit_call_count **ret, u32 *n)
{
	int map = bpf_map__fd(object_skeleton(a->host->object)->maps.values_known);
	struct hit_call_count *all = calloc(VALUES_KNOWN, sizeof(*all));
	u64 key, *at = NULL, calls;

	*n = 0;
	*ret = all;
	if (!all)
		return &error_no_memory;
	for (; *n < VALUES_KNOWN && !bpf_map_get_next_key(map, at, &key); at = &key) {
		all[*n].text = hit_arguments_text(a, key);
		if (all[*n].text && !bpf_map_lookup_elem(map, &key, &calls))
			all[(*n)++].calls = calls;
	}
	*n = join(all, *n);
	return NULL;
}
