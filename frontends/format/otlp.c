/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles: the message ExportProfilesServiceRequest that an OpenTelemetry Collector takes by HTTP. Field numbers
 * as in opentelemetry-proto 1.10 and 1.11, profiles/v1development/profiles.proto and collector/profiles/v1development,
 * which may still change.
 *
 * All profiles share a dictionary of tables; element 0 of each is empty and stands for "none". Names of attributes are
 * those of the semantic conventions: profile.frame.type of a location, process.executable.build_id.gnu of a mapping,
 * thread.* of a sample, meta.labels of the resource. A profile has one type of value: of allocations there are two,
 * bytes and objects.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "format.h"
#include "sample_labels.h"
#include "order.h"
#include "protobuf.h"
#include "text.h"
#include "values.h"
#include "unwind/cleanup.h"
#include "unwind/runtime.h"
#include "unwind/table.h"

enum { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_NAME = 1, SCOPE_VERSION };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE };
enum { ANY_STRING = 1, ANY_INT = 3 };
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES,
	PROFILE_TIME,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_ID
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES, SAMPLE_VALUES = 4 };
enum { MAPPING_LIMIT = 2, MAPPING_FILE = 4, MAPPING_ATTRIBUTES };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS, LOCATION_LINES, LOCATION_ATTRIBUTES };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_START_LINE };
enum { STACK_LOCATIONS = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE };

/* Fields of the dictionary. */
enum { MAPPINGS = 1, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, TABLES };

#define PROFILE_ID_BYTES 16
#define PAGE_BYTES       4096

struct level {                   /* of the path from the root to a node */
	u32 function, functions; /* as in pprof.c: its own, and how many its location holds */
	u64 key;                 /* which these are; 0: it has no location */
	u64 location;
};

struct otlp {
	const struct profile *p;
	struct order *order;
	struct known { /* what is in a table of the dictionary, by hash of its content */
		struct table index;
		u64 n;
	} known[TABLES];
	struct pb dictionary, message, inner, numbers;
	struct level *path;
	bool failed;
};

static void cleanup_otlp(struct otlp *w)
{
	for (u32 i = 0; i < TABLES; i++)
		table_free(&w->known[i].index);
	order_destroy(w->order);
	free(w->dictionary.bytes);
	free(w->message.bytes);
	free(w->inner.bytes);
	free(w->numbers.bytes);
	free(w->path);
}

static void cleanup_pb(struct pb *m)
{
	free(m->bytes);
}

/* The index of a row of this content, which is added if it is new. Empties content, unless it is a string's. */
static u64 put_row(struct otlp *w, u32 table, struct pb *content)
{
	struct known *k = &w->known[table];
	u64 key = XXH3_64bits(content->bytes, content->size) | 1, *known = table_get(&k->index, key), index;

	index = known ? *known : k->n++;
	w->failed |= content->failed || (!known && table_put(&k->index, key, index));
	if (!known)
		pb_bytes(&w->dictionary, table, content->bytes, content->size);
	content->size = 0;
	return index;
}

static u64 put_string(struct otlp *w, const char *s)
{
	char clean[TEXT_CLEAN];
	struct pb text = {.bytes = (u8 *)clean, .size = text_clean(s, clean)};

	return put_row(w, STRINGS, &text);
}

/* An attribute; value NULL: number is its value. */
static u64 put_attribute(struct otlp *w, const char *key, const char *value, u64 number)
{
	char clean[TEXT_CLEAN];
	cleanup(pb) struct pb row = {0}, any = {0};

	if (value)
		pb_bytes(&any, ANY_STRING, clean, text_clean(value, clean));
	else
		pb_number(&any, ANY_INT, number);
	pb_number(&row, ATTRIBUTE_KEY, put_string(w, key));
	pb_bytes(&row, ATTRIBUTE_VALUE, any.bytes, any.size);
	w->failed |= any.failed;
	return put_row(w, ATTRIBUTES, &row);
}

static void put_type(struct otlp *w, struct pb *to, u32 field, const char *type, const char *unit)
{
	w->inner.size = 0;
	pb_number(&w->inner, TYPE_TYPE, put_string(w, type));
	pb_number(&w->inner, TYPE_UNIT, put_string(w, unit));
	pb_bytes(to, field, w->inner.bytes, w->inner.size);
}

static bool is_of_language(const struct profile_function *f)
{
	switch (f->kind) {
	case KIND_SCRIPT:
	case KIND_SCRIPT_BASELINE:
	case KIND_SCRIPT_JIT:
	case KIND_SCRIPT_NATIVE:
	case KIND_STUB:
	case KIND_WORK:
	case KIND_VM:
		return true;
	default:
		return false;
	}
}

/* As the semantic conventions for profile.frame.type have it, where they have a word. A VM's own code is native. */
static const char *frame_type(const struct profile_function *f)
{
	if (f->kind == KIND_KERNEL)
		return "kernel";
	for (const struct runtime_ops *const *r = runtimes; *r && is_of_language(f); r++)
		if (!strcmp(f->module, (*r)->name))
			return (*r)->frame_type ? (*r)->frame_type : (*r)->name;
	return "native";
}

static u64 put_mapping(struct otlp *w, const struct profile_function *f)
{
	const struct profile_image *image = &w->p->images[f->image];
	struct pb *m = &w->message;
	char name[TEXT_CLEAN];

	if (!f->image && !*f->module)
		return 0;
	snprintf(name, sizeof(name), "[%s]", f->module);
	m->size = 0;
	pb_number(m, MAPPING_FILE, put_string(w, f->image ? image->path : name));
	w->numbers.size = 0;
	if (f->image && *image->build_id) {
		pb_packed(&w->numbers, put_attribute(w, "process.executable.build_id.gnu", image->build_id, 0));
		pb_bytes(m, MAPPING_ATTRIBUTES, w->numbers.bytes, w->numbers.size);
	}
	return put_row(w, MAPPINGS, m);
}

static u64 put_function(struct otlp *w, const struct profile_function *f)
{
	char text[TEXT_CLEAN];
	u64 name = put_string(w, text_plain_name(f, text, sizeof(text)));

	w->inner.size = 0;
	pb_number(&w->inner, FUNCTION_NAME, name);
	pb_number(&w->inner, FUNCTION_SYSTEM_NAME, name);
	pb_number(&w->inner, FUNCTION_FILE, put_string(w, f->file));
	pb_number(&w->inner, FUNCTION_START_LINE, f->definition);
	return put_row(w, FUNCTIONS, &w->inner);
}

/* Of the last n functions of the path that ends at depth: those that were inlined first. */
static u64 put_location(struct otlp *w, u32 depth, u32 n)
{
	const struct profile_function *outer = &w->p->functions[w->path[depth + 1 - n].function];
	u64 mapping = put_mapping(w, outer), type = put_attribute(w, "profile.frame.type", frame_type(outer), 0);
	cleanup(pb) struct pb row = {0};

	pb_number(&row, LOCATION_MAPPING, mapping);
	pb_number(&row, LOCATION_ADDRESS, outer->address);
	for (u32 i = 0; i < n; i++) {
		const struct profile_function *f = &w->p->functions[w->path[depth - i].function];
		u64 function = put_function(w, f);

		w->inner.size = 0;
		pb_number(&w->inner, LINE_FUNCTION, function);
		pb_number(&w->inner, LINE_LINE, f->line);
		pb_bytes(&row, LOCATION_LINES, w->inner.bytes, w->inner.size);
	}
	w->numbers.size = 0;
	pb_packed(&w->numbers, type);
	pb_bytes(&row, LOCATION_ATTRIBUTES, w->numbers.bytes, w->numbers.size);
	return put_row(w, LOCATIONS, &row);
}

static void set_level(struct otlp *w, u32 depth, u32 function)
{
	struct level *level = &w->path[depth];
	const struct profile_function *f = &w->p->functions[function];

	*level = (struct level){.function = function, .functions = 1};
	if (f->kind == KIND_ROOT || sample_label_is(f->kind))
		return;
	level->key = 1;
	if (f->flags & FRAME_INLINED && depth && w->path[depth - 1].key)
		level->functions = w->path[depth - 1].functions + 1;
}

static u64 location_at(struct otlp *w, u32 depth)
{
	struct level *level = &w->path[depth];

	if (!level->location)
		level->location = put_location(w, depth, level->functions);
	return level->location;
}

static const char *const containers[CONTAINER_TERMS] = {"k8s.pod.uid", "k8s.namespace.name", "k8s.pod.name",
        "container.id", "k8s.container.name", "systemd.unit", NULL};
static const struct label_keys keys = {"process.command", "process.pid", containers, "thread.name", "thread.id"};

struct attributes {
	struct otlp *w;
	struct pb *to;
};

static void add_attribute(void *ctx, const char *key, const char *text, u64 number)
{
	struct attributes *a = ctx;

	pb_packed(a->to, put_attribute(a->w, key, text, number));
}

static u64 put_stack(struct otlp *w, u32 depth)
{
	cleanup(pb) struct pb locations = {0};

	for (u32 d = depth; d; d -= w->path[d].functions)
		if (w->path[d].key)
			pb_packed(&locations, location_at(w, d));
	w->failed |= locations.failed;
	w->message.size = 0;
	pb_bytes(&w->message, STACK_LOCATIONS, locations.bytes, locations.size);
	return put_row(w, STACKS, &w->message);
}

static void put_sample(struct otlp *w, struct pb *profile, u32 depth, u64 value)
{
	cleanup(pb) struct pb attributes = {0};
	struct attributes labels = {w, &attributes};
	u64 stack = put_stack(w, depth);

	for (u32 d = 1; d <= depth; d++)
		sample_labels_add(&w->p->functions[w->path[d].function], &keys, add_attribute, &labels);
	w->message.size = w->numbers.size = 0;
	pb_number(&w->message, SAMPLE_STACK, stack);
	if (attributes.size)
		pb_bytes(&w->message, SAMPLE_ATTRIBUTES, attributes.bytes, attributes.size);
	pb_packed(&w->numbers, value);
	pb_bytes(&w->message, SAMPLE_VALUES, w->numbers.bytes, w->numbers.size);
	pb_bytes(profile, PROFILE_SAMPLES, w->message.bytes, w->message.size);
	w->failed |= attributes.failed;
}

/* more: of what else was counted. */
static void put_samples(struct otlp *w, struct pb *profile, bool more)
{
	for (u32 i = 0; i < w->p->nnodes && !w->failed; i++) {
		const struct profile_node *node = &w->p->nodes[w->order->nodes[i]];
		u32 depth = w->order->depth[w->order->nodes[i]];
		u64 value = more ? node->more : node->self;

		set_level(w, depth, node->function);
		if (value)
			put_sample(w, profile, depth, value);
	}
}

/* The same profile has the same id, however often it is sent. */
static void put_id(const struct otlp *w, struct pb *profile, const char *type)
{
	const struct profile_meta *m = &w->p->meta;
	u64 facts[] = {m->start_unix_ns, m->duration_ns, w->p->nnodes, w->p->nodes[0].total};
	XXH128_hash_t id = XXH3_128bits_withSeed(facts, sizeof(facts), XXH3_64bits(type, strlen(type)));
	XXH128_canonical_t bytes;

	XXH128_canonicalFromHash(&bytes, id);
	pb_bytes(profile, PROFILE_ID, &bytes, PROFILE_ID_BYTES);
}

static void put_profile(struct otlp *w, struct pb *scope, const struct values *v, const struct value *value)
{
	cleanup(pb) struct pb profile = {0};

	put_type(w, &profile, PROFILE_SAMPLE_TYPE, value->type, value->unit);
	put_samples(w, &profile, value->from == VALUE_MORE);
	/* fixed64 */
	pb_packed(&profile, PROFILE_TIME << 3 | 1);
	pb_raw(&profile, &w->p->meta.start_unix_ns, sizeof(u64));
	pb_number(&profile, PROFILE_DURATION, w->p->meta.duration_ns);
	put_type(w, &profile, PROFILE_PERIOD_TYPE, v->period.type, v->period.unit);
	pb_number(&profile, PROFILE_PERIOD, v->period_number);
	put_id(w, &profile, value->type);
	pb_bytes(scope, SCOPE_PROFILES_PROFILES, profile.bytes, profile.size);
	w->failed |= profile.failed;
}

static void put_profiles(struct otlp *w, struct pb *scope)
{
	struct values v;

	values_of(&w->p->meta, &v);
	for (u32 i = 0; i < v.n; i++)
		if (v.value[i].from != VALUE_TIME)
			put_profile(w, scope, &v, &v.value[i]);
}

static void put_label(struct pb *resource, const char *key, size_t key_size, const char *value)
{
	cleanup(pb) struct pb pair = {0}, any = {0};
	char clean[TEXT_CLEAN];

	pb_bytes(&any, ANY_STRING, clean, text_clean(value, clean));
	pb_bytes(&pair, KEY_VALUE_KEY, key, key_size);
	pb_bytes(&pair, KEY_VALUE_VALUE, any.bytes, any.size);
	pb_bytes(resource, RESOURCE_ATTRIBUTES, pair.bytes, pair.size);
	resource->failed |= any.failed || pair.failed;
}

/* Lines "key=value". */
static void put_resource(struct pb *resource, const char *labels)
{
	cleanup(free) char *copy = labels ? strdup(labels) : NULL;
	char *rest = copy, *line;

	resource->failed |= labels && !copy;
	while (copy && (line = strsep(&rest, "\n"))) {
		char *value = strchr(line, '=');

		if (value && value > line)
			put_label(resource, line, value - line, value + 1);
	}
}

/* Element 0 of all tables. */
static void put_nothing(struct otlp *w)
{
	struct pb nothing = {.bytes = (u8 *)""};

	for (u32 table = MAPPINGS; table < TABLES; table++)
		put_row(w, table, &nothing);
}

static void put_scope(struct pb *to)
{
	cleanup(pb) struct pb scope = {0};

	pb_bytes(&scope, SCOPE_NAME, "yrt", 3);
	pb_bytes(&scope, SCOPE_VERSION, YRT_VERSION, strlen(YRT_VERSION));
	pb_bytes(to, SCOPE_PROFILES_SCOPE, scope.bytes, scope.size);
	to->failed |= scope.failed;
}

static struct error *write_otlp(const struct profile *p, FILE *out)
{
	cleanup(otlp) struct otlp w = {.p = p};
	cleanup(pb) struct pb scope = {0}, resource = {0}, resource_profiles = {0}, request = {0};
	struct error *err = order_create(p, &w.order);

	if (err)
		return err;
	w.path = calloc(w.order->deepest + 1, sizeof(*w.path));
	if (!w.path)
		return &error_no_memory;
	put_nothing(&w);
	put_scope(&scope);
	put_profiles(&w, &scope);
	put_resource(&resource, p->meta.labels);
	pb_bytes(&resource_profiles, RESOURCE_PROFILES_RESOURCE, resource.bytes, resource.size);
	pb_bytes(&resource_profiles, RESOURCE_PROFILES_SCOPE, scope.bytes, scope.size);
	pb_bytes(&request, REQUEST_RESOURCE_PROFILES, resource_profiles.bytes, resource_profiles.size);
	pb_bytes(&request, REQUEST_DICTIONARY, w.dictionary.bytes, w.dictionary.size);
	if (w.failed || w.dictionary.failed || scope.failed || resource.failed || resource_profiles.failed ||
	        request.failed)
		return &error_no_memory;
	fwrite(request.bytes, 1, request.size, out);
	return text_finish(out, "OTLP profile");
}

const struct format format_otlp = {
        .name = "otlp",
        .binary = true,
        .extension = ".otlp",
        .description = "OpenTelemetry profiles, as a Collector takes them",
        .threads = true,
        .write = write_otlp,
};
