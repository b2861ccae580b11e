/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "format.h"
#include "order.h"
#include "protobuf.h"
#include "recording.h"
#include "text.h"
#include "unwind/cleanup.h"

#define CHUNK      (256u << 10) /* raw bytes at which a section ends: with it goes what a file lacks that is cut */
#define ZSTD_LEVEL 3

struct writer {
	FILE *out;
	struct pb raw, functions, more, defined; /* of the sections in the making */
	bool any_defined;                        /* some of the functions has such a line */
	u32 *number;                             /* of a function in the file; 0: it is not there yet */
	u32 nnumbers;
	void *packed;
	size_t packed_size;
	bool failed; /* out of memory */
};

static void cleanup_writer(struct writer *w)
{
	free(w->raw.bytes);
	free(w->functions.bytes);
	free(w->more.bytes);
	free(w->defined.bytes);
	free(w->number);
	free(w->packed);
}

static void put_section(struct writer *w, u32 type, u32 encoding, size_t raw, const void *bytes, size_t size)
{
	struct section_header header = {
	        htole32(type), htole32(encoding), htole64(size), htole64(raw), htole64(XXH3_64bits(bytes, size)), 0};

	header.header = htole64(XXH3_64bits(&header, offsetof(struct section_header, header)));
	fwrite(&header, sizeof(header), 1, w->out);
	fwrite(bytes, 1, size, w->out);
}

/* Writes what was gathered and empties it. */
static void end_section(struct writer *w, enum recording_section type, struct pb *raw)
{
	size_t room = ZSTD_compressBound(raw->size), size;

	w->failed |= raw->failed;
	if (room > w->packed_size) {
		free(w->packed);
		w->packed = malloc(room);
		w->packed_size = w->packed ? room : 0;
	}
	if (w->failed || !w->packed) {
		w->failed = true;
		return;
	}
	size = ZSTD_compress(w->packed, w->packed_size, raw->bytes, raw->size, ZSTD_LEVEL);
	if (!ZSTD_isError(size) && size < raw->size)
		put_section(w, type, ENCODING_ZSTD, raw->size, w->packed, size);
	else
		put_section(w, type, ENCODING_RAW, raw->size, raw->bytes, raw->size);
	raw->size = 0;
}

static void put_string(struct pb *to, const char *s)
{
	size_t n = strlen(s);

	pb_packed(to, n);
	pb_raw(to, s, n);
}

static void set_text(json_t *o, const char *name, const char *text)
{
	char clean[TEXT_CLEAN];

	if (!text)
		return;
	text_clean(text, clean);
	json_object_set_new(o, name, json_string(clean));
}

/* Lines "key=value" as an object. */
static void set_labels(json_t *o, const char *labels)
{
	cleanup(free) char *copy = labels ? strdup(labels) : NULL;
	char *rest = copy, *line;
	json_t *object = copy ? json_object() : NULL;

	while (copy && (line = strsep(&rest, "\n"))) {
		char *value = strchr(line, '=');

		if (value)
			*value++ = '\0';
		if (value)
			set_text(object, line, value);
	}
	if (object)
		json_object_set_new(o, "labels", object);
}

static json_t *kinds(void)
{
	json_t *list = json_array();

	for (u32 i = 0; i < KIND_MAX; i++)
		json_array_append_new(list, json_string(text_kind(i)));
	return list;
}

static json_t *meta(const struct profile *p)
{
	const struct profile_meta *m = &p->meta;
	json_t *o = json_object();

	set_text(o, "yrt", YRT_VERSION);
	set_text(o, "title", m->title);
	set_text(o, "heading", m->heading);
	set_text(o, "command", m->command);
	set_text(o, "target", m->target);
	set_text(o, "unit", m->unit);
	set_text(o, "more", m->more);
	set_text(o, "loss", m->loss);
	set_labels(o, m->labels);
	json_object_set_new(o, "start_unix_ns", json_integer((json_int_t)m->start_unix_ns));
	json_object_set_new(o, "duration_ns", json_integer((json_int_t)m->duration_ns));
	json_object_set_new(o, "frequency", json_real(isfinite(m->frequency) ? m->frequency : 0));
	json_object_set_new(o, "kinds", kinds());
	json_object_set_new(o, "functions", json_integer(p->nfunctions));
	json_object_set_new(o, "nodes", json_integer(p->nnodes));
	json_object_set_new(o, "count", json_integer((json_int_t)p->nodes[0].total));
	if (m->stats)
		json_object_set_new(o, "stats", json_loads(m->stats, 0, NULL));
	return o;
}

static void put_meta(struct writer *w, const struct profile *p)
{
	json_t *o = meta(p);
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	w->failed |= !text;
	if (!text)
		return;
	pb_raw(&w->raw, text, strlen(text));
	free(text);
	end_section(w, SECTION_META, &w->raw);
}

static void put_images(struct writer *w, const struct profile *p)
{
	for (u32 i = 1; i < p->nimages; i++) {
		put_string(&w->raw, p->images[i].path);
		put_string(&w->raw, p->images[i].build_id);
		if (w->raw.size >= CHUNK)
			end_section(w, SECTION_IMAGES, &w->raw);
	}
	if (w->raw.size)
		end_section(w, SECTION_IMAGES, &w->raw);
}

static void put_function(struct pb *to, const struct profile_function *f)
{
	pb_packed(to, f->kind);
	pb_packed(to, f->flags);
	pb_packed(to, f->line);
	pb_packed(to, f->image);
	pb_packed(to, f->address);
	put_string(to, f->name);
	put_string(to, f->module);
	put_string(to, f->file);
}

static u32 number_of(struct writer *w, const struct profile *p, u32 function)
{
	if (function > PROFILE_FULL && !w->number[function]) {
		w->number[function] = ++w->nnumbers;
		put_function(&w->functions, &p->functions[function]);
		pb_packed(&w->defined, p->functions[function].definition);
		w->any_defined |= p->functions[function].definition != 0;
	}
	return w->number[function];
}

/* The functions that nodes need stand before them, so that a file that is cut can show the nodes that it has. */
static void end_nodes(struct writer *w)
{
	if (w->any_defined)
		end_section(w, SECTION_DEFINED, &w->defined);
	w->defined.size = 0;
	w->any_defined = false;
	if (w->functions.size)
		end_section(w, SECTION_FUNCTIONS, &w->functions);
	if (w->more.size)
		end_section(w, SECTION_MORE, &w->more);
	if (w->raw.size)
		end_section(w, SECTION_NODES, &w->raw);
}

static void put_nodes(struct writer *w, const struct profile *p, const struct order *o)
{
	for (u32 i = 0; i < p->nnodes; i++) {
		const struct profile_node *node = &p->nodes[o->nodes[i]];

		pb_packed(&w->raw, i ? o->depth[o->nodes[i - 1]] + 1 - o->depth[o->nodes[i]] : 0);
		pb_packed(&w->raw, number_of(w, p, node->function));
		pb_packed(&w->raw, node->self);
		if (p->meta.more)
			pb_packed(&w->more, node->more);
		if (w->raw.size >= CHUNK || w->functions.size >= CHUNK)
			end_nodes(w);
	}
	end_nodes(w);
}

/* Of each node in preorder its times, in order: differences are small, and pack well. */
static void put_times(
        struct writer *w, const struct profile *p, const u32 *first, const u32 *when, const struct order *o)
{
	u32 before = 0;

	for (u32 i = 0; i < p->nnodes; i++) {
		u32 node = o->nodes[i], last = 0;

		if (first[node] == first[node + 1])
			continue;
		if (!w->raw.size)
			pb_packed(&w->raw, PROFILE_TIME_STEP_NS);
		pb_packed(&w->raw, i - before);
		pb_packed(&w->raw, first[node + 1] - first[node]);
		for (u32 k = first[node]; k < first[node + 1]; last = when[k++])
			pb_packed(&w->raw, when[k] - last);
		before = i;
		if (w->raw.size >= CHUNK) {
			end_section(w, SECTION_TIMES, &w->raw);
			before = 0;
		}
	}
	if (w->raw.size)
		end_section(w, SECTION_TIMES, &w->raw);
}

/* Brings times, which are sorted, together by node. */
static void group_times(const struct profile *p, u32 *first, u32 *when)
{
	for (u32 i = 0; i < p->ntimes; i++)
		first[p->times[i].node + 2]++;
	for (u32 i = 2; i < p->nnodes + 2; i++)
		first[i] += first[i - 1];
	for (u32 i = 0; i < p->ntimes; i++)
		when[first[p->times[i].node + 1]++] = p->times[i].when;
}

static void put_all_times(struct writer *w, const struct profile *p, const struct order *o)
{
	cleanup(free) u32 *first = p->ntimes ? calloc(p->nnodes + 2, sizeof(*first)) : NULL;
	cleanup(free) u32 *when = p->ntimes ? malloc(p->ntimes * sizeof(*when)) : NULL;

	w->failed |= p->ntimes && (!first || !when);
	if (!p->ntimes || w->failed)
		return;
	group_times(p, first, when);
	put_times(w, p, first, when, o);
}

static struct error *write_recording(const struct profile *p, FILE *out)
{
	cleanup(writer) struct writer w = {.out = out, .nnumbers = PROFILE_FULL};
	cleanup(order) struct order *order = NULL;
	const u32 version[2] = {htole32(RECORDING_VERSION), 0};
	struct error *err = order_create(p, &order);

	if (err)
		return err;
	w.number = calloc(p->nfunctions, sizeof(*w.number));
	if (!w.number)
		return &error_no_memory;
	w.number[PROFILE_FULL] = PROFILE_FULL;
	fwrite(RECORDING_MAGIC, 1, RECORDING_HEADER - sizeof(version), out);
	fwrite(version, 1, sizeof(version), out);
	put_meta(&w, p);
	put_images(&w, p);
	put_nodes(&w, p, order);
	put_all_times(&w, p, order);
	end_section(&w, SECTION_END, &w.raw);
	return w.failed ? &error_no_memory : text_finish(out, "recording");
}

const struct format format_recording = {
        .name = "yrt",
        .binary = true,
        .extension = ".yrt",
        .description = "a recording, for yrt render and yrt diff",
        .threads = true,
        .keeps = true,
        .processes = PROCESSES_RAW,
        .write = write_recording,
};
