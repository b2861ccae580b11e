/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_tiers.h"

#include <stdlib.h>

#include "cleanup.h"

struct weights { /* samples that a function, or one that it stands for, is in */
	u64 script, baseline, jit, inlined, approx;
};

static bool has_tiers(const struct profile_function *f)
{
	return f->kind == KIND_SCRIPT || f->kind == KIND_SCRIPT_BASELINE || f->kind == KIND_SCRIPT_JIT;
}

/* Strings of a profile are there once: equal ones have equal addresses. */
static int compare_tierless(const struct profile_function *f, const struct profile_function *g)
{
	u32 a = f->flags & ~(FRAME_INLINED | FRAME_APPROX), b = g->flags & ~(FRAME_INLINED | FRAME_APPROX);

	if (f->name != g->name)
		return f->name < g->name ? -1 : 1;
	if (f->module != g->module)
		return f->module < g->module ? -1 : 1;
	if (f->file != g->file)
		return f->file < g->file ? -1 : 1;
	return (a > b) - (a < b);
}

static bool is_approx(const struct profile_function *f)
{
	return f->flags & FRAME_APPROX;
}

static int compare_functions(const void *a, const void *b, void *functions)
{
	const struct profile_function *f = (struct profile_function *)functions + *(const u32 *)a;
	const struct profile_function *g = (struct profile_function *)functions + *(const u32 *)b;
	int c = compare_tierless(f, g);

	if (!c)
		c = is_approx(f) - is_approx(g);
	return c ? c : (f > g) - (f < g);
}

/* as: of each function the first that is the same; sure: the first of the certain ones, if any is. Whether there is
 * more than one. */
static bool find_same(const struct profile *p, u32 *order, u32 *as, u32 *sure)
{
	const struct profile_function *f = p->functions;
	bool found = false;
	u32 n = 0;

	for (u32 i = 0; i < p->nfunctions; i++) {
		as[i] = sure[i] = i;
		if (has_tiers(&p->functions[i]))
			order[n++] = i;
	}
	qsort_r(order, n, sizeof(*order), compare_functions, p->functions);
	for (u32 i = 1; i < n; i++) {
		u32 last = order[i - 1], at = order[i];

		if (compare_tierless(&f[last], &f[at]))
			continue;
		sure[at] = sure[last];
		if (is_approx(&f[last]) == is_approx(&f[at]))
			as[at] = as[last];
		found = true;
	}
	return found;
}

static void weigh(const struct profile *p, const u32 *sure, struct weights *weights)
{
	for (u32 i = 1; i < p->nnodes; i++) {
		u32 function = p->nodes[i].function;
		const struct profile_function *f = &p->functions[function];
		struct weights *w = &weights[sure[function]];
		u64 total = p->nodes[i].total;

		w->script += f->kind == KIND_SCRIPT ? total : 0;
		w->baseline += f->kind == KIND_SCRIPT_BASELINE ? total : 0;
		w->jit += f->kind == KIND_SCRIPT_JIT ? total : 0;
		w->inlined += f->flags & FRAME_INLINED ? total : 0;
		w->approx += is_approx(f) ? total : 0;
	}
}

static u8 percent(u64 part, u64 whole)
{
	return whole ? (u8)((double)part / (double)whole * 100 + 0.5) : 0;
}

/* On even weights the better code wins. */
static void set_tiers(struct profile_function *f, const struct weights *w)
{
	u64 all = w->script + w->baseline + w->jit;
	bool baseline = w->baseline >= w->script;

	f->kind = w->jit >= w->script && w->jit >= w->baseline ? KIND_SCRIPT_JIT
	          : baseline                                   ? KIND_SCRIPT_BASELINE
	                                                       : KIND_SCRIPT;
	f->flags = (f->flags & ~FRAME_INLINED) | (w->inlined > all / 2 ? FRAME_INLINED : 0);
	f->tiers = (struct profile_tiers){percent(w->script, all), percent(w->baseline, all), percent(w->jit, all),
	        percent(w->inlined, all), percent(w->approx, all)};
}

struct error *profile_merge_tiers(struct profile *p)
{
	cleanup(free) struct weights *weights = NULL;
	cleanup(free) u32 *order = calloc(p->nfunctions, sizeof(*order));
	cleanup(free) u32 *as = calloc(p->nfunctions, sizeof(*as));
	cleanup(free) u32 *sure = calloc(p->nfunctions, sizeof(*sure));

	if (!order || !as || !sure)
		return &error_no_memory;
	if (!find_same(p, order, as, sure))
		return NULL;
	weights = calloc(p->nfunctions, sizeof(*weights));
	if (!weights)
		return &error_no_memory;
	weigh(p, sure, weights);
	for (u32 i = 0; i < p->nfunctions; i++) {
		const struct weights *w = &weights[sure[i]];

		if (sure[i] == i || !(w->script + w->baseline + w->jit))
			continue;
		set_tiers(&p->functions[as[i]], w);
		set_tiers(&p->functions[sure[i]], w);
	}
	return profile_merge(p, as, sure);
}
