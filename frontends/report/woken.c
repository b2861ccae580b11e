/* SPDX-License-Identifier: Apache-2.0 */
#include "woken.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/format/text.h"
#include "holder.h"
#include "own.h"
#include "place.h"
#include "stack_path.h"
#include "unwind/cleanup.h"

#define WOKEN     "[woken by "
#define WORKS     0.05 /* threads, on average */
#define GOOD_PART 0.3
#define COMMON    0.5 /* of the time, what stands for it: of a place's waits, of who ends them */

struct search {
	const struct rule *rule;
	const struct profile *p, *wall;
	u32 *same;    /* match_unite() */
	bool *waiter; /* by function: on stacks of waits, so it does not tell who ends them */
};

/* The waits of one place. */
struct place {
	const char *name;
	u64 total, ended; /* ended: by code that is known */
	u64 *wakers;      /* by function: of what ended, what has it on the waker's stack */
	u64 *waiters;
	u32 *node;   /* by function: the wait that it was counted for last, */
	u32 longest; /* the longest wait that code ended */
};

/* Adds a wait to each function of a part of its path, once. */
static void count(const struct search *s, struct place *place, const u32 *path, u32 from, u32 to, u64 *sums)
{
	for (u32 i = from; i < to; i++) {
		u32 f = s->same[s->p->nodes[path[i]].function];

		if (place->node[f] == path[0])
			continue;
		place->node[f] = path[0];
		sums[f] += s->p->nodes[path[0]].self;
	}
}

static bool has_code(const struct profile *p, const u32 *path, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (is_code(stack_path_function(p, path[i])))
			return true;
	return false;
}

static void look_at(const struct search *s, struct place *place, u32 node)
{
	u32 path[STACK_PATH_MAX], n = stack_path(s->p, node, path), at = stack_path_find(s->p, path, n, WOKEN);

	if (at == n || !stack_path_has(s->p, path, at + 1, n, place->name))
		return;
	place->total += s->p->nodes[node].self;
	count(s, place, path, at + 1, n, place->waiters);
	if (!has_code(s->p, path, at))
		return;
	place->ended += s->p->nodes[node].self;
	count(s, place, path, 0, at, place->wakers);
	if (!place->longest || s->p->nodes[node].self > s->p->nodes[place->longest].self)
		place->longest = node;
}

/* What is done, or waited for, in a function, in threads on average. */
static struct error *work_of(const struct search *s, const struct profile_function *f, double *ret)
{
	const struct rule any = {.libraries = s->rule->libraries};
	struct match m = {0};
	struct error *err = s->wall ? holder_works(&any, s->wall, f, &m) : NULL;

	*ret = s->wall ? (double)m.value / (double)s->wall->meta.duration_ns : 0;
	match_free(&m);
	return err;
}

static bool may_be_named(const struct search *s, const struct place *place, u32 f, bool of_language)
{
	const struct profile_function *fn = &s->p->functions[f];

	return is_code(fn) && match_is_language(fn) >= of_language && !s->waiter[s->same[f]] &&
	       (double)place->wakers[s->same[f]] > COMMON * (double)place->ended;
}

/* Of the waker's stack the functions that may be named, leaf first. */
static u32 candidates(const struct search *s, const struct place *place, u32 *ret)
{
	u32 path[STACK_PATH_MAX], n = stack_path(s->p, place->longest, path),
	                          at = stack_path_find(s->p, path, n, WOKEN);
	u32 found = 0;
	bool of_language = false;

	for (u32 i = 0; i < at; i++) {
		const struct profile_function *f = stack_path_function(s->p, path[i]);

		of_language |= is_code(f) && match_is_language(f);
	}
	while (at-- > 0) {
		u32 f = s->p->nodes[path[at]].function;

		if (may_be_named(s, place, f, of_language))
			ret[found++] = f;
	}
	return found;
}

/* The innermost that does a good part of what the thread does, else the program's own; 0: none can be named. */
static struct error *choose(const struct search *s, const struct place *place, u32 *ret)
{
	u32 f[STACK_PATH_MAX], n = candidates(s, place, f);
	cleanup(free) double *work = calloc(n + 1ull, sizeof(*work));
	double most = WORKS;
	struct error *err = work ? NULL : &error_no_memory;

	*ret = 0;
	for (u32 i = 0; !err && i < n; i++) {
		err = work_of(s, &s->p->functions[f[i]], &work[i]);
		most = fmax(most, work[i] * GOOD_PART);
		if (!*ret && is_own(s->rule->libraries, &s->p->functions[f[i]]))
			*ret = f[i];
	}
	for (u32 i = 0; !err && i < n; i++)
		if (work[i] >= most) {
			*ret = f[i];
			break;
		}
	return err;
}

/* Who ends the waits of a place; 0: nobody who is known. What its waits are in names nobody from now on. */
static struct error *ended_by(struct search *s, struct place *place, u32 *ret)
{
	const struct profile *p = s->p;

	for (u32 i = 1; i < p->nnodes; i++)
		if (p->nodes[i].self)
			look_at(s, place, i);
	for (u32 i = 0; i < p->nfunctions; i++)
		s->waiter[i] |= (double)place->waiters[i] > COMMON * (double)place->total;
	*ret = 0;
	return place->ended ? choose(s, place, ret) : NULL;
}

static struct error *step(struct search *s, const char *name, u64 *total, u64 *value, u32 *ret)
{
	size_t n = s->p->nfunctions + 1ull;
	cleanup(free) u64 *wakers = calloc(n, sizeof(*wakers)), *waiters = calloc(n, sizeof(*waiters));
	cleanup(free) u32 *node = calloc(n, sizeof(*node));
	struct place place = {.name = name, .wakers = wakers, .waiters = waiters, .node = node};
	struct error *err = wakers && waiters && node ? ended_by(s, &place, ret) : &error_no_memory;

	*total = place.total;
	*value = !err && *ret ? wakers[s->same[*ret]] : 0;
	return err;
}

struct error *woken_find(const struct rule *r, const struct profile *waits, const struct profile *wall,
        const char *waiter, struct woken *ret)
{
	cleanup(free) u32 *same = calloc(waits->nfunctions + 1ull, sizeof(*same));
	cleanup(free) bool *on_waits = calloc(waits->nfunctions + 1ull, sizeof(*on_waits));
	struct search s = {r, waits, wall, same, on_waits};
	char name[NAME_LENGTH];
	u64 total, value, before = 0;
	struct error *err = same && on_waits ? match_unite(waits, same) : &error_no_memory;

	*ret = (struct woken){0};
	snprintf(name, sizeof(name), "%s", waiter);
	while (!err && ret->n < WOKEN_MOST) {
		u32 by = 0;

		err = step(&s, name, &total, &value, &by);
		if (err || !by || (ret->n && (double)total < COMMON * (double)before))
			break;
		if (!ret->n)
			ret->part = (double)value / (double)total;
		ret->by[ret->n++] = by;
		before = value;
		text_plain_name(&waits->functions[by], name, sizeof(name));
	}
	return err;
}
