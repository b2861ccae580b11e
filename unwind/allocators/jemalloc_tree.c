/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "jemalloc.h"
#include "size_class.h"

/* Of one arena. */
struct sums {
	struct amount used[JEMALLOC_CLASSES], freed[JEMALLOC_CLASSES];
	struct amount states[JEMALLOC_STATES]; /* free pages */
};

struct tree {
	struct jemalloc *j;
	struct sums *arenas[JEMALLOC_ARENAS];
	u32 node; /* of all of it */
};

static const struct {
	const char *name;
	enum usage_kind kind;
} states[JEMALLOC_STATES] = {
        [JEMALLOC_DIRTY] = {"free pages, dirty", USAGE_FREE},
        [JEMALLOC_MUZZY] = {"free pages that the kernel may take", USAGE_FREE},
        [JEMALLOC_RETAINED] = {"addresses without memory", USAGE_FREE},
};

/* A slab's memory goes to its blocks in equal parts. */
static void add_slab(struct tree *t, struct sums *s, const struct jemalloc_extent *e, const struct amount *a)
{
	u64 size = jemalloc_class_size(e->class, t->j->lg_quantum), n = e->size / size, used = n - e->nfree;
	struct amount u = {used, used * size, a->resident / n * used, a->swapped / n * used};
	struct amount f = {e->nfree, a->size - u.size, a->resident - u.resident, a->swapped - u.swapped};
	struct usage_facts *facts = &t->j->usage->facts;

	amount_add(&s->used[e->class], &u);
	amount_add(&s->freed[e->class], &f);
	facts->in_use += u.resident;
	facts->free += f.resident;
	facts->held += f.resident;
	facts->held_blocks += 2 * used <= n ? used : 0;
}

static void add(struct tree *t, struct sums *s, const struct jemalloc_extent *e)
{
	struct usage_facts *facts = &t->j->usage->facts;
	struct amount a = {.size = e->size};

	pages_add(t->j->space->pages, e->start, e->start + e->size, &a);
	space_claim(t->j->space, e->start, e->start + e->size);
	if (e->state == JEMALLOC_ACTIVE && e->slab) {
		add_slab(t, s, e, &a);
	} else if (e->state == JEMALLOC_ACTIVE) {
		a.blocks = 1;
		amount_add(&s->used[e->class], &a);
		facts->in_use += a.resident;
	} else {
		amount_add(&s->states[e->state], &a);
		facts->free += a.resident;
		facts->returnable += a.resident;
	}
}

static struct error *add_all(struct tree *t)
{
	for (u32 i = 0; i < t->j->nall; i++) {
		const struct jemalloc_extent *e = &t->j->all[i];
		struct sums **s = &t->arenas[e->arena];

		if (!*s && !(*s = calloc(1, sizeof(**s))))
			return &error_no_memory;
		add(t, *s, e);
	}
	return NULL;
}

static struct error *show_classes(
        struct tree *t, u32 parent, enum usage_kind kind, const char *name, const struct amount of[JEMALLOC_CLASSES])
{
	struct usage *u = t->j->usage;
	struct amount sum = {0};
	struct error *err;
	u32 group, node;
	char size[24];
	u64 bytes;

	for (u32 i = 0; i < JEMALLOC_CLASSES; i++)
		amount_add(&sum, &of[i]);
	if (!sum.size)
		return NULL;
	err = usage_child(u, parent, kind, &group, "%s", name);
	for (u32 i = 0; !err && i < JEMALLOC_CLASSES; i++) {
		if (!of[i].size)
			continue;
		bytes = jemalloc_class_size(i, t->j->lg_quantum);
		size_text(size, sizeof(size), bytes);
		err = usage_child(u, group, kind, &node, "%s", size);
		if (!err)
			usage_add(u, node, &of[i]);
		if (kind == USAGE_IN_USE)
			u->in_use_of[size_class(bytes)] += of[i].size;
	}
	return err;
}

static struct error *show_arena(struct tree *t, u32 number)
{
	const struct sums *s = t->arenas[number];
	struct usage *u = t->j->usage;
	u32 arena, node;
	struct error *err = usage_child(u, t->node, USAGE_GROUP, &arena, "arena %u", number);

	u->facts.arenas++;
	if (!err)
		err = show_classes(t, arena, USAGE_IN_USE, "in use, or kept for threads", s->used);
	if (!err)
		err = show_classes(t, arena, USAGE_FREE, "free in slabs", s->freed);
	for (u32 i = JEMALLOC_DIRTY; !err && i < JEMALLOC_STATES; i++) {
		if (!s->states[i].size)
			continue;
		err = usage_child(u, arena, states[i].kind, &node, "%s", states[i].name);
		if (!err)
			usage_add(u, node, &s->states[i]);
	}
	return err;
}

static void add_metadata(struct jemalloc *j, u64 start, u64 end, struct amount *to)
{
	to->size += end - start;
	pages_add(j->space->pages, start, end, to);
	space_claim(j->space, start, end);
}

/* The tree's nodes, and pages of extents' structures: these lie in memory that is nobody else's, and fill it. */
static struct error *show_metadata(struct tree *t)
{
	struct jemalloc *j = t->j;
	struct amount a = {0};
	struct error *err;
	u64 last = 0;
	u32 node;

	for (u32 i = 0; i < j->nextents; i++) {
		u64 page = j->extents[i] & ~(PAGES_SIZE - 1);

		if (page == last)
			continue;
		add_metadata(j, page, page + PAGES_SIZE, &a);
		last = page;
	}
	for (u32 i = 0; i < j->nleaves; i++)
		add_metadata(j, j->leaves[i] & ~(PAGES_SIZE - 1), j->leaves[i] + 8ull * JEMALLOC_NODE, &a);
	j->usage->facts.metadata += a.resident;
	err = usage_child(j->usage, t->node, USAGE_METADATA, &node, "metadata");
	if (!err)
		usage_add(j->usage, node, &a);
	return err;
}

static struct error *advise(struct usage *u)
{
	const struct usage_facts *f = &u->facts;
	u64 all = f->in_use + f->cached + f->free;
	struct error *err = NULL;
	char text[USAGE_BYTES];

	if (f->returnable > all / 10 && f->returnable > 1 << 20)
		err = usage_say(u, USAGE_ADVICE,
		        "%s are free pages that jemalloc keeps: a lower dirty_decay_ms, or background_thread:true "
		        "where "
		        "threads sleep, gives them back; so does mallctl(\"arena.4096.purge\")",
		        usage_bytes(text, f->returnable));
	if (!err && f->held > all / 10 && f->held > 1 << 20)
		err = usage_say(u, USAGE_ADVICE,
		        "%s are free in slabs that live blocks hold: blocks that live long lie among short-lived ones "
		        "of "
		        "their size",
		        usage_bytes(text, f->held));
	return err;
}

struct error *jemalloc_show(struct jemalloc *j)
{
	struct tree *t = calloc(1, sizeof(*t));
	struct error *err;

	if (!t)
		return &error_no_memory;
	t->j = j;
	err = usage_child(j->usage, 0, USAGE_GROUP, &t->node, "malloc of jemalloc %s", j->layout->versions);
	if (!err)
		err = add_all(t);
	for (u32 i = 0; !err && i < JEMALLOC_ARENAS; i++)
		if (t->arenas[i])
			err = show_arena(t, i);
	if (!err)
		err = show_metadata(t);
	j->usage->facts.torn += j->torn;
	for (u32 i = 0; i < JEMALLOC_ARENAS; i++)
		free(t->arenas[i]);
	free(t);
	return err ? err : advise(j->usage);
}
