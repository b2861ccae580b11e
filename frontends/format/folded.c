/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "format.h"
#include "order.h"
#include "text.h"
#include "unwind/cleanup.h"
#include "words.h"

#define ANNOTATION_MAX 4

/* The path to the current node. */
struct path {
	char *bytes;
	size_t length, capacity;
	size_t *ends; /* of the path to each depth */
	u32 depths;
};

static void cleanup_path(struct path *path)
{
	free(path->bytes);
	free(path->ends);
}

/* What frames are, as those are used to read it who know async-profiler. */
static const char *annotation(const struct profile *p, const struct profile_function *fn)
{
	static const char *const words[KIND_MAX] = {[KIND_KERNEL] = "_[k]",
	        [KIND_SCRIPT] = "_[0]",
	        [KIND_SCRIPT_BASELINE] = "_[1]",
	        [KIND_SCRIPT_JIT] = "_[j]"};

	if (!p->meta.annotate)
		return "";
	return fn->flags & FRAME_INLINED ? "_[i]" : words[words_kind(fn)] ? words[words_kind(fn)] : "";
}

/* Room for a frame at depth, name and what follows it included: no byte of the name becomes more than three. */
static struct error *path_reserve(struct path *path, const char *name, u32 depth)
{
	size_t wanted = path->length + strlen(name) * 3 + TEXT_MARKS_MAX + ANNOTATION_MAX + 1;
	u32 depths = depth + depth / 2 + 64;

	if (wanted > path->capacity) {
		char *bytes = realloc(path->bytes, wanted * 2);

		if (!bytes)
			return &error_no_memory;
		path->bytes = bytes;
		path->capacity = wanted * 2;
	}
	if (depth >= path->depths) {
		size_t *ends = reallocarray(path->ends, depths, sizeof(*ends));

		if (!ends)
			return &error_no_memory;
		path->ends = ends;
		path->depths = depths;
	}
	return NULL;
}

static void path_append(struct path *path, const char *text)
{
	size_t n = strlen(text);

	memcpy(path->bytes + path->length, text, n);
	path->length += n;
}

/* Makes a function the last frame of the path, at depth (from 1). */
static struct error *path_set(struct path *path, u32 depth, const struct profile_function *fn, const char *annotation)
{
	const char *name = text_name(fn);
	struct error *err;

	path->length = depth > 1 ? path->ends[depth - 1] : 0;
	err = path_reserve(path, name, depth);
	if (err)
		return err;
	if (depth > 1)
		path->bytes[path->length++] = ';';
	path_append(path, text_marks(fn->flags));
	while (*name) {
		u32 c = text_next(&name);

		if (c == ';')
			c = ':';
		else if (text_is_control(c))
			c = ' ';
		path->length += text_encode(c, path->bytes + path->length);
	}
	path_append(path, annotation);
	path->ends[depth] = path->length;
	return NULL;
}

/*
 * The counts behind a stack. Of a difference two, before and after, of which those with the smaller total are scaled up
 * to the larger, so that nothing becomes 0.
 */
static void put_counts(const struct profile *p, u32 node, FILE *out)
{
	double scale = p->base_scale;

	if (p->base)
		fprintf(out, " %.0f %.0f\n", (double)p->base[node] * fmax(scale, 1),
		        (double)p->nodes[node].self * fmax(1 / scale, 1));
	else
		fprintf(out, " %" PRIu64 "\n", p->nodes[node].self);
}

static bool counts(const struct profile *p, u32 node)
{
	return p->nodes[node].self || (p->base && p->base[node]);
}

static struct error *write_folded(const struct profile *p, FILE *out)
{
	cleanup(order) struct order *order = NULL;
	cleanup(path) struct path path = {0};
	struct error *err = order_create(p, &order);

	for (u32 i = 1; !err && i < p->nnodes && !ferror(out); i++) {
		u32 node = order->nodes[i];
		const struct profile_function *fn = &p->functions[p->nodes[node].function];

		err = path_set(&path, order->depth[node], fn, annotation(p, fn));
		if (!err && counts(p, node)) {
			fwrite(path.bytes, 1, path.length, out);
			put_counts(p, node, out);
		}
	}
	if (!err && counts(p, 0)) {
		fputs("[no stack]", out);
		put_counts(p, 0, out);
	}
	return err ? err : text_finish(out, "folded stacks");
}

const struct format format_folded = {
        .name = "folded",
        .extension = ".folded",
        .description = "one line for each stack: root;...;leaf count",
        .compares = true,
        .write = write_folded,
};
