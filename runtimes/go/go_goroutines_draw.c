/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines as a profile: for each stack how many goroutines have it, and outside of it what they wait for. */
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "go_draw.h"
#include "go_goroutines.h"

static struct error *put_word(struct profile *p, u32 *node, const char *format, const char *what)
{
	char name[NAME_MAX_BYTES];
	struct profile_function fn = {.name = name, .module = "go", .kind = KIND_VM};
	struct error *err;
	u32 function;

	snprintf(name, sizeof(name), format, what);
	err = profile_function(p, 0, &fn, false, &function);
	return err ? err : profile_child(p, *node, function, node);
}

static struct error *put_creator(
        const struct go_goroutine_snapshot *s, const struct go_goroutine *g, struct profile *p, u32 *node)
{
	u32 n;
	const struct go_place *at = g->creator ? go_places_at(&s->places, g->creator, &n) : NULL;

	return at ? put_word(p, node, "created by %s", go_place_name(&s->places, at + n - 1)) : NULL;
}

static struct error *put_labels(
        const struct go_goroutine_snapshot *s, const struct go_goroutine *g, struct profile *p, u32 *node)
{
	const struct go_label_set *set = g->labels ? &s->goroutines.labels.sets[g->labels - 1] : NULL;
	char name[NAME_MAX_BYTES];
	struct profile_function fn = {.name = name, .module = "go", .kind = KIND_LABEL};
	struct error *err;
	u32 function;

	if (!set)
		return NULL;
	go_labels_name(set->n, set->packed, name, sizeof(name));
	err = profile_function(p, 0, &fn, false, &function);
	return err ? err : profile_child(p, *node, function, node);
}

static struct error *draw_one(
        const struct go_goroutine_snapshot *s, const struct go_goroutine *g, u32 flags, u64 count, struct profile *p)
{
	struct error *err = NULL;
	u32 node = 0;

	if (flags & GO_LABELLED)
		err = put_labels(s, g, p, &node);
	if (!err && flags & GO_CREATORS)
		err = put_creator(s, g, p, &node);
	if (!err && g->seen == GO_STANDS)
		err = go_draw_chain(&s->places, &s->stacks, &s->stacks.chains[g->chain], flags & GO_LINES, p, &node);
	if (!err)
		err = put_word(p, &node, "[%s]", g->seen == GO_UNWALKED ? "not walked" : go_goroutine_state(s, g));
	if (!err)
		profile_add(p, node, count);
	return err;
}

static bool alike(const struct go_goroutine *a, const struct go_goroutine *b)
{
	return a->status == b->status && a->reason == b->reason && a->creator == b->creator && a->seen == b->seen &&
	       a->labels == b->labels;
}

/* Runs of goroutines that are drawn alike; of a chain that grew at most as many as it grew by. */
static struct error *draw_chain(
        const struct go_goroutine_snapshot *s, u32 chain, u32 skip, u32 flags, struct profile *p)
{
	struct error *err = NULL;

	for (u32 i = s->first[chain] + skip; !err && i < s->first[chain + 1];) {
		const struct go_goroutine *g = &s->goroutines.all[s->order[i]];
		u32 n = 1;

		while (i + n < s->first[chain + 1] && alike(g, &s->goroutines.all[s->order[i + n]]))
			n++;
		err = draw_one(s, g, flags, n, p);
		i += n;
	}
	return err;
}

struct error *go_goroutines_draw(const void *before, void *after, u32 flags, struct profile *ret)
{
	struct go_goroutine_snapshot *s = after;
	cleanup(free) u32 *had = go_goroutines_before(before, s);
	struct error *err = had ? NULL : &error_no_memory;

	for (u32 i = 0; !err && i < s->nchains; i++)
		err = draw_chain(s, i, had[i], flags, ret);
	for (u32 i = 0; !err && !before && i < s->goroutines.n; i++)
		if (s->goroutines.all[i].seen != GO_STANDS)
			err = draw_one(s, &s->goroutines.all[i], flags, 1, ret);
	return err;
}
