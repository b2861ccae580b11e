/* SPDX-License-Identifier: Apache-2.0 */
#include "hit_inlining.h"

#include <string.h>

#include "probes/run.h"

#define SECONDS 1

void callee_inlining_add(void *ctx, const char *into)
{
	struct callee_inlining *in = ctx;

	for (u32 i = 0; i < in->n; i++)
		if (!strcmp(in->into[i], into))
			return;
	if (in->n < CALLEE_INLINING_NAMES)
		snprintf(in->into[in->n++], NAME_MAX_BYTES, "%s", into);
	else
		in->more++;
}

void callee_inlining_text(const struct callee_inlining *in, char *ret)
{
	size_t len = 0;

	*ret = '\0';
	for (u32 i = 0; i < in->n; i++)
		len += (size_t)snprintf(ret + len, CALLEE_INLINING_TEXT - len, "%s%s", i ? ", " : "", in->into[i]);
	snprintf(ret + len, CALLEE_INLINING_TEXT - len, "%s", in->more ? " and others" : "");
}

void hit_inlined_add(struct hit_inlined_all *all, const char *what, const struct runtime_callee *callee)
{
	struct hit_inlined *ret = &all->of[all->n];

	if (all->n == CALLEE_INLINING_OF)
		return;
	all->n++;
	ret->what = what;
	ret->line = callee->line;
	snprintf(ret->name, sizeof(ret->name), "%s", callee->name);
	snprintf(ret->file, sizeof(ret->file), "%s", callee->file);
}

/* A profile has names without what tells overloads apart, and of some languages without the file. */
static bool is_same(const struct hit_inlined *of, const struct profile_function *f)
{
	return of->line == f->definition && !strcmp(of->file, f->file) && strstr(of->name, f->name);
}

static bool is_of(const struct hit_inlined_all *all, const char *what, const struct profile_function *f)
{
	for (u32 i = 0; i < all->n; i++)
		if (!strcmp(all->of[i].what, what) && is_same(&all->of[i], f))
			return true;
	return false;
}

static void say_share(FILE *out, const struct hit_inlined_all *all, const char *what, const struct profile *p)
{
	u64 samples = 0, inlined = 0;

	for (u32 i = 1; i < p->nnodes; i++) {
		const struct profile_function *f = &p->functions[p->nodes[i].function];

		if (!is_of(all, what, f))
			continue;
		samples += p->nodes[i].total;
		inlined += f->flags & FRAME_INLINED ? p->nodes[i].total : 0;
	}
	if (samples)
		fprintf(out, "-e %s: %.0f %% of its %llu samples are inlined, in a CPU profile of %d s after the run\n",
		        what, 100.0 * (double)inlined / (double)samples, (unsigned long long)samples, SECONDS);
	else
		fprintf(out, "-e %s: no sample of a CPU profile of %d s after the run shows it\n", what, SECONDS);
}

static void ignore(void *ctx, struct error *err)
{
	error_free(err);
}

/* The same targets, nothing else. */
static struct error *profile(const struct run_request *run, struct run_result *ret)
{
	const struct sampler_options *o = &run->sampler;
	struct run_request r = {.pids = run->pids, .npids = run->npids, .nasked = run->npids, .stop = run->stop};

	r.sampler = (struct sampler_options){.event = events[0],
	        .frequency = 99,
	        .duration_s = SECONDS,
	        .depth = o->depth,
	        .cpu_percent = o->cpu_percent,
	        .cache_dir = o->cache_dir,
	        .warn = ignore};
	return run_profile(&r, ret);
}

void hit_inlined_explain(FILE *out, const struct run_request *run, const struct hit_inlined_all *all)
{
	struct run_result result = {0};
	struct error *err;

	if (!all->n || !run->npids || (run->stop && *run->stop))
		return;
	err = profile(run, &result);
	if (err && !result.profile)
		fprintf(out, "there is no CPU profile that shows the share of calls that are inlined: %s\n",
		        err->message);
	error_free(err);
	for (u32 i = 0; result.profile && i < all->n; i++)
		if (!i || strcmp(all->of[i].what, all->of[i - 1].what))
			say_share(out, all, all->of[i].what, result.profile);
	run_result_free(&result);
}
