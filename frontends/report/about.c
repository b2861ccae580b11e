/* SPDX-License-Identifier: Apache-2.0 */
#include "about.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "own.h"
#include "unwind/cleanup.h"

#define KNOWN_LEAST 0.33 /* of the site's part: less does not say what it does */
#define ASKED_LEAST 0.05 /* a function with less of it is not looked up */
#define MOST        0.5

/* Of functions or of entries: in how much of the stacks they are, and how deep, times that much. */
struct passed {
	u64 *value;
	double *depth;
	u32 *stamp; /* the last node that counted for it */
};

static void passed_free(struct passed *p)
{
	free(p->value);
	free(p->depth);
	free(p->stamp);
}

static struct error *passed_make(u32 n, struct passed *ret)
{
	*ret = (struct passed){calloc(n + 1, sizeof(*ret->value)), calloc(n + 1, sizeof(*ret->depth)),
	        calloc(n + 1, sizeof(*ret->stamp))};
	if (ret->value && ret->depth && ret->stamp)
		return NULL;
	passed_free(ret);
	return &error_no_memory;
}

/* Once for each stack, where it is innermost. */
static void pass(struct passed *p, u32 of, u32 node, u32 depth, u64 value)
{
	if (p->stamp[of] == node)
		return;
	p->stamp[of] = node;
	p->value[of] += value;
	p->depth[of] += (double)depth * (double)value;
}

static u32 depth_of(const struct profile *p, u32 node)
{
	u32 depth = 0;

	for (; node; node = p->nodes[node].parent)
		depth++;
	return depth;
}

enum side { BOTH, BELOW, ABOVE };

/*
 * Of stacks that go through the site (0: of all), on one side of where it is innermost. entry: of each function, what
 * its stacks count for; 0: nothing. NULL: functions count for themselves.
 */
static void pass_all(const struct profile *p, const struct match *m, const u32 *same, u32 site, enum side side,
        const u32 *entry, struct passed *ret)
{
	for (u32 i = 1; i < p->nnodes; i++) {
		u32 depth = depth_of(p, i), middle = i;

		if (!m->nodes[i] || !p->nodes[i].self)
			continue;
		while (site && middle && same[p->nodes[middle].function] != site)
			middle = p->nodes[middle].parent;
		if (site && !middle)
			continue;
		for (u32 at = side == ABOVE ? p->nodes[middle].parent : i; at; at = p->nodes[at].parent, depth--) {
			u32 of = entry ? entry[p->nodes[at].function] : same[p->nodes[at].function];

			if (of)
				pass(ret, of, i, depth, p->nodes[i].self);
			if (side == BELOW && at == middle)
				break;
		}
	}
}

static u32 innermost(const struct passed *s, u32 n, double least)
{
	u32 best = 0;

	for (u32 i = 1; i < n; i++)
		if ((double)s->value[i] >= least && s->value[i] &&
		        (!best || s->depth[i] / (double)s->value[i] > s->depth[best] / (double)s->value[best]))
			best = i;
	return best;
}

/* entry[function]: 1 + the first of the table that is about it. */
static void look_up(const struct libraries *l, const struct profile *p, const struct passed *functions, const u32 *same,
        double least, u32 *entry)
{
	for (u32 i = 1; i < p->nfunctions; i++) {
		if ((double)functions->value[same[i]] < least)
			continue;
		for (u32 k = 0; !entry[i] && k < l->nabouts; k++)
			if (term_matches(&l->abouts[k].term, l, &p->functions[i]))
				entry[i] = k + 1;
	}
}

static u32 greatest_of(
        const struct profile *p, const struct passed *functions, const u32 *same, const u32 *entry, u32 of)
{
	u32 best = 0;

	for (u32 i = 1; i < p->nfunctions; i++)
		if (entry[i] == of && (!best || functions->value[same[i]] > functions->value[same[best]]))
			best = i;
	return best;
}

/* What a library is known for says more than what the kernel does for it. */
static u32 innermost_known(const struct profile *p, const struct passed *functions, const u32 *same, const u32 *entry,
        struct passed *entries, u32 n, double least)
{
	cleanup(free) u64 *outside = calloc(n + 1, sizeof(*outside));
	u32 found = 0;

	for (u32 i = 1; outside && i < n; i++) {
		u32 best = greatest_of(p, functions, same, entry, i);

		outside[i] = best && p->functions[best].kind != KIND_KERNEL ? entries->value[i] : 0;
	}
	if (outside)
		found = innermost(&(struct passed){outside, entries->depth, NULL}, n, least);
	return found ? found : innermost(entries, n, least);
}

static struct error *find_on(const struct libraries *l, const struct profile *p, const struct match *m, const u32 *same,
        enum side side, struct about_found *ret)
{
	cleanup(free) u32 *entry = calloc(p->nfunctions + 1, sizeof(u32));
	struct passed functions = {0}, entries = {0};
	double part = (double)m->site[0].value;
	u32 site = same[m->site[0].function], found = 0;
	struct error *err = entry ? passed_make(p->nfunctions, &functions) : &error_no_memory;

	if (!err)
		err = passed_make(l->nabouts + 1, &entries);
	if (!err) {
		pass_all(p, m, same, site, side, NULL, &functions);
		look_up(l, p, &functions, same, ASKED_LEAST * part, entry);
		pass_all(p, m, same, site, side, entry, &entries);
		found = innermost_known(p, &functions, same, entry, &entries, l->nabouts + 1, KNOWN_LEAST * part);
	}
	if (found)
		*ret = (struct about_found){&l->abouts[found - 1], greatest_of(p, &functions, same, entry, found),
		        fmin(1, (double)entries.value[found] / part), side == ABOVE};
	passed_free(&functions);
	passed_free(&entries);
	return err;
}

struct error *about_find(
        const struct libraries *l, const struct profile *p, const struct match *m, struct about_found *ret)
{
	cleanup(free) u32 *same = calloc(p->nfunctions + 1, sizeof(u32));
	struct error *err = same ? match_unite(p, same) : &error_no_memory;

	*ret = (struct about_found){0};
	if (!err && m->nsites && m->site[0].value)
		err = find_on(l, p, m, same, BELOW, ret);
	if (!err && m->nsites && m->site[0].value && !ret->about)
		err = find_on(l, p, m, same, ABOVE, ret);
	return err;
}

static bool says_something(const struct rule *r, const struct profile_function *f)
{
	return !match_skips(r, f) && !match_passes_on(r->libraries, f) && !match_is_loop(r->libraries, f);
}

/* Frames of a language are preferred; among them, and else, the innermost. */
static u32 deepest_of(const struct rule *r, const struct profile *p, struct passed *s, const u32 *same, double least)
{
	cleanup(free) u64 *all = calloc(p->nfunctions + 1, sizeof(*all));
	u32 found = 0;

	for (u32 native = 0; all && !found && native < 2; native++) {
		for (u32 i = 1; i < p->nfunctions; i++) {
			const struct profile_function *f = &p->functions[i];

			if (same[i] == i && is_code(f) && (native || match_is_language(f)) && says_something(r, f))
				all[i] = s->value[i];
		}
		found = innermost(&(struct passed){all, s->depth, NULL}, p->nfunctions, least);
	}
	return found;
}

struct error *about_deepest(const struct rule *r, const struct profile *p, struct match *m)
{
	cleanup(free) u32 *same = calloc(p->nfunctions + 1, sizeof(u32));
	struct passed functions = {0};
	struct error *err = same ? match_unite(p, same) : &error_no_memory;
	u32 found = 0;

	if (!err)
		err = passed_make(p->nfunctions, &functions);
	if (err)
		return err;
	pass_all(p, m, same, 0, BOTH, NULL, &functions);
	found = deepest_of(r, p, &functions, same, MOST * (double)m->value);
	m->nsites = 0;
	if (found)
		m->site[m->nsites++] = (struct match_site){found, functions.value[found]};
	m->callee = 0;
	passed_free(&functions);
	return NULL;
}
