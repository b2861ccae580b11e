/* SPDX-License-Identifier: Apache-2.0 */
#include "tlab_survey.h"

#include <stdlib.h>
#include <xxhash.h>

#include "grow.h"
#include "unwind/runtime_alloc.h"
#include "unwind/table.h"

#define NOTHING     UINT32_MAX
#define KINDS_LEAST 64 /* counts of a kind in a buffer: fewer say less than the stacks do */

enum part_how { BY_REFILL, OUTSIDE, COUNTED };

struct kind {
	double seen[COUNTED]; /* bytes of its stacks */
	u32 first[COUNTED];   /* of them */
	u32 wider;            /* the same class, with sizes within a factor of two; NOTHING: it is such a one */
};

struct part {           /* what is known of a kind: of a stack, or of the survey */
	u32 kind, next; /* next: stack of the kind */
	enum part_how how;
	struct survey_result sum;
};

struct survey {
	struct kind *kinds;
	struct part *parts;
	u32 nkinds, nparts;
	u64 counts;
	struct table by_kind, by_part;
	struct table counted; /* hashes of allocators that a buffer of was counted */
};

struct error *survey_create(struct survey **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : &error_no_memory;
}

void survey_destroy(struct survey *c)
{
	if (!c)
		return;
	free(c->kinds);
	free(c->parts);
	table_free(&c->by_kind);
	table_free(&c->by_part);
	table_free(&c->counted);
	free(c);
}

static struct error *find_kind(struct survey *c, u64 key, u32 wider, u32 *ret)
{
	u64 *known = table_get(&c->by_kind, key);
	struct error *err;

	if (known) {
		*ret = (u32)*known;
		return NULL;
	}
	err = grow((void **)&c->kinds, c->nkinds, sizeof(*c->kinds));
	if (!err)
		err = table_put(&c->by_kind, key, c->nkinds);
	if (err)
		return err;
	c->kinds[c->nkinds] = (struct kind){.first = {NOTHING, NOTHING}, .wider = wider};
	*ret = c->nkinds++;
	return NULL;
}

struct error *survey_kind(struct survey *c, u32 process, const struct frame *class, u64 size, u64 apart, u32 *ret)
{
	u64 words[] = {process, class->where, class->detail, apart, alloc_size_class(size) / 4, NOTHING};
	struct error *err = find_kind(c, XXH3_64bits(words, sizeof(words)) | 1, NOTHING, ret);

	words[5] = alloc_size_class(size);
	return err ? err : find_kind(c, XXH3_64bits(words, sizeof(words)) | 1, *ret, ret);
}

static struct error *find_part(struct survey *c, const struct part *wanted, struct part **ret)
{
	u64 words[] = {wanted->kind, wanted->how, wanted->sum.allocator, wanted->sum.node};
	u64 key = XXH3_64bits(words, sizeof(words)) | 1, *known = table_get(&c->by_part, key);
	struct error *err;

	if (known) {
		*ret = &c->parts[*known];
		return NULL;
	}
	err = grow((void **)&c->parts, c->nparts, sizeof(*c->parts));
	if (!err)
		err = table_put(&c->by_part, key, c->nparts);
	if (err)
		return err;
	c->parts[c->nparts] = *wanted;
	if (wanted->how != COUNTED) {
		c->parts[c->nparts].next = c->kinds[wanted->kind].first[wanted->how];
		c->kinds[wanted->kind].first[wanted->how] = c->nparts;
	}
	*ret = &c->parts[c->nparts++];
	return NULL;
}

static struct error *add_to(struct survey *c, const struct part *wanted, double bytes, double objects)
{
	struct part *part = NULL;
	struct error *err = find_part(c, wanted, &part);

	if (err)
		return err;
	part->sum.bytes += bytes;
	part->sum.objects += objects;
	return NULL;
}

static struct error *add_stack(struct survey *c, const struct part *wanted, double bytes, double objects)
{
	c->kinds[wanted->kind].seen[wanted->how] += bytes;
	return add_to(c, wanted, bytes, objects);
}

struct error *survey_stack(
        struct survey *c, u32 kind, bool outside, u32 allocator, u32 node, double bytes, double objects)
{
	struct part wanted = {.kind = kind,
	        .next = NOTHING,
	        .how = outside ? OUTSIDE : BY_REFILL,
	        .sum = {.allocator = allocator, .node = node}};
	struct error *err = add_stack(c, &wanted, bytes, objects);

	wanted.kind = c->kinds[kind].wider;
	return err ? err : add_stack(c, &wanted, bytes, objects);
}

static u64 key_of(u32 allocator)
{
	return XXH3_64bits(&allocator, sizeof(allocator)) | 1;
}

struct error *survey_count(struct survey *c, u32 kind, u32 allocator, u32 node, double bytes, double objects)
{
	struct part wanted = {.kind = kind,
	        .next = NOTHING,
	        .how = COUNTED,
	        .sum = {.allocator = allocator, .node = node, .unseen = true}};

	struct error *err = table_put(&c->counted, key_of(allocator), 1);

	if (err)
		return err;
	c->counts++;
	return add_to(c, &wanted, bytes, objects);
}

bool survey_usable(const struct survey *c)
{
	return c->counts >= KINDS_LEAST;
}

/* The stacks that stand for a kind: those that needed a buffer, else those outside, else of the wider kind. False:
 * there are none. */
static bool find_stacks(const struct survey *c, const struct kind *kind, u32 *first, double *seen)
{
	for (; kind; kind = kind->wider == NOTHING ? NULL : &c->kinds[kind->wider])
		for (u32 how = BY_REFILL; how < COUNTED; how++) {
			*first = kind->first[how];
			*seen = kind->seen[how];
			if (*first != NOTHING && *seen > 0)
				return true;
		}
	return false;
}

/* What was counted of a kind, over its stacks. */
static struct error *spread(const struct survey *c, const struct part *counted,
        struct error *(*add)(void *ctx, const struct survey_result *r), void *ctx)
{
	struct error *err = NULL;
	double seen = 0;
	u32 first = NOTHING;

	if (!find_stacks(c, &c->kinds[counted->kind], &first, &seen))
		return add(ctx, &counted->sum);
	for (u32 i = first; i != NOTHING && !err; i = c->parts[i].next) {
		double share = c->parts[i].sum.bytes / seen;
		struct survey_result r = {.allocator = counted->sum.allocator,
		        .node = c->parts[i].sum.node,
		        .bytes = counted->sum.bytes * share,
		        .objects = counted->sum.objects * share};

		err = add(ctx, &r);
	}
	return err;
}

struct error *survey_spread(struct survey *c, struct error *(*add)(void *ctx, const struct survey_result *r), void *ctx)
{
	bool usable = survey_usable(c);
	struct error *err = NULL;

	for (u32 i = 0; i < c->nparts && !err; i++) {
		const struct part *p = &c->parts[i];

		if (p->how == COUNTED && usable)
			err = spread(c, p, add, ctx);
		else if (p->how == BY_REFILL && c->kinds[p->kind].wider != NOTHING &&
		         !(usable && table_get(&c->counted, key_of(p->sum.allocator))))
			err = add(ctx, &p->sum);
	}
	return err;
}
