/* SPDX-License-Identifier: Apache-2.0 */
#include "objects_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "unwind/cleanup.h"
#include "unwind/grow.h"

static void put_clean(const char *text, FILE *out)
{
	cleanup(free) char *clean = clean_text(text);

	fprintf(out, "%s\n", clean ? clean : "?");
}

static struct error *written(FILE *out)
{
	return ferror(out) ? error_new(ERROR_OUTPUT, "%s", strerror(errno)) : NULL;
}

static double percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static struct error *print_types(const struct heap *h, FILE *out)
{
	cleanup(free) struct heap_total *all = NULL;
	u64 bytes = 0, count = 0;
	u32 n;
	struct error *err = heap_totals(h, &all, &n);

	for (u32 i = 0; !err && i < n; i++) {
		bytes += all[i].bytes;
		count += all[i].count;
	}
	if (err)
		return err;
	fprintf(out, "%14s %6s %12s  type\n", "bytes", "%", "objects");
	for (u32 i = 0; i < n; i++) {
		fprintf(out, "%14lu %6.2f %12lu  ", all[i].bytes, percent(all[i].bytes, bytes), all[i].count);
		put_clean(all[i].type, out);
	}
	fprintf(out, "%14lu %6.2f %12lu  (all)\n", bytes, 100.0, count);
	return written(out);
}

/* A type at both moments. */
struct change {
	const char *type;
	s64 bytes, count;
	u64 bytes_now, count_now;
};

static int by_type(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->type, ((const struct change *)b)->type);
}

static int grown_most(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->bytes != y->bytes)
		return (x->bytes < y->bytes) - (x->bytes > y->bytes);
	return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : strcmp(x->type, y->type);
}

/* Of a type that is in both lists one row. */
static u32 join(struct change *c, u32 n)
{
	u32 kept = 0;

	if (n)
		qsort(c, n, sizeof(*c), by_type);
	for (u32 i = 0; i < n; i++) {
		struct change *last = kept ? &c[kept - 1] : NULL;

		if (!last || strcmp(last->type, c[i].type) != 0) {
			c[kept++] = c[i];
			continue;
		}
		last->bytes += c[i].bytes;
		last->count += c[i].count;
		last->bytes_now += c[i].bytes_now;
		last->count_now += c[i].count_now;
	}
	if (kept)
		qsort(c, kept, sizeof(*c), grown_most);
	return kept;
}

static struct error *print_growth(const struct heap *before, const struct heap *h, FILE *out)
{
	cleanup(free) struct heap_total *was = NULL, *is = NULL;
	cleanup(free) struct change *c = NULL;
	u32 nwas = 0, nis = 0, n = 0;
	struct error *err = heap_totals(before, &was, &nwas);

	if (!err)
		err = heap_totals(h, &is, &nis);
	c = calloc((size_t)nwas + nis + 1, sizeof(*c));
	if (!err && !c)
		err = &error_no_memory;
	if (err)
		return err;
	for (u32 i = 0; i < nwas; i++)
		c[n++] = (struct change){.type = was[i].type, .bytes = -(s64)was[i].bytes, .count = -(s64)was[i].count};
	for (u32 i = 0; i < nis; i++)
		c[n++] = (struct change){is[i].type, (s64)is[i].bytes, (s64)is[i].count, is[i].bytes, is[i].count};
	n = join(c, n);
	fprintf(out, "%14s %12s %14s %12s  type\n", "bytes grown", "objects", "bytes now", "objects");
	for (u32 i = 0; i < n; i++) {
		if (c[i].bytes <= 0 && c[i].count <= 0)
			continue;
		fprintf(out, "%+14ld %+12ld %14lu %12lu  ", c[i].bytes, c[i].count, c[i].bytes_now, c[i].count_now);
		put_clean(c[i].type, out);
	}
	return written(out);
}

struct error *objects_print_types(const struct heap *before, const struct heap *h, FILE *out)
{
	return before ? print_growth(before, h, out) : print_types(h, out);
}

/* --- roots --- */

struct root {
	u64 bytes, count;
	u32 node;
};

static int keeps_most(const void *a, const void *b)
{
	const struct root *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
	                            : (x->node > y->node) - (x->node < y->node);
}

static void put_root(const struct heap *h, u32 node, FILE *out)
{
	if (h->nodes.parents[node])
		put_root(h, h->nodes.parents[node], out);
	cleanup(free) char *clean = clean_text(heap_label_text(h, heap_kind(h, node)->label));

	fprintf(out, "%s%s", h->nodes.parents[node] ? " > " : "", clean ? clean : "?");
}

/* bytes and counts of each root with all that it alone keeps; malloc'd. Pages without roots are not touched. */
static struct error *retained_by_roots(const struct heap *h, u64 **bytes, u64 **counts)
{
	cleanup(free) u32 *under = calloc((size_t)h->nodes.n + 1, sizeof(*under)); /* which root */

	*bytes = calloc((size_t)h->nodes.n + 1, sizeof(**bytes));
	*counts = calloc((size_t)h->nodes.n + 1, sizeof(**counts));
	if (!under || !*bytes || !*counts)
		return &error_no_memory;
	for (u32 i = 1; i < h->nodes.n; i++) {
		under[i] = heap_is_root(h, i) ? i : under[h->dominators[i]];
		if (heap_is_object(h, i)) {
			(*bytes)[under[i]] += heap_size_of(h, i);
			(*counts)[under[i]] += heap_count_of(h, i);
		}
	}
	for (u32 i = h->nodes.n; i-- > 1;)
		if (heap_is_root(h, i)) {
			(*bytes)[h->dominators[i]] += (*bytes)[i];
			(*counts)[h->dominators[i]] += (*counts)[i];
		}
	return NULL;
}

struct error *objects_print_roots(const struct heap *h, FILE *out)
{
	cleanup(free) u64 *bytes = NULL, *counts = NULL;
	cleanup(free) struct root *roots = NULL;
	u32 n = 0;
	struct error *err = retained_by_roots(h, &bytes, &counts);

	for (u32 i = 1; !err && i < h->nodes.n; i++) {
		if (!heap_is_root(h, i) || !bytes[i])
			continue;
		err = grow(&roots, n, sizeof(*roots));
		if (!err)
			roots[n++] = (struct root){bytes[i], counts[i], i};
	}
	if (err)
		return err;
	if (n)
		qsort(roots, n, sizeof(*roots), keeps_most);
	fprintf(out, "%14s %6s %12s  root, %s\n", "bytes", "%", "objects",
	        h->coarse ? "by which they were found first" : "which alone keeps them");
	for (u32 i = 0; i < n; i++) {
		fprintf(out, "%14lu %6.2f %12lu  ", roots[i].bytes, percent(roots[i].bytes, bytes[0]), roots[i].count);
		put_root(h, roots[i].node, out);
		fputc('\n', out);
	}
	return written(out);
}

/* --- the largest --- */

#define WAY_ENDS 8 /* steps that are shown of both ends of a long way */

static void put_step(const struct heap *h, u32 node, FILE *out)
{
	const struct heap_kind *kind = heap_kind(h, node);
	const char *label = heap_label_text(h, kind->label);
	cleanup(free) char *field = clean_text(label), *type = clean_text(heap_type_name(h, kind->type));

	fputs(field ? field : "?", out);
	if (!heap_is_root(h, node))
		fprintf(out, "%s%s%s", kind->label & HEAP_MAYBE ? "?" : "", *label ? ": " : "", type ? type : "?");
}

/* Steps that belong to what refers to them are left out, but for the last. */
static struct error *put_way(const struct heap *h, u32 node, FILE *out)
{
	cleanup(free) u32 *way = NULL;
	struct error *err = NULL;
	u32 n = 0;

	for (u32 i = node; !err && i; i = h->nodes.parents[i]) {
		if (i != node && (heap_kind(h, i)->label & HEAP_PART))
			continue;
		err = grow(&way, n, sizeof(*way));
		if (!err)
			way[n++] = i;
	}
	for (u32 i = n; !err && i-- > 0;) {
		if (n > 2 * WAY_ENDS + 1 && i == n - WAY_ENDS - 1) {
			fprintf(out, " > (%u more)", n - 2 * WAY_ENDS);
			i = WAY_ENDS - 1;
		}
		fputs(i == n - 1 ? "" : " > ", out);
		put_step(h, way[i], out);
	}
	fputc('\n', out);
	return err;
}

struct error *objects_print_largest(const struct heap *h, u32 n, FILE *out)
{
	cleanup(free) u32 *nodes = NULL;
	cleanup(free) u64 *kept = NULL;
	struct error *err = heap_retained(h, &kept);

	if (!err)
		err = heap_largest(h, n, &nodes, &n);
	if (!err)
		fprintf(out, "%14s %14s  %-18s  way from a root\n", "bytes", "keeps alive", "at");
	for (u32 i = 0; !err && i < n; i++) {
		fprintf(out, "%14lu %14lu  0x%-16lx  ", heap_size_of(h, nodes[i]), kept[nodes[i]],
		        heap_addr(h, nodes[i]));
		err = put_way(h, nodes[i], out);
	}
	return err ? err : written(out);
}
