/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "recording.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

#define KINDS_WORDS    256 /* kinds that a recording may know */
#define STRING_LONGEST (4u << 10)
#define FUNCTIONS_MOST (1u << 20)
#define TIMES_MOST     (1u << 26)
#define TIMELESS       UINT32_MAX

struct aside { /* a copy of a section with numbers of what comes in the next one */
	u8 *copy;
	const u8 *at, *end;
};

struct reader {
	FILE *in;
	const char *name;
	struct filter *filter;
	u8 *stored, *raw;
	size_t stored_size, raw_size;
	const u8 *at, *end; /* of the section being read */
	bool broken;        /* something in it does not hold */
	bool has_meta;
	u8 kinds[KINDS_WORDS];
	u32 *images, nimages;       /* theirs to ours */
	u32 *functions, nfunctions; /* theirs to ours */
	u32 nnodes, depth;
	struct aside more;    /* for the nodes that follow */
	struct aside defined; /* for the functions that follow */
	u32 *nodes, nknown;   /* theirs to ours; of those that count nothing here TIMELESS */
	u64 count, wanted;    /* of samples: read, and as many as meta says */
};

static void cleanup_reader(struct reader *r)
{
	free(r->stored);
	free(r->raw);
	free(r->images);
	free(r->functions);
	free(r->more.copy);
	free(r->defined.copy);
	free(r->nodes);
}

static struct error *corrupt(const struct reader *r, const char *what)
{
	return error_hint(error_new(ERROR_INPUT, "%s is corrupt: %s", r->name, what),
	        "try a copy of the original; nothing of this file is shown");
}

static u64 take_number(struct reader *r)
{
	u64 value = 0;

	for (u32 shift = 0; shift < 64; shift += 7) {
		if (r->at == r->end)
			break;
		u8 byte = *r->at++;

		value |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	r->broken = true;
	return 0;
}

/* The next one's; or_else: it was not recorded. */
static u64 take_aside(struct reader *r, struct aside *a, u64 limit, u64 or_else)
{
	const u8 *at = r->at, *end = r->end;
	u64 value;

	if (a->at == a->end)
		return or_else;
	r->at = a->at;
	r->end = a->end;
	value = take_number(r);
	a->at = r->at;
	r->at = at;
	r->end = end;
	r->broken |= value > limit;
	return value;
}

static u32 take_below(struct reader *r, u64 limit)
{
	u64 value = take_number(r);

	if (value < limit)
		return (u32)value;
	r->broken = true;
	return 0;
}

static void take_string(struct reader *r, char ret[STRING_LONGEST + 1])
{
	u32 size = take_below(r, STRING_LONGEST + 1);

	if (size > (size_t)(r->end - r->at)) {
		r->broken = true;
		size = 0;
	}
	memcpy(ret, r->at, size);
	ret[size] = 0;
	r->at += size;
}

static struct error *append(u32 **array, u32 *n, u32 value)
{
	struct error *err = grow(array, *n, sizeof(**array));

	if (!err)
		(*array)[(*n)++] = value;
	return err;
}

static struct error *read_images(struct reader *r)
{
	char path[STRING_LONGEST + 1], build_id[STRING_LONGEST + 1];
	struct error *err = NULL;
	u32 image;

	while (!err && !r->broken && r->at < r->end) {
		take_string(r, path);
		take_string(r, build_id);
		r->broken |= r->nimages > PROFILE_MAX_IMAGES;
		if (!r->broken)
			err = profile_image(r->filter->profile, path, build_id, &image);
		if (!r->broken && !err)
			err = append(&r->images, &r->nimages, image);
	}
	return err;
}

static struct error *read_functions(struct reader *r)
{
	char name[STRING_LONGEST + 1], module[STRING_LONGEST + 1], file[STRING_LONGEST + 1];
	struct profile_function f = {.name = name, .module = module, .file = file};
	struct error *err = NULL;
	u32 function;

	while (!err && !r->broken && r->at < r->end) {
		f.kind = r->kinds[take_below(r, KINDS_WORDS)];
		f.flags = take_below(r, 1ull << 32);
		f.line = take_below(r, 1ull << 32);
		f.definition = (u32)take_aside(r, &r->defined, UINT32_MAX, 0);
		f.image = take_below(r, r->nimages);
		f.address = take_number(r);
		take_string(r, name);
		take_string(r, module);
		take_string(r, file);
		r->broken |= r->nfunctions >= FUNCTIONS_MOST;
		if (r->broken)
			break;
		f.image = r->images[f.image];
		err = filter_function(r->filter, r->nfunctions + 1, &f, &function);
		if (!err)
			err = append(&r->functions, &r->nfunctions, function);
	}
	r->defined.at = r->defined.end;
	return err;
}

static struct error *read_nodes(struct reader *r)
{
	struct error *err = NULL;

	while (!err && !r->broken && r->at < r->end) {
		u32 up = take_below(r, (u64)r->depth + 1), function = take_below(r, r->nfunctions);
		u64 count = take_number(r), more = take_aside(r, &r->more, RECORDING_COUNT, 0);

		r->broken |= r->nnodes > PROFILE_MAX_NODES + 1 || count > RECORDING_COUNT - r->count ||
		             !r->nnodes != !function || r->depth - up >= FILTER_DEEPEST - 1;
		if (r->broken)
			break;
		r->count += count;
		r->depth = r->nnodes ? r->depth - up + 1 : 0;
		if (r->nnodes++)
			err = filter_node(r->filter, r->depth, r->functions[function], count);
		else
			profile_add(r->filter->profile, 0, count);
		if (!err)
			err = filter_more(r->filter, r->depth, more);
		if (!err)
			err = append(&r->nodes, &r->nknown,
			        !r->depth ? 0
			        : count   ? filter_place(r->filter, r->depth)
			                  : TIMELESS);
	}
	r->more.at = r->more.end;
	return err;
}

static struct error *read_times_of(struct reader *r, u32 node, u32 n, double scale)
{
	struct error *err = NULL;
	u64 when = 0;

	for (u32 i = 0; i < n && !err && !r->broken; i++) {
		when += take_below(r, 1ull << 32);
		r->broken |= when * scale >= UINT32_MAX || r->filter->profile->ntimes >= TIMES_MOST;
		if (!r->broken && node != TIMELESS)
			err = profile_add_time(r->filter->profile, node, (u32)(when * scale));
	}
	return err;
}

static struct error *read_times(struct reader *r)
{
	double scale = (double)take_below(r, 1ull << 32) / PROFILE_TIME_STEP_NS;
	struct error *err = NULL;
	u64 node = 0;

	r->broken |= scale == 0;
	while (!err && !r->broken && r->at < r->end) {
		node += take_below(r, r->nknown);
		r->broken |= node >= r->nknown;
		if (!r->broken)
			err = read_times_of(r, r->nodes[node], take_below(r, TIMES_MOST), scale);
	}
	return err;
}

static struct error *keep_aside(struct reader *r, struct aside *a)
{
	size_t size = r->end - r->at;

	free(a->copy);
	*a = (struct aside){.copy = malloc(size + 1)};
	if (!a->copy)
		return &error_no_memory;
	memcpy(a->copy, r->at, size);
	a->at = a->copy;
	a->end = a->copy + size;
	return NULL;
}

static struct error *read_more(struct reader *r)
{
	return keep_aside(r, &r->more);
}

static struct error *read_defined(struct reader *r)
{
	return keep_aside(r, &r->defined);
}

static u64 member_number(const json_t *o, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(o, name));

	return value > 0 ? (u64)value : 0;
}

static void read_kinds(struct reader *r, const json_t *list)
{
	for (u32 i = 0; i < KINDS_WORDS; i++) {
		const char *word = json_string_value(json_array_get(list, i));

		r->kinds[i] = KIND_UNKNOWN;
		for (u32 k = 0; word && k < KIND_MAX; k++)
			if (!strcmp(word, text_kind(k)))
				r->kinds[i] = (u8)k;
	}
}

static struct error *read_labels(struct profile *p, const json_t *o)
{
	char *text = NULL;
	size_t size;
	FILE *out = json_is_object(o) ? open_memstream(&text, &size) : NULL;
	struct error *err;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)o, key, value) if (out && json_is_string(value) && !strpbrk(key, "=\n") &&
	                                                 !strchr(json_string_value(value), '\n'))
	        fprintf(out, "%s%s=%s", ftell(out) ? "\n" : "", key, json_string_value(value));
	if (out)
		fclose(out);
	err = profile_string(p, text && *text ? text : NULL, &p->meta.labels);
	free(text);
	return err;
}

static struct error *read_texts(struct profile *p, const json_t *o)
{
	struct profile_meta *m = &p->meta;
	const struct {
		const char *name, **to;
	} texts[] = {{"title", &m->title}, {"heading", &m->heading}, {"command", &m->command}, {"target", &m->target},
	        {"unit", &m->unit}, {"more", &m->more}, {"loss", &m->loss}};
	char *stats = json_dumps(json_object_get(o, "stats"), JSON_COMPACT);
	struct error *err = profile_string(p, stats, &m->stats);

	free(stats);
	if (!err)
		err = read_labels(p, json_object_get(o, "labels"));
	for (size_t i = 0; !err && i < sizeof(texts) / sizeof(*texts); i++)
		err = profile_string(p, json_string_value(json_object_get(o, texts[i].name)), texts[i].to);
	return err;
}

static struct error *read_meta(struct reader *r)
{
	json_t *o = json_loadb((const char *)r->at, r->end - r->at, 0, NULL);
	struct profile_meta *m = &r->filter->profile->meta;
	struct error *err = NULL;

	r->broken |= !json_is_object(o) || r->has_meta;
	if (!r->broken) {
		err = read_texts(r->filter->profile, o);
		m->start_unix_ns = member_number(o, "start_unix_ns");
		m->duration_ns = member_number(o, "duration_ns");
		m->frequency = json_number_value(json_object_get(o, "frequency"));
		r->wanted = member_number(o, "count");
		read_kinds(r, json_object_get(o, "kinds"));
		r->has_meta = true;
	}
	json_decref(o);
	return err;
}

/* Makes *buffer, which is not NULL then, hold size bytes. */
static struct error *reserve(u8 **buffer, size_t *have, size_t size)
{
	u8 *bigger;

	if (size < *have)
		return NULL;
	bigger = realloc(*buffer, size + 1);
	if (!bigger)
		return &error_no_memory;
	*buffer = bigger;
	*have = size + 1;
	return NULL;
}

static bool read_header(struct reader *r, struct section_header *ret, struct error **err)
{
	struct section_header h;

	if (fread(&h, 1, sizeof(h), r->in) != sizeof(h))
		return false;
	*ret = (struct section_header){le32toh(h.type), le32toh(h.encoding), le64toh(h.stored), le64toh(h.raw),
	        le64toh(h.content), le64toh(h.header)};
	if (XXH3_64bits(&h, offsetof(struct section_header, header)) != ret->header)
		*err = corrupt(r, "the header of a section does not hold");
	else if (ret->stored > RECORDING_SECTION || ret->raw > RECORDING_SECTION)
		*err = corrupt(r, "a section has an impossible size");
	return !*err;
}

/* Reads the next section, as it is stored. False: the file ends in it, or the error says more. */
static bool read_section(struct reader *r, struct section_header *ret, struct error **err)
{
	struct section_header s;

	if (!read_header(r, &s, err) || (*err = reserve(&r->stored, &r->stored_size, s.stored)) ||
	        fread(r->stored, 1, s.stored, r->in) != s.stored)
		return false;
	if (XXH3_64bits(r->stored, s.stored) != s.content)
		*err = corrupt(r, "the checksum of a section does not hold");
	*ret = s;
	return !*err;
}

/* Points at and end to what a section holds. */
static struct error *unpack(struct reader *r, const struct section_header *s)
{
	struct error *err;

	r->at = r->stored;
	r->end = r->stored + s->stored;
	if (s->encoding == ENCODING_RAW)
		return NULL;
	if (s->encoding != ENCODING_ZSTD)
		return corrupt(r, "a section is packed in an unknown way");
	err = reserve(&r->raw, &r->raw_size, s->raw);
	if (err)
		return err;
	if (ZSTD_decompress(r->raw, s->raw, r->stored, s->stored) != s->raw)
		return corrupt(r, "a section cannot be unpacked");
	r->at = r->raw;
	r->end = r->raw + s->raw;
	return NULL;
}

static struct error *read_content(struct reader *r, const struct section_header *s)
{
	static struct error *(*const readers[])(struct reader * r) = {[SECTION_META] = read_meta,
	        [SECTION_IMAGES] = read_images,
	        [SECTION_FUNCTIONS] = read_functions,
	        [SECTION_NODES] = read_nodes,
	        [SECTION_MORE] = read_more,
	        [SECTION_TIMES] = read_times,
	        [SECTION_DEFINED] = read_defined};
	struct error *err;

	/* of the end there is nothing to read, of what is newer nothing is known */
	if (s->type >= sizeof(readers) / sizeof(*readers) || !readers[s->type])
		return NULL;
	if (!r->has_meta && s->type != SECTION_META)
		return corrupt(r, "it does not begin with how it was made");
	err = unpack(r, s);
	if (!err)
		err = readers[s->type](r);
	return err || !r->broken ? err : corrupt(r, "a section holds what cannot be");
}

/* A node for the samples that the file announces and does not have, and a word in the loss line. */
static struct error *add_missing(struct reader *r, struct recording *ret)
{
	static const struct profile_function fn = {.name = "[recording cut short]", .kind = KIND_UNKNOWN};
	struct profile *p = r->filter->profile;
	cleanup(free) char *loss = NULL;
	u32 function, node;
	struct error *err;

	ret->cut = true;
	ret->missing = r->wanted > r->count && r->wanted <= RECORDING_COUNT ? r->wanted - r->count : 0;
	err = profile_function(p, 0, &fn, false, &function);
	if (!err)
		err = profile_child(p, 0, function, &node);
	if (err)
		return err;
	profile_add(p, node, ret->missing);
	if (asprintf(&loss, "%s; the recording is cut short: %" PRIu64 " of %" PRIu64 " %s are missing",
	            p->meta.loss ? p->meta.loss : "", ret->missing, r->wanted, text_unit(&p->meta)) < 0) {
		loss = NULL;
		return &error_no_memory;
	}
	return profile_string(p, loss, &p->meta.loss);
}

struct error *recording_read(FILE *in, const char *name, struct filter *s, struct recording *ret)
{
	cleanup(reader) struct reader r = {.in = in, .name = name, .filter = s};
	struct section_header section = {0};
	struct error *err = append(&r.images, &r.nimages, 0);

	*ret = (struct recording){0};
	for (u32 i = 0; !err && i <= PROFILE_FULL; i++)
		err = append(&r.functions, &r.nfunctions, i);
	while (!err && section.type != SECTION_END && read_section(&r, &section, &err))
		err = read_content(&r, &section);
	if (!err && ferror(in))
		err = error_new(ERROR_INPUT, "cannot read %s", name);
	if (!err && !r.has_meta)
		err = error_new(ERROR_INPUT, "%s is truncated: it has no complete part", name);
	ret->present = r.count;
	if (!err && section.type != SECTION_END)
		err = add_missing(&r, ret);
	return err;
}

struct error *recording_check(const u8 *header, const char *name, bool *ret)
{
	u32 version;

	*ret = !memcmp(header, RECORDING_MAGIC, sizeof(RECORDING_MAGIC) - 1);
	memcpy(&version, header + sizeof(RECORDING_MAGIC) - 1, sizeof(version));
	version = le32toh(version);
	if (*ret && version == RECORDING_VERSION && header[12] | header[13] | header[14] | header[15])
		return error_new(ERROR_INPUT, "%s is corrupt: its header does not hold", name);
	if (!*ret || version == RECORDING_VERSION)
		return NULL;
	return error_hint(error_new(ERROR_INPUT, "%s is a recording of version %u; this yrt reads version %u", name,
	                          version, RECORDING_VERSION),
	        "use the yrt that wrote it, or a newer one");
}
