/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: the message perftools.profiles.Profile, packed by gzip. Field numbers as in google/pprof, proto/profile.proto.
 *
 * A function has the line where it is defined; with --lines its locations have the line that is executed, which is what
 * `go build -pgo` asks for. A function becomes a location at its first byte, unless it was split by address
 * (--addresses): then at the place being executed, which of a caller is the last byte of its call. With --annotate a
 * function's system name says what it is. Functions that were inlined share the location of the one that they were put
 * into, innermost first. The nodes of processes and threads become labels: process, pid, pod, container, unit; thread,
 * thread_id; so does what the program has labelled its work with. A difference has samples of both sides, those of the
 * one from before negative and with the label pprof::base, as `pprof -diff_base` makes them: its shares are of the
 * base.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "format.h"
#include "gzip.h"
#include "sample_labels.h"
#include "order.h"
#include "pprof_fields.h"
#include "protobuf.h"
#include "text.h"
#include "values.h"
#include "unwind/cleanup.h"
#include "unwind/table.h"
#include "words.h"

#define PAGE_BYTES 4096

struct level { /* of the path from the root to a node */
	u32 function;
	u32 functions; /* that its location holds: 1, and those that were put into it above this node */
	u64 key;       /* which functions those are; 0: it has no location, it is the root or a label */
	u64 location;  /* 0: not known yet */
};

#define LABELLED 5 /* a pod, its container, a process, a thread, and the program's own labels */
struct labelled {  /* functions of nodes that are labels, from the innermost out; 0: no more */
	u32 functions[LABELLED];
};

struct facts {   /* of the functions of an image */
	u64 end; /* behind the page of the last one: as far as is known here */
	bool files, lines, inlined;
};

/* What a reader wants otherwise. */
struct dialect {
	struct label_keys keys;
	bool kinds;  /* labels say what runs */
	bool coroot; /* types have Coroot's names, and the time is that of the end */
};

struct pprof {
	const struct profile *p;
	const struct dialect *dialect;
	struct order *order; /* a function's number is its rank, from 1 on */
	struct gzip *gz;
	struct table strings, mappings, locations; /* by hash: index */
	u64 nstrings, nlocations;
	u64 *plain;          /* the location of each function that was not inlined; 0: none yet */
	struct facts *facts; /* of each image; 0: of what has none */
	struct values values;
	struct level *path;
	struct labelled labelled;
	struct pb labels; /* of those */
	struct pb top, message, inner, numbers;
	bool failed; /* out of memory */
};

static void cleanup_pprof(struct pprof *w)
{
	order_destroy(w->order);
	gzip_destroy(w->gz);
	table_free(&w->strings);
	table_free(&w->mappings);
	table_free(&w->locations);
	free(w->plain);
	free(w->facts);
	free(w->path);
	free(w->labels.bytes);
	free(w->top.bytes);
	free(w->message.bytes);
	free(w->inner.bytes);
	free(w->numbers.bytes);
}

/* Writes a field of the profile and empties what it was made of. */
static void put_bytes(struct pprof *w, u32 field, struct pb *content)
{
	w->top.size = 0;
	pb_bytes(&w->top, field, content->bytes, content->size);
	gzip_write(w->gz, w->top.bytes, w->top.size);
	w->failed |= w->top.failed || content->failed;
	content->size = 0;
}

static void put_number(struct pprof *w, u32 field, u64 value)
{
	w->top.size = 0;
	pb_number(&w->top, field, value);
	gzip_write(w->gz, w->top.bytes, w->top.size);
}

static void remember(struct pprof *w, struct table *t, u64 key, u64 value)
{
	w->failed |= table_put(t, key, value) != NULL;
}

/* The index of a string; the first is 0 and has to be the empty one. */
static u64 put_string(struct pprof *w, const char *s)
{
	char clean[TEXT_CLEAN];
	size_t n = text_clean(s, clean);
	u64 key = XXH3_64bits(clean, n) | 1, *known = table_get(&w->strings, key);
	struct pb text = {.bytes = (u8 *)clean, .size = n};

	if (known)
		return *known;
	put_bytes(w, PROFILE_STRING, &text);
	remember(w, &w->strings, key, w->nstrings);
	return w->nstrings++;
}

static void put_type(struct pprof *w, u32 field, const char *type, const char *unit)
{
	pb_number(&w->message, TYPE_TYPE, put_string(w, type));
	pb_number(&w->message, TYPE_UNIT, put_string(w, unit));
	put_bytes(w, field, &w->message);
}

static void put_types(struct pprof *w)
{
	const struct values *v = &w->values;

	for (u32 i = 0; i < v->n; i++)
		put_type(w, PROFILE_SAMPLE_TYPE, v->value[i].type, v->value[i].unit);
	put_type(w, PROFILE_PERIOD_TYPE, v->period.type, v->period.unit);
	put_number(w, PROFILE_PERIOD, v->period_number);
	if (!(v->period_ns > 0) && v->n > 1) /* readers take the last one, if nothing is said */
		put_number(w, PROFILE_DEFAULT_TYPE, put_string(w, v->value[v->counted].type));
}

static void add_comment(struct pprof *w, struct pb *comments, const char *what, const char *text)
{
	char line[TEXT_CLEAN];

	if (!text || !*text)
		return;
	snprintf(line, sizeof(line), "%s: %s", what, text);
	pb_packed(comments, put_string(w, line));
}

static void put_meta(struct pprof *w)
{
	const struct profile_meta *m = &w->p->meta;

	put_string(w, "");
	values_of(m, &w->values);
	if (w->dialect->coroot)
		values_for_coroot(&w->values);
	put_types(w);
	put_number(w, PROFILE_TIME, m->start_unix_ns + (w->dialect->coroot ? m->duration_ns : 0));
	put_number(w, PROFILE_DURATION, m->duration_ns);
	add_comment(w, &w->inner, "command", m->command);
	add_comment(w, &w->inner, "target", m->target);
	add_comment(w, &w->inner, "loss", m->loss);
	if (w->inner.size)
		put_bytes(w, PROFILE_COMMENT, &w->inner);
}

static void find_facts(struct pprof *w)
{
	for (u32 i = 0; i < w->p->nfunctions; i++) {
		const struct profile_function *f = &w->p->functions[i];
		struct facts *facts = &w->facts[f->image];
		u64 end = (f->address | (PAGE_BYTES - 1)) + 1;

		if (f->kind == KIND_PROCESS)
			continue;
		facts->end = facts->end < end ? end : facts->end;
		facts->files |= *f->file != 0;
		facts->lines |= f->line != 0;
		facts->inlined |= (f->flags & FRAME_INLINED) != 0;
	}
}

/* The number of a function's mapping: its image, or what stands for the kernel and for a runtime's code. */
static u64 put_mapping(struct pprof *w, const struct profile_function *f)
{
	u64 key = XXH3_64bits_withSeed(f->module, f->image ? 0 : strlen(f->module), f->image) | 1;
	u64 *known = table_get(&w->mappings, key), id = w->mappings.used + 1;
	const struct facts *facts = &w->facts[f->image];
	char name[TEXT_CLEAN];

	if (known || (!f->image && !*f->module))
		return known ? *known : 0;
	snprintf(name, sizeof(name), "[%s]", f->module);
	pb_number(&w->message, MAPPING_ID, id);
	pb_number(&w->message, MAPPING_LIMIT, f->image ? facts->end : 0);
	pb_number(&w->message, MAPPING_FILE, put_string(w, f->image ? w->p->images[f->image].path : name));
	pb_number(&w->message, MAPPING_BUILD_ID, put_string(w, w->p->images[f->image].build_id));
	pb_number(&w->message, MAPPING_HAS_FUNCTIONS, 1);
	pb_number(&w->message, MAPPING_HAS_FILES, facts->files);
	pb_number(&w->message, MAPPING_HAS_LINES, facts->lines);
	pb_number(&w->message, MAPPING_HAS_INLINED, facts->inlined);
	put_bytes(w, PROFILE_MAPPING, &w->message);
	remember(w, &w->mappings, key, id);
	return id;
}

/* The first mapping is taken for the program: readers name the profile by it. */
static void put_program(struct pprof *w)
{
	u32 program = sample_labels_program(w->p);

	if (program) {
		put_mapping(w, &w->p->functions[program]);
		return;
	}
	for (u32 i = 0; i < w->p->nfunctions; i++) {
		const struct profile_function *f = &w->p->functions[w->order->functions[i]];

		if (f->image && !strstr(w->p->images[f->image].path, ".so")) {
			put_mapping(w, f);
			return;
		}
	}
}

/* The name, and behind it what the frame is: "find_[cfunc]", "add_[jit inlined approx]". */
static u64 put_annotated(struct pprof *w, const struct profile_function *f)
{
	char text[TEXT_CLEAN];

	snprintf(text, sizeof(text), "%.*s_[%s%s%s%s]", TEXT_CLEAN - 64, text_name(f), text_kind(words_kind(f)),
	        f->flags & FRAME_INLINED ? " inlined" : "", f->flags & FRAME_APPROX ? " approx" : "",
	        f->flags & FRAME_GUESS ? " guess" : "");
	return put_string(w, text);
}

/* Names are without the line that is executed: locations have that. */
static void put_functions(struct pprof *w)
{
	char text[TEXT_CLEAN];

	for (u32 i = 0; i < w->p->nfunctions; i++) {
		const struct profile_function *f = &w->p->functions[w->order->functions[i]];
		u64 name = put_string(w, text_plain_name(f, text, sizeof(text)));

		pb_number(&w->message, FUNCTION_ID, i + 1);
		pb_number(&w->message, FUNCTION_NAME, name);
		pb_number(&w->message, FUNCTION_SYSTEM_NAME, w->p->meta.annotate ? put_annotated(w, f) : name);
		pb_number(&w->message, FUNCTION_FILE, put_string(w, f->file));
		pb_number(&w->message, FUNCTION_START_LINE, f->definition);
		put_bytes(w, PROFILE_FUNCTION, &w->message);
	}
}

/* A new location for the last n functions of the path that ends at depth. */
static u64 put_location(struct pprof *w, u32 depth, u32 n)
{
	const struct profile_function *outer = &w->p->functions[w->path[depth + 1 - n].function];
	u64 mapping = put_mapping(w, outer);

	pb_number(&w->message, LOCATION_ID, ++w->nlocations);
	pb_number(&w->message, LOCATION_MAPPING, mapping);
	pb_number(&w->message, LOCATION_ADDRESS, outer->address);
	for (u32 i = 0; i < n; i++) {
		u32 function = w->path[depth - i].function;

		w->inner.size = 0;
		pb_number(&w->inner, LINE_FUNCTION, w->order->rank[function] + 1);
		pb_number(&w->inner, LINE_LINE, w->p->functions[function].line);
		pb_bytes(&w->message, LOCATION_LINE, w->inner.bytes, w->inner.size);
	}
	w->failed |= w->inner.failed;
	put_bytes(w, PROFILE_LOCATION, &w->message);
	return w->nlocations;
}

/* The node at this depth is one of function. */
static void set_level(struct pprof *w, u32 depth, u32 function)
{
	struct level *level = &w->path[depth];
	const struct level *outer = depth ? level - 1 : level;
	const struct profile_function *f = &w->p->functions[function];

	*level = (struct level){.function = function, .functions = 1};
	if (f->kind == KIND_ROOT || sample_label_is(f->kind))
		return;
	level->key = function + 1ull;
	if (f->flags & FRAME_INLINED && outer->key) {
		const u64 chain[2] = {outer->key, function};

		level->key = XXH3_64bits(chain, sizeof(chain)) | 1ull << 63;
		level->functions = outer->functions + 1;
	}
}

/* The location of the node at this depth; 0: it has none, it is the root, a process or a thread. */
static u64 location_at(struct pprof *w, u32 depth)
{
	struct level *level = &w->path[depth];
	bool plain = level->functions == 1;
	u64 *known;

	if (level->location || !level->key)
		return level->location;
	known = plain ? &w->plain[level->function] : table_get(&w->locations, level->key);
	if (known && *known)
		return level->location = *known;
	level->location = put_location(w, depth, level->functions);
	if (plain)
		w->plain[level->function] = level->location;
	else
		remember(w, &w->locations, level->key, level->location);
	return level->location;
}

static void add_label(struct pprof *w, struct pb *to, const char *key, const char *text, u64 number)
{
	struct pb *label = &w->inner;

	label->size = 0;
	pb_number(label, LABEL_KEY, put_string(w, key));
	pb_number(label, LABEL_STRING, text ? put_string(w, text) : 0);
	pb_number(label, LABEL_NUMBER, number);
	pb_bytes(to, SAMPLE_LABEL, label->bytes, label->size);
	w->failed |= label->failed;
}

static const struct dialect plain = {.keys = {"process", "pid", pprof_containers, "thread", "thread_id"},
                                    .kinds = true},
                            series = {.keys = {"process", NULL, pprof_containers, NULL, NULL}, .kinds = false},
                            coroot = {.keys = {"process", "pid", pprof_containers, "thread", "thread_id"},
                                    .coroot = true};

static void add_to_labels(void *ctx, const char *key, const char *text, u64 number)
{
	struct pprof *w = ctx;

	add_label(w, &w->labels, key, text, number);
}

/* of: the functions of the nodes that are labels; 0: none */
static void set_labels(struct pprof *w, const struct labelled *of)
{
	if (!memcmp(&w->labelled, of, sizeof(*of)))
		return;
	w->labelled = *of;
	w->labels.size = 0;
	for (u32 i = 0; i < LABELLED && of->functions[i]; i++)
		sample_labels_add(&w->p->functions[of->functions[i]], &w->dialect->keys, add_to_labels, w);
}

static bool is_script(enum profile_kind kind)
{
	return kind == KIND_SCRIPT || kind == KIND_SCRIPT_BASELINE || kind == KIND_SCRIPT_JIT ||
	       kind == KIND_SCRIPT_NATIVE || kind == KIND_STUB || kind == KIND_WORK || kind == KIND_CLASS;
}

/* What runs: the language of the innermost frame of a script, and what the innermost frame is. */
static void add_kind(struct pprof *w, u32 depth)
{
	const struct profile_function *functions = w->p->functions;
	const char *runtime = "native";

	for (u32 d = depth; d; d--)
		if (is_script(functions[w->path[d].function].kind)) {
			runtime = functions[w->path[d].function].module;
			break;
		}
	add_label(w, &w->message, "runtime", runtime, 0);
	add_label(w, &w->message, "kind", text_kind(words_kind(&functions[w->path[depth].function])), 0);
}

/* Numbers in the order of put_types(); those from before are below 0. */
static void put_values(struct pprof *w, u64 self, u64 more, bool before)
{
	u64 sign = before ? -1ull : 1;

	w->numbers.size = 0;
	for (u32 i = 0; i < w->values.n; i++)
		pb_packed(&w->numbers, sign * value_number(&w->values, i, self, more));
	pb_bytes(&w->message, SAMPLE_VALUE, w->numbers.bytes, w->numbers.size);
}

static void put_sample(struct pprof *w, u32 depth, u64 self, u64 more, bool before)
{
	struct labelled of = {0};
	u32 n = 0;

	w->numbers.size = 0;
	for (u32 d = depth; d;) {
		const struct level *level = &w->path[d];

		if (level->key)
			pb_packed(&w->numbers, location_at(w, d));
		else if (n < LABELLED)
			of.functions[n++] = level->function;
		d -= level->functions;
	}
	pb_bytes(&w->message, SAMPLE_LOCATION, w->numbers.bytes, w->numbers.size);
	put_values(w, self, more, before);
	set_labels(w, &of);
	if (w->labels.size)
		pb_raw(&w->message, w->labels.bytes, w->labels.size);
	if (w->dialect->kinds)
		add_kind(w, depth);
	if (before)
		add_label(w, &w->message, "pprof::base", "true", 0);
	w->failed |= w->numbers.failed || w->labels.failed;
	put_bytes(w, PROFILE_SAMPLE, &w->message);
}

static struct error *put_samples(struct pprof *w)
{
	const struct order *order = w->order;

	w->path = calloc(order->deepest + 1, sizeof(*w->path));
	if (!w->path)
		return &error_no_memory;
	for (u32 i = 0; i < w->p->nnodes && !w->failed; i++) {
		const struct profile_node *node = &w->p->nodes[order->nodes[i]];
		u32 depth = order->depth[order->nodes[i]];

		set_level(w, depth, node->function);
		if (node->self || node->more)
			put_sample(w, depth, node->self, node->more, false);
		if (w->p->base && w->p->base[order->nodes[i]])
			put_sample(w, depth, text_scaled(w->p->base[order->nodes[i]], w->p->base_scale), 0, true);
	}
	return w->failed ? &error_no_memory : NULL;
}

static struct error *write_dialect(const struct profile *p, const struct dialect *dialect, FILE *out)
{
	cleanup(pprof) struct pprof w = {.p = p, .dialect = dialect};
	struct error *err = gzip_create(out, &w.gz);

	if (!err)
		err = order_create(p, &w.order);
	w.plain = calloc(p->nfunctions, sizeof(*w.plain));
	w.facts = calloc(p->nimages, sizeof(*w.facts));
	if (err || !w.plain || !w.facts)
		return err ? err : &error_no_memory;
	find_facts(&w);
	put_meta(&w);
	put_program(&w);
	put_functions(&w);
	err = put_samples(&w);
	if (err)
		return err;
	gzip_finish(w.gz);
	return text_finish(out, "pprof profile");
}

static struct error *write_pprof(const struct profile *p, FILE *out)
{
	return write_dialect(p, &plain, out);
}

static struct error *write_series(const struct profile *p, FILE *out)
{
	return write_dialect(p, &series, out);
}

static struct error *write_coroot(const struct profile *p, FILE *out)
{
	return write_dialect(p, &coroot, out);
}

const struct format format_pprof = {
        .name = "pprof",
        .binary = true,
        .extension = ".pb.gz",
        .description = "for pprof and the stores that take it",
        .threads = true,
        .compares = true,
        .processes = PROCESSES_EACH,
        .write = write_pprof,
};

const struct format format_pprof_series = {
        .name = "pprof",
        .binary = true,
        .processes = PROCESSES_EACH,
        .write = write_series,
};

const struct format format_pprof_coroot = {
        .name = "pprof",
        .binary = true,
        .processes = PROCESSES_EACH,
        .write = write_coroot,
};
