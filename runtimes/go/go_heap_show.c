/* SPDX-License-Identifier: Apache-2.0 */
/* The heap profile as text and as a profile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_draw.h"
#include "go_heap.h"
#include "go_text.h"

/* What is to be shown of one bucket. */
struct amount {
	const struct go_bucket *bucket;
	u64 used, made; /* objects */
};

/* One object in rate bytes is recorded: so many each recorded one of this size stands for (runtime/pprof/protomem.go).
 */
static double scale_of(u64 size, u64 rate)
{
	return rate <= 1 || !size ? 1 : 1 / (1 - exp(-(double)size / (double)rate));
}

/* What each bucket had been given before. */
static struct error *index_before(const struct go_heap *before, struct table *ret)
{
	struct error *err = NULL;

	for (u32 i = 0; !err && before && i < before->n; i++)
		err = table_put(ret, before->buckets[i].addr, before->buckets[i].made);
	return err;
}

/* Owned by the caller, as long as h; *n: without those that have nothing. */
static struct error *amounts_of(const struct go_heap *before, const struct go_heap *h, struct amount **ret, u32 *n)
{
	struct table had = {0};
	struct error *err = index_before(before, &had);

	*n = 0;
	*ret = calloc((size_t)h->n + 1, sizeof(**ret));
	if (!err && !*ret)
		err = &error_no_memory;
	for (u32 i = 0; !err && i < h->n; i++) {
		const struct go_bucket *b = &h->buckets[i];
		const u64 *old = before ? table_get(&had, b->addr) : NULL;
		struct amount a = {
		        .bucket = b, .used = b->allocs > b->frees ? b->allocs - b->frees : 0, .made = b->allocs};

		if (before)
			a.used = a.made = b->made - (old && *old <= b->made ? *old : 0);
		if (a.made || a.used)
			(*ret)[(*n)++] = a;
	}
	table_free(&had);
	return err;
}

static int larger_first(const void *a, const void *b)
{
	const struct amount *x = a, *y = b;
	u64 p = x->used * x->bucket->size, q = y->used * y->bucket->size;

	if (p == q) {
		p = x->made * x->bucket->size;
		q = y->made * y->bucket->size;
	}
	return p != q ? (p < q) - (p > q) : (x->bucket->addr > y->bucket->addr) - (x->bucket->addr < y->bucket->addr);
}

static void print_estimate(const struct go_heap *h, const struct amount *a, bool growth, FILE *out)
{
	double scale = scale_of(a->bucket->size, h->rate), mib = scale * (double)a->bucket->size / (1 << 20);

	if (!growth)
		fprintf(out, "# estimated: %.2f MiB in use, ", mib * (double)a->used);
	fprintf(out, "%s%.2f MiB allocated, objects of %lu bytes\n", growth ? "# estimated: " : "",
	        mib * (double)a->made, a->bucket->size);
}

struct error *go_heap_print(const void *before, void *after, u32 flags, FILE *out)
{
	const struct go_heap *h = after;
	cleanup(free) struct amount *amounts = NULL;
	u64 used[2] = {0}, made[2] = {0};
	u32 n;
	struct error *err;

	if (h->spans)
		return go_spans_print(before ? ((const struct go_heap *)before)->spans : NULL, h->spans, out);
	err = amounts_of(before, h, &amounts, &n);
	if (err)
		return err;
	qsort(amounts, n, sizeof(*amounts), larger_first);
	for (u32 i = 0; i < n; i++) {
		used[0] += amounts[i].used;
		used[1] += amounts[i].used * amounts[i].bucket->size;
		made[0] += amounts[i].made;
		made[1] += amounts[i].made * amounts[i].bucket->size;
	}
	fprintf(out, "heap profile: %lu: %lu [%lu: %lu] @ heap/%lu\n", used[0], used[1], made[0],
	        made[1] + (used[1] == made[1]), 2 * h->rate);
	for (u32 i = 0; i < n; i++) {
		const struct amount *a = &amounts[i];
		const struct go_chain *c = &h->stacks.chains[a->bucket->chain];

		fprintf(out, "%lu: %lu [%lu: %lu] @", a->used, a->used * a->bucket->size, a->made,
		        a->made * a->bucket->size);
		go_print_pcs(&h->places, &h->stacks, c, out);
		fputc('\n', out);
		print_estimate(h, a, before, out);
		go_print_lines(&h->places, &h->stacks, c, out);
		fputc('\n', out);
	}
	return NULL;
}

/* Without the runtime's own functions at its leaf, unless there are no others. */
static struct go_chain without_runtime(const struct go_heap *h, const struct go_chain *c)
{
	struct go_chain ret = *c;
	u32 n;

	while (ret.n) {
		const struct go_place *at = go_places_at(&h->places, h->stacks.pcs[ret.first], &n);

		if (!at || !go_is_runtime(go_place_name(&h->places, at)))
			return ret;
		ret.first++;
		ret.n--;
	}
	return *c;
}

/* Numbers of the target may be any. */
static u64 bounded(double x)
{
	return (u64)fmin(x, 0x1p62);
}

struct error *go_heap_draw(const void *before, void *after, u32 flags, struct profile *ret)
{
	const struct go_heap *h = after;
	cleanup(free) struct amount *amounts = NULL;
	struct error *err;
	u32 n;

	if (h->spans)
		return go_spans_draw(before ? ((const struct go_heap *)before)->spans : NULL, h->spans, ret);
	err = amounts_of(before, h, &amounts, &n);
	for (u32 i = 0; !err && i < n; i++) {
		const struct amount *a = &amounts[i];
		double scale = scale_of(a->bucket->size, h->rate),
		       objects = scale * (double)(flags & GO_HEAP_ALLOCATED ? a->made : a->used);
		struct go_chain c = without_runtime(h, &h->stacks.chains[a->bucket->chain]);
		u32 node = 0;

		if (objects <= 0)
			continue;
		err = go_draw_chain(&h->places, &h->stacks, &c, flags & GO_HEAP_LINES, ret, &node);
		if (err)
			break;
		profile_add(ret, node, bounded(objects * (double)a->bucket->size));
		profile_add_more(ret, node, bounded(objects));
	}
	return err;
}
