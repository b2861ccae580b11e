/* SPDX-License-Identifier: Apache-2.0 */
#include "callers.h"

#include <stdlib.h>
#include <string.h>

#include "own.h"
#include "unwind/cleanup.h"

struct search {
	const struct profile *p;
	const struct libraries *l;
	const u32 *same;
	u32 site;
};

static const struct profile_function *at(const struct search *s, u32 node)
{
	return &s->p->functions[s->p->nodes[node].function];
}

/* A comprehension, or a closure, in the line that is named already says nothing more. */
static bool is_same_line(const struct profile_function *a, const struct profile_function *b)
{
	return a->line && a->line == b->line && !strcmp(a->file, b->file);
}

static bool is_caller(const struct search *s, const struct profile_function *f)
{
	return is_own(s->l, f) && match_is_language(f) == match_is_language(&s->p->functions[s->site]) &&
	       !match_is_loop(s->l, f) && !match_passes_on(s->l, f);
}

/* The next caller above a node; 0: none. */
static u32 next(const struct search *s, u32 node)
{
	u32 above = s->p->nodes[node].parent;

	while (above && (!is_caller(s, at(s, above)) || is_same_line(at(s, above), at(s, node)) ||
	                        s->same[s->p->nodes[above].function] == s->same[s->p->nodes[node].function]))
		above = s->p->nodes[above].parent;
	return above;
}

/* The function that this stack is called from, one beyond those that are known; 0: it is not called through them. */
static u32 caller_of(const struct search *s, u32 node, const u32 *known, u32 n)
{
	while (node && s->same[s->p->nodes[node].function] != s->same[s->site])
		node = s->p->nodes[node].parent;
	for (u32 i = 0; node && i <= n; i++) {
		node = next(s, node);
		if (i < n && node && s->same[s->p->nodes[node].function] != s->same[known[i]])
			return 0;
	}
	return node ? s->p->nodes[node].function : 0;
}

static bool goes_through(const struct search *s, u32 node)
{
	while (node && s->same[s->p->nodes[node].function] != s->same[s->site])
		node = s->p->nodes[node].parent;
	return node;
}

/* Of the functions that are one but for their lines, the line with most. *ret: how much its function has; all: room. */
static u32 greatest_line(const struct search *s, const u64 *sums, u64 *all, u64 *ret)
{
	u32 best = 0, line = 0, n = s->p->nfunctions;

	memset(all, 0, n * sizeof(*all));
	for (u32 i = 1; i < n; i++)
		all[s->same[i]] += sums[i];
	for (u32 i = 1; i < n; i++)
		if (all[i] > all[best])
			best = i;
	*ret = all[best];
	for (u32 i = 1; best && i < n; i++)
		if (s->same[i] == best && sums[i] > sums[line])
			line = i;
	return line;
}

struct error *callers_find(const struct match *m, const struct profile *p, const struct libraries *l, u32 *ret, u32 *n)
{
	cleanup(free) u32 *same = calloc(p->nfunctions + 1, sizeof(u32));
	cleanup(free) u64 *sums = calloc(p->nfunctions + 1, sizeof(u64));
	cleanup(free) u64 *functions = calloc(p->nfunctions + 1, sizeof(u64));
	struct search s = {p, l, same, m->nsites ? m->site[0].function : 0};
	struct error *err = same && sums && functions ? match_unite(p, same) : &error_no_memory;

	*n = 0;
	while (!err && s.site && *n < CALLERS_MAX) {
		u64 all, through = 0;
		u32 found;

		memset(sums, 0, p->nfunctions * sizeof(u64));
		for (u32 i = 1; i < p->nnodes; i++) {
			if (!m->nodes[i] || !p->nodes[i].self)
				continue;
			found = caller_of(&s, i, ret, *n);
			sums[found] += found ? p->nodes[i].self : 0;
			through += goes_through(&s, i) ? p->nodes[i].self : 0;
		}
		found = greatest_line(&s, sums, functions, &all);
		if (!found || 2 * all < through)
			break;
		ret[(*n)++] = found;
	}
	return err;
}
