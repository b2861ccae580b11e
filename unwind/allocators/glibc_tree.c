/* SPDX-License-Identifier: Apache-2.0 */
#include "glibc.h"

static const struct {
	const char *name;
	enum usage_kind kind;
} states[GLIBC_STATES] = {
        [GLIBC_IN_USE] = {"in use", USAGE_IN_USE},
        [GLIBC_CACHED] = {"free in thread caches", USAGE_CACHED},
        [GLIBC_FAST] = {"free in fast bins", USAGE_FREE},
        [GLIBC_UNSORTED] = {"free, unsorted", USAGE_FREE},
        [GLIBC_SMALL] = {"free in small bins", USAGE_FREE},
        [GLIBC_LARGE] = {"free in large bins", USAGE_FREE},
        [GLIBC_TOP] = {"top", USAGE_TOP},
        [GLIBC_METADATA] = {"metadata", USAGE_METADATA},
        [GLIBC_UNREAD] = {"not read: corrupt or unreadable", USAGE_UNREAD},
};

static struct error *show_classes(struct glibc *g, u32 parent, enum usage_kind kind, const struct amount *of)
{
	char name[SIZE_CLASS_NAME];
	struct error *err = NULL;
	u32 node;

	for (u32 i = 0; !err && i < GLIBC_CLASSES; i++) {
		if (!of[i].blocks)
			continue;
		err = usage_child(g->usage, parent, kind, &node, "%s", size_class_name(i, name));
		if (!err)
			usage_add(g->usage, node, &of[i]);
		if (kind == USAGE_IN_USE)
			g->usage->in_use_of[i] += of[i].size;
	}
	return err;
}

static void add_facts(struct glibc *g, enum usage_kind kind, const struct amount *a)
{
	struct usage_facts *f = &g->usage->facts;

	f->in_use += kind == USAGE_IN_USE ? a->resident : 0;
	f->cached += kind == USAGE_CACHED ? a->resident : 0;
	f->free += kind == USAGE_FREE || kind == USAGE_TOP ? a->resident : 0;
	f->metadata += kind == USAGE_METADATA ? a->resident : 0;
}

static struct error *show_state(struct glibc *g, u32 parent, u32 state, const struct glibc_classes *c)
{
	struct amount sum = {0};
	struct error *err;
	u32 node;

	for (u32 i = 0; i < GLIBC_CLASSES; i++)
		amount_add(&sum, &c->of[i]);
	if (!sum.blocks)
		return NULL;
	add_facts(g, states[state].kind, &sum);
	err = usage_child(g->usage, parent, states[state].kind, &node, "%s", states[state].name);
	if (err)
		return err;
	if (state == GLIBC_TOP || state == GLIBC_METADATA || state == GLIBC_UNREAD) {
		sum.blocks = 0;
		usage_add(g->usage, node, &sum);
		return NULL;
	}
	return show_classes(g, node, states[state].kind, c->of);
}

static struct error *show_arena(struct glibc *g, u32 number)
{
	const struct glibc_arena *a = &g->arenas[number];
	struct error *err;
	u32 node;
	bool any = false;

	for (u32 i = 0; i < GLIBC_STATES; i++)
		any |= a->states[i] != NULL;
	if (!any)
		return NULL;
	g->usage->facts.arenas++;
	err = number ? usage_child(g->usage, g->node, USAGE_GROUP, &node, "arena %u", number)
	             : usage_child(g->usage, g->node, USAGE_GROUP, &node, "main arena");
	for (u32 i = 0; !err && i < GLIBC_STATES; i++)
		if (a->states[i])
			err = show_state(g, node, i, a->states[i]);
	return err;
}

static struct error *show_mapped(struct glibc *g)
{
	struct amount sum = {0};
	struct error *err;
	u32 node;

	for (u32 i = 0; i < GLIBC_CLASSES; i++)
		amount_add(&sum, &g->mapped[i]);
	if (!sum.blocks)
		return NULL;
	add_facts(g, USAGE_IN_USE, &sum);
	err = usage_child(g->usage, g->node, USAGE_IN_USE, &node, "blocks with a mapping of their own");
	return err ? err : show_classes(g, node, USAGE_IN_USE, g->mapped);
}

static struct error *advise(struct glibc *g)
{
	const struct usage_facts *f = &g->usage->facts;
	char a[USAGE_BYTES], b[USAGE_BYTES];
	u64 all = f->in_use + f->cached + f->free;
	struct error *err = NULL;

	if (f->returnable > all / 10 && f->returnable > 1 << 20)
		err = usage_say(g->usage, USAGE_ADVICE,
		        "malloc_trim(0), called by the program, would give back %s: whole free pages",
		        usage_bytes(a, f->returnable));
	if (!err && f->top > all / 10 && f->top > 1 << 20)
		err = usage_say(g->usage, USAGE_ADVICE,
		        "%s are free at the ends of arenas, which malloc_trim() does not give back; a lower "
		        "M_TRIM_THRESHOLD keeps less of it",
		        usage_bytes(a, f->top));
	if (!err && f->held > all / 10 && f->held > 1 << 20)
		err = usage_say(g->usage, USAGE_ADVICE,
		        "%s are free in pages that %llu live blocks share: no call gives them back. Blocks that live "
		        "long "
		        "lie among short-lived ones",
		        usage_bytes(a, f->held), (unsigned long long)f->held_blocks);
	if (!err && f->arenas > 8 && f->free + f->cached > all / 4)
		err = usage_say(g->usage, USAGE_ADVICE,
		        "%u arenas hold %s of free memory, each for itself: MALLOC_ARENA_MAX=2 in the environment, or "
		        "mallopt(M_ARENA_MAX, 2), lets threads share them",
		        f->arenas, usage_bytes(b, f->free + f->cached));
	return err;
}

struct error *glibc_show(struct glibc *g)
{
	struct error *err = usage_child(
	        g->usage, 0, USAGE_GROUP, &g->node, "malloc of glibc%s%s", g->version[0] ? " " : "", g->version);

	for (u32 i = 0; !err && i < g->narenas; i++)
		err = show_arena(g, i);
	if (!err)
		err = show_mapped(g);
	g->usage->facts.torn += g->torn;
	return err ? err : advise(g);
}
